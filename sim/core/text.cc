// SPDX-License-Identifier: Apache-2.0
#include "sim/core/text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace weft {
namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return lower(c); });
  return out;
}

// A plain decimal number without sign or needless zeros, so that expansion gives back the names that were meant.
std::optional<std::uint32_t> parse_index(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest_name(std::string_view word,
                                        const std::vector<std::string>& names) {
  constexpr std::size_t kLongestWord = 128;  // longer ones are not slips of the finger
  constexpr std::size_t kShortestStart = 3;  // of a name that somebody left unfinished
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  const std::string plain = lower(word);
  const std::string* best = nullptr;
  std::size_t best_cost = 0;
  for (const std::string& name : names) {
    const bool started = plain.size() >= kShortestStart && plain.size() < name.size() &&
                         lower(name).starts_with(plain);
    if (started) {
      if (best == nullptr || best_cost > 1 || (best_cost == 1 && name.size() < best->size())) {
        best = &name;
        best_cost = 1;
      }
      continue;
    }
    const std::size_t longest = std::max(word.size(), name.size());
    const std::size_t allowed = std::max<std::size_t>(1, (longest + 1) / 3);
    const std::size_t gap = longest - std::min(word.size(), name.size());
    if (gap > allowed) continue;
    const std::size_t distance = edit_distance(plain, lower(name));
    if (distance > allowed || distance >= longest) continue;
    const std::size_t cost = 2 * distance + (distance == 0 && word != name ? 1 : 0);
    if (best == nullptr || cost < best_cost) {
      best = &name;
      best_cost = cost;
    }
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const auto nearest = nearest_name(word, names);
  return nearest ? ", did you mean \"" + *nearest + "\"?" : std::string{};
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos,
              resume = 0;  // where to go on when the last '*' takes one more
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += separator;
    out += items[i];
  }
  return out;
}

std::optional<std::vector<std::string>> expand_range(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos) {
    if (text.find(']') != std::string_view::npos) return std::nullopt;
    return std::vector<std::string>{std::string(text)};
  }
  const std::string_view stem = text.substr(0, open);
  const std::size_t close = text.find(']', open);
  if (close == std::string_view::npos || stem.find(']') != std::string_view::npos)
    return std::nullopt;
  const std::string_view range = text.substr(open + 1, close - open - 1);
  const std::string_view rest = text.substr(close + 1);
  if (rest.find_first_of("[]") != std::string_view::npos) return std::nullopt;

  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parse_index(range.substr(0, dash));
  const auto last = parse_index(range.substr(dash + 1));
  if (!first || !last || *first > *last || *last - *first >= kMostNames) return std::nullopt;

  std::vector<std::string> names;
  names.reserve(*last - *first + 1);
  for (std::uint64_t i = *first; i <= *last; ++i) {
    names.push_back(std::string(stem) + std::to_string(i) + std::string(rest));
  }
  return names;
}

std::string json_pointer_escape(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::optional<std::string> json_pointer_unescape(std::string_view token) {
  std::string out;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      out += token[i];
      continue;
    }
    if (++i == token.size() || (token[i] != '0' && token[i] != '1')) return std::nullopt;
    out += token[i] == '0' ? '~' : '/';
  }
  return out;
}

std::optional<std::vector<std::string>> parse_pointer(std::string_view pointer) {
  std::vector<std::string> keys;
  while (!pointer.empty()) {
    if (pointer.front() != '/') return std::nullopt;
    pointer.remove_prefix(1);
    const std::string_view token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    auto key = json_pointer_unescape(token);
    if (!key) return std::nullopt;
    keys.push_back(std::move(*key));
  }
  return keys;
}

}  // namespace weft
