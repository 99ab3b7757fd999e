// SPDX-License-Identifier: Apache-2.0
#include "sim/core/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft {
namespace {

// Keys are looked up by walking the object; this bounds what a hostile file can cost.
constexpr std::size_t kMostMembers = 10'000;

// The parser pulls characters through this iterator, which therefore knows where the parser is. Line and column are those of
// the last character read.
struct Cursor {
  std::uint32_t line = 1;
  std::uint32_t column = 0;
  std::size_t offset = 0;
  std::size_t line_start = 0;       // offset of the first character of `line`
  std::size_t last_line_start = 0;  // the same of the line before
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Cursor* cursor) : at_(at), cursor_(cursor) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') {
      ++cursor_->line;
      cursor_->column = 0;
      cursor_->last_line_start = cursor_->line_start;
      cursor_->line_start = cursor_->offset + 1;
    } else {
      ++cursor_->column;
    }
    ++cursor_->offset;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ != b.at_;
  }

 private:
  const char* at_;
  Cursor* cursor_;
};

// A scalar's event arrives when the parser has read its last character (one more for numbers), so its first character is
// found by walking back over the text.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, std::uint32_t file, const Cursor& cursor, Diagnostics& out)
      : text_(text), file_(file), cursor_(cursor), out_(out) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(Json{}, scalar_place(false)); }
  bool boolean(bool v) override { return put(Json{v}, scalar_place(false)); }
  bool number_integer(number_integer_t v) override {
    return put(Json{std::int64_t{v}}, scalar_place(true));
  }
  bool number_unsigned(number_unsigned_t v) override {
    const bool fits = v <= static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    return put(fits ? Json{static_cast<std::int64_t>(v)} : Json{static_cast<double>(v)},
               scalar_place(true));
  }
  bool number_float(number_float_t v, const string_t&) override {
    return put(Json{v}, scalar_place(true));
  }
  bool string(string_t& v) override { return put(Json{std::move(v)}, string_place()); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    const Place place = string_place();
    if (stack_.back()->find(name) != nullptr) {
      out_.error(place, {}, fmt::format("key \"{}\" appears twice in one object", name),
                 "remove one of them");
    }
    if (stack_.back()->members.size() >= kMostMembers) {
      out_.error(place, {}, fmt::format("more than {} keys in one object", kMostMembers),
                 "use an array");
      return false;
    }
    stack_.back()->members.push_back({name, place, {}});
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    std::string what = e.what();
    // The library's text repeats its own position; keep the part that says what was wrong.
    if (const auto at = what.find("syntax error"); at != std::string::npos) what = what.substr(at);
    if (const auto at = what.find("number overflow"); at != std::string::npos)
      what = what.substr(at);
    std::string printable;
    for (const char c : what) printable += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    if (printable.size() > 300) printable = printable.substr(0, 300) + "...";
    out_.error(place_of_token(what), {}, "not JSON: " + printable, cure(what));
    return false;
  }

 private:
  // A wrong token begins where the parser has stopped, unless it is one that is read to its end first.
  Place place_of_token(const std::string& what) const {
    if (what.find("unexpected number literal") != std::string::npos) return scalar_place(true);
    if (what.find("number overflow") != std::string::npos) return scalar_place(true);
    if (what.find("unexpected string literal") != std::string::npos) return string_place();
    return here();
  }

  // The parser stops inside a word that JSON does not have; the whole word is in the text.
  std::string cure(const std::string& what) const {
    std::size_t begin = cursor_.offset;
    while (begin > 0 && is_letter(text_[begin - 1])) --begin;
    const std::string_view word = text_.substr(begin, 3);
    if (word == "NaN" || word == "nan" || word == "NAN")
      return "JSON has no NaN: leave the key out";
    if (word == "Inf" || word == "inf" || word == "INF")
      return "JSON has no infinity: leave the key out";
    if (what.find("number overflow") != std::string::npos) return "numbers go to about 1.8e308";
    if (what.find("UTF-8") != std::string::npos) return "write the file as UTF-8 text";
    return "look for a missing comma, quote or bracket just before this place";
  }

  Place here() const { return {file_, cursor_.line, std::max(1U, cursor_.column)}; }

  Place scalar_place(bool read_one_past) const {
    std::size_t end = cursor_.offset;
    if (read_one_past && end > 0 && !is_number_char(text_[end - 1])) --end;
    std::size_t begin = end;
    while (begin > 0 && is_word_char(text_[begin - 1])) --begin;
    return place_of(begin);
  }

  Place string_place() const {
    // The closing quote was just read; the opening one is the nearest quote before it that is not escaped.
    std::size_t at = cursor_.offset < 2 ? 0 : cursor_.offset - 2;
    while (at > 0) {
      if (text_[at] == '"') {
        std::size_t slashes = 0;
        while (slashes < at && text_[at - 1 - slashes] == '\\') ++slashes;
        if (slashes % 2 == 0) break;
      }
      --at;
    }
    return place_of(at);
  }

  // Strings and scalars cannot span lines in JSON, so a place before the cursor is on the cursor's line unless the parser
  // has read the line break that follows a number.
  Place place_of(std::size_t offset) const {
    const bool line_before = offset < cursor_.line_start;
    const std::size_t start = line_before ? cursor_.last_line_start : cursor_.line_start;
    return {file_, cursor_.line - (line_before ? 1U : 0U),
            static_cast<std::uint32_t>(offset - start + 1)};
  }

  static bool is_number_char(char c) {
    return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
  }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
  static bool is_word_char(char c) { return is_number_char(c) || (c >= 'a' && c <= 'z'); }

  Json* attach(Json value, Place place) {
    value.place = place;
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.items.push_back(std::move(value));
      return &parent.items.back();
    }
    parent.members.back().value = std::move(value);
    return &parent.members.back().value;
  }
  bool put(Json value, Place place) {
    attach(std::move(value), place);
    return true;
  }
  bool open(Json value) {
    if (stack_.size() >= Json::kMostDepth) {
      out_.error(here(), {}, fmt::format("nested deeper than {} levels", Json::kMostDepth),
                 "flatten the document");
      return false;
    }
    stack_.push_back(attach(std::move(value), here()));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  std::string_view text_;
  std::uint32_t file_;
  const Cursor& cursor_;
  Diagnostics& out_;
  Json root_;
  std::vector<Json*> stack_;
};

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void write(const Json& json, int indent, int level, std::string& out);

void write_one_line(const Json& json, std::string& out) { write(json, 0, 0, out); }

template <class Items, class WriteItem>
void write_group(char open, char close, const Items& items, int indent, int level, std::string& out,
                 WriteItem write_item) {
  constexpr std::size_t kLineWidth = 100;
  if (indent > 0 && items.size() > 0) {
    std::string line{open};
    for (std::size_t i = 0; i < items.size() && line.size() < kLineWidth; ++i) {
      if (i > 0) line += ", ";
      write_item(items[i], 0, 0, line);
    }
    line += close;
    if (line.size() + static_cast<std::size_t>(indent * level) < kLineWidth) {
      out += line;
      return;
    }
  }
  out += open;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += indent > 0 ? "," : ", ";
    first = false;
    if (indent > 0) out += '\n' + std::string(static_cast<std::size_t>(indent * (level + 1)), ' ');
    write_item(item, indent, level + 1, out);
  }
  if (indent > 0 && !first)
    out += '\n' + std::string(static_cast<std::size_t>(indent * level), ' ');
  out += close;
}

void write(const Json& json, int indent, int level, std::string& out) {
  switch (json.kind) {
    case Json::Kind::null:
      out += "null";
      break;
    case Json::Kind::boolean:
      out += json.boolean ? "true" : "false";
      break;
    case Json::Kind::integer:
      out += fmt::format("{}", json.integer);
      break;
    case Json::Kind::number:
      if (!std::isfinite(json.number))
        out += "null";
      else if (json.number == 0 && std::signbit(json.number))
        out += "-0.0";  // "-0" reads back as the integer 0
      else
        out += fmt::format("{}", json.number);
      break;
    case Json::Kind::string:
      out += quoted(json.text);
      break;
    case Json::Kind::array:
      write_group('[', ']', json.items, indent, level, out,
                  [](const Json& j, int in, int lv, std::string& o) {
                    in > 0 ? write(j, in, lv, o) : write_one_line(j, o);
                  });
      break;
    case Json::Kind::object:
      write_group('{', '}', json.members, indent, level, out,
                  [](const JsonMember& m, int in, int lv, std::string& o) {
                    o += quoted(m.key) + ": ";
                    in > 0 ? write(m.value, in, lv, o) : write_one_line(m.value, o);
                  });
      break;
  }
}

}  // namespace

Json::Json() = default;
Json::Json(bool v) : kind(Kind::boolean), boolean(v) {}
Json::Json(double v) : kind(Kind::number), number(v) {}
Json::Json(std::int64_t v) : kind(Kind::integer), integer(v), number(static_cast<double>(v)) {}
Json::Json(int v) : Json(static_cast<std::int64_t>(v)) {}
Json::Json(std::uint32_t v) : Json(static_cast<std::int64_t>(v)) {}
Json::Json(std::uint64_t v) : Json(static_cast<std::int64_t>(v)) {}
Json::Json(std::string v) : kind(Kind::string), text(std::move(v)) {}
Json::Json(std::string_view v) : Json(std::string(v)) {}
Json::Json(const char* v) : Json(std::string(v)) {}
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::array() {
  Json out;
  out.kind = Kind::array;
  return out;
}

Json Json::object() {
  Json out;
  out.kind = Kind::object;
  return out;
}

const Json* Json::find(std::string_view key) const {
  for (const JsonMember& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Json* Json::find(std::string_view key) { return const_cast<Json*>(std::as_const(*this).find(key)); }

Json& Json::set(std::string_view key, Json value) {
  if (Json* found = find(key)) return *found = std::move(value);
  members.push_back({std::string(key), value.place, std::move(value)});
  return members.back().value;
}

void Json::push(Json value) { items.push_back(std::move(value)); }

std::string_view Json::kind_name() const {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "true or false";
    case Kind::integer:
      return "a whole number";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "an array";
    case Kind::object:
      return "an object";
  }
  return "?";
}

Json parse_json(std::string_view text, std::string file_name, Diagnostics& out) {
  const std::uint32_t file = out.add_file(std::move(file_name));
  if (text.empty()) {
    out.error({file, 1, 1}, {}, "the file is empty", "a JSON object is needed");
    return {};
  }
  // The parser takes a zero byte for the end of the text and would not see what follows.
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    const std::string_view before = text.substr(0, zero);
    const auto line =
        static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n') + 1);
    const auto column =
        static_cast<std::uint32_t>(zero - (before.rfind('\n') + 1) + 1);  // npos + 1 is 0
    out.error({file, line, column}, {}, "not JSON: a zero byte", "write the file as UTF-8 text");
    return {};
  }
  Cursor cursor;
  Builder builder(text, file, cursor, out);
  nlohmann::json::sax_parse(CountingIterator(text.data(), &cursor),
                            CountingIterator(text.data() + text.size(), &cursor), &builder);
  return builder.take();
}

std::string to_text(const Json& json, int indent) {
  std::string out;
  write(json, indent, 0, out);
  return out;
}

}  // namespace weft
