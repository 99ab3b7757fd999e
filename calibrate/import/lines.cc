// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/lines.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr char kEscape = '\x1b', kBell = '\x07';

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_control(char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 0x7f; }

// The length of the escape code at the front of `text`; 0 when it is none that ends as it should.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return 0;
  const char kind = text[1];
  if (kind == '[') {  // colours, cursor moves
    std::size_t i = 2;
    while (i < text.size() && (is_digit(text[i]) || text[i] == ';' || text[i] == '?')) ++i;
    // Codes without a number are few; any other letter is the text's own.
    constexpr std::string_view kAlone = "mKJHABCDEFGsu", kWithNumber = "hlfrSTd";
    if (i == text.size()) return 0;
    const bool known = kAlone.find(text[i]) != std::string_view::npos ||
                       (i > 2 && kWithNumber.find(text[i]) != std::string_view::npos);
    return known ? i + 1 : 0;
  }
  if (kind == ']') {  // window titles and links, up to BEL or ESC backslash
    for (std::size_t i = 2; i < text.size(); ++i) {
      if (text[i] == kBell) return i + 1;
      if (text[i] == kEscape) return i + 1 < text.size() && text[i + 1] == '\\' ? i + 2 : 0;
    }
    return 0;
  }
  if (kind == '(' || kind == ')') return text.size() > 2 ? 3 : 0;  // character sets
  return kind == '=' || kind == '>' ? 2 : 0;
}

// The length of the UTF-8 character at the front; 0 when it is malformed.
std::size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  const auto second = length > 1 ? static_cast<unsigned char>(text[1]) : 0;
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
      (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F))
    return 0;
  return length;
}

// The line's own characters: printable UTF-8, no-break spaces as spaces.
void take_text(std::string_view raw, LogLine& line) {
  constexpr std::string_view kNoBreakSpace = "\xC2\xA0";
  for (std::size_t i = 0; i < raw.size();) {
    const std::string_view rest = raw.substr(i);
    if (rest[0] == kEscape) {
      const std::size_t length = escape_length(rest);
      if (length == 0) line.damaged = true;
      i += std::max<std::size_t>(length, 1);
      continue;
    }
    if (is_control(rest[0])) {
      line.damaged = true;
      ++i;
      continue;
    }
    const std::size_t length = character_length(rest);
    if (length == 0) {
      line.damaged = true;
      line.text += '?';
      ++i;
      continue;
    }
    const std::string_view character = rest.substr(0, length);
    line.text += character == kNoBreakSpace ? std::string_view(" ") : character;
    i += length;
  }
}

bool matches(std::string_view text, std::string_view pattern) {  // '9' stands for any digit
  if (text.size() < pattern.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '9' ? !is_digit(text[i]) : text[i] != pattern[i]) return false;
  }
  return true;
}

// "15:41:05", then fractions and a zone: "15:41:05.123456Z", "15:41:05,123", "15:41:05+02:00".
std::size_t clock_length(std::string_view text) {
  if (!matches(text, "99:99:99")) return 0;
  std::size_t i = 8;
  if (i + 1 < text.size() && (text[i] == '.' || text[i] == ',') && is_digit(text[i + 1])) {
    for (++i; i < text.size() && is_digit(text[i]);) ++i;
  }
  if (i < text.size() && text[i] == 'Z') return i + 1;
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) {
    if (matches(text.substr(i + 1), "99:99")) return i + 6;
    if (matches(text.substr(i + 1), "9999")) return i + 5;
  }
  return i;
}

std::size_t timestamp_length(std::string_view text) {
  if (matches(text, "9999-99-99") && text.size() > 11 && (text[10] == 'T' || text[10] == ' ')) {
    const std::size_t clock = clock_length(text.substr(11));
    return clock == 0 ? 0 : 11 + clock;
  }
  return clock_length(text);
}

// The stream and "whole line" that container runtimes put behind the time: " stdout F".
std::size_t stream_length(std::string_view text) {
  for (const std::string_view mark : {" stdout F", " stderr F"}) {
    if (text.starts_with(mark) && (text.size() == mark.size() || is_blank(text[mark.size()])))
      return mark.size();
  }
  return 0;
}

// "Nov 30 08:46:16 node01 python[1234]:", as syslog and journalctl print it.
std::size_t syslog_length(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() < 16 || kMonths.find(text.substr(0, 3)) % 3 != 0) return 0;
  if (!matches(text.substr(3), " 99 ") && !matches(text.substr(3), "  9 ")) return 0;
  const std::size_t clock = clock_length(text.substr(7));
  std::size_t at = 7 + clock;
  if (clock == 0 || at >= text.size() || text[at] != ' ') return 0;
  at = text.find(' ', at + 1);  // the host
  if (at == std::string_view::npos) return 0;
  const std::string_view process = text.substr(at + 1);
  const std::size_t colon = process.find(':');
  if (colon == 0 || colon > process.find(' ')) return 0;
  return colon == std::string_view::npos ? 0 : at + 1 + colon + 1;
}

// "worker-3", "pod/a.b_c": what a launcher calls a process. Only with a digit, dash or dot, so that no word is one.
std::size_t name_length(std::string_view text) {
  std::size_t i = 0;
  bool letter = false, mark = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    const bool part = c == '-' || c == '.' || c == '_' || c == '/';
    if (!is_digit(c) && !is_letter(c) && !part) break;
    letter |= is_letter(c);
    mark |= is_digit(c) || c == '-' || c == '.';
  }
  return letter && mark ? i : 0;
}

// Inside of a bracket that is a tag: "0", "1,0", "rank3", "default0", a time, "pod/name/container".
bool is_tag_content(std::string_view text) {
  if (text.empty()) return false;
  const auto digits_or_comma = [](char c) { return is_digit(c) || c == ','; };
  if (std::ranges::all_of(text, digits_or_comma)) return true;
  for (const std::string_view word : {"rank", "default"}) {
    const std::string_view rest = text.substr(std::min(word.size(), text.size()));
    if (text.starts_with(word) && !rest.empty() && std::ranges::all_of(rest, is_digit)) return true;
  }
  return text.starts_with("pod/") || timestamp_length(text) == text.size();
}

// The length of one tag at the front of `text`, with what separates it from the rest; 0 when there is none.
std::size_t tag_length(std::string_view text) {
  constexpr std::size_t kLongestTag = 200;
  for (const std::string_view stream : {"<stdout>:", "<stderr>:", "<stddiag>:"}) {
    const std::size_t at = text.substr(0, kLongestTag).find(stream);
    if (at != std::string_view::npos) return at + stream.size();
  }
  std::size_t start = 0;
  while (start < text.size() && is_blank(text[start])) ++start;
  const std::string_view rest = text.substr(start);
  if (rest.empty()) return 0;
  const auto blank_at = [&](std::size_t i) { return i < rest.size() && is_blank(rest[i]); };
  if (rest[0] == '[') {
    const std::size_t close = rest.substr(0, kLongestTag).find(']');
    if (close == std::string_view::npos || !is_tag_content(rest.substr(1, close - 1))) return 0;
    const std::size_t end = close + 1;
    return start + (end < rest.size() && rest[end] == ':' ? end + 1 : end);
  }
  if (rest[0] == '(') {
    const std::size_t close = rest.substr(0, kLongestTag).find(')');
    if (close == std::string_view::npos) return 0;
    const std::string_view inside = rest.substr(0, close);
    const bool process = inside.find("pid=") != std::string_view::npos ||
                         inside.find("rank=") != std::string_view::npos;
    return process ? start + close + 1 : 0;
  }
  if (const std::size_t time = timestamp_length(rest); time > 0) {
    if (blank_at(time)) return start + time + stream_length(rest.substr(time));
    return time < rest.size() && rest[time] == ':' ? start + time + 1 : 0;
  }
  if (const std::size_t log = syslog_length(rest); log > 0) return start + log;
  std::size_t digits = 0;
  while (digits < rest.size() && is_digit(rest[digits])) ++digits;
  if (digits > 0 && digits < 6 && digits < rest.size() && rest[digits] == ':' &&
      blank_at(digits + 1))
    return start + digits + 1;
  if (const std::size_t name = name_length(rest); name > 0) {
    if (name < rest.size() && rest[name] == ':' && blank_at(name + 1)) return start + name + 1;
    std::size_t bar = name;
    while (blank_at(bar)) ++bar;
    if (bar < rest.size() && rest[bar] == '|' && blank_at(bar + 1)) return start + bar + 1;
  }
  return 0;
}

bool is_index_tag(std::string_view word) {
  return word.size() > 2 && word.front() == '[' && word.back() == ']' &&
         std::ranges::all_of(word.substr(1, word.size() - 2), is_digit);
}

}  // namespace

std::vector<LogLine> clean_lines(std::string_view text) {
  constexpr int kMostTags = 6;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  std::vector<LogLine> lines;
  std::uint32_t number = 1;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of("\r\n");
    LogLine line;
    line.number = number;
    line.finished = end != std::string_view::npos;
    take_text(text.substr(0, end), line);
    for (int i = 0; i < kMostTags; ++i) {
      const std::size_t length = tag_length(std::string_view(line.text).substr(line.offset));
      if (length == 0) break;
      line.offset += static_cast<std::uint32_t>(length);
      line.tagged = true;
    }
    line.text.erase(0, line.offset);
    lines.push_back(std::move(line));
    if (end == std::string_view::npos) break;
    const bool both = text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n';
    if (text[end] == '\n' || both) ++number;
    text.remove_prefix(end + (both ? 2 : 1));
  }
  return lines;
}

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < text.size();) {
    while (i < text.size() && is_blank(text[i])) ++i;
    const std::size_t first = i;
    while (i < text.size() && !is_blank(text[i])) ++i;
    if (i > first) words.push_back({text.substr(first, i - first), first});
  }
  return words;
}

std::vector<Word> words_without_tags(std::string_view text) {
  std::vector<Word> words;
  for (Word word : words_of(text)) {
    if (is_index_tag(word.text)) continue;
    const std::size_t open = word.text.find('[');
    if (open != std::string_view::npos && open > 0 && is_index_tag(word.text.substr(open)))
      word.text = word.text.substr(0, open);
    words.push_back(word);
  }
  return words;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool begins_with_digit(std::string_view text) {
  text = trimmed(text);
  return !text.empty() && is_digit(text.front());
}

std::optional<std::string_view> after(std::string_view text, std::string_view key) {
  text = trimmed(text);
  if (!text.starts_with(key)) return std::nullopt;
  return trimmed(text.substr(key.size()));
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

bool looks_like_json(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

std::optional<PrintedNumber> parse_printed(std::string_view word) {
  PrintedNumber out;
  std::size_t i = !word.empty() && word[0] == '-' ? 1 : 0;
  const auto digits = [&] {
    const std::size_t first = i;
    while (i < word.size() && is_digit(word[i])) ++i;
    return static_cast<int>(i - first);
  };
  if (digits() == 0) return std::nullopt;
  if (i < word.size() && word[i] == '.') {
    ++i;
    out.decimals = digits();
    if (out.decimals == 0) return std::nullopt;
  }
  int exponent = 0;
  if (i < word.size() && (word[i] == 'e' || word[i] == 'E')) {
    ++i;
    const bool negative = i < word.size() && word[i] == '-';
    if (i < word.size() && (word[i] == '-' || word[i] == '+')) ++i;
    const std::size_t first = i;
    const int length = digits();
    if (length == 0 || length > 3) return std::nullopt;
    std::from_chars(word.data() + first, word.data() + i, exponent);
    if (negative) exponent = -exponent;
  }
  if (i != word.size()) return std::nullopt;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out.value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(out.value))
    return std::nullopt;
  out.half_unit = 0.5 * std::pow(10.0, exponent - out.decimals);
  return out;
}

std::optional<std::int64_t> parse_whole(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

Place place_in(const LogLine& line, std::uint32_t file, std::size_t at) {
  return {file, line.number, line.offset + static_cast<std::uint32_t>(at) + 1};
}

void IgnoredLines::noise(const LogLine& line) {
  if (trimmed(line.text).empty()) return;
  if (noise_++ == 0) first_noise_ = line.number;
}

void IgnoredLines::row(const LogLine& line, std::string_view why) {
  if (rows_++ == 0) first_reason_ = fmt::format("line {}: {}", line.number, why);
  if (rows_ <= kMostNotes)
    out_.note(ImportNote::Kind::ignored, fmt::format("row not used: {}", why), place_in(line, 0));
}

void IgnoredLines::finish() {
  if (rows_ > kMostNotes)
    out_.note(ImportNote::Kind::ignored,
              counted(static_cast<std::int64_t>(rows_ - kMostNotes), "more row"));
  if (noise_ > 0)
    out_.note(ImportNote::Kind::ignored,
              fmt::format("{} of other programs or without values, the first is line {}",
                          counted(static_cast<std::int64_t>(noise_), "line"), first_noise_));
}

}  // namespace weft
