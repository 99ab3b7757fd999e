// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/condition.hpp"

#include <algorithm>
#include <cctype>
#include <compare>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "tools/sweep/quantity.hpp"

namespace weft {
namespace {

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool in_name(char c) { return begins_name(c) || is_digit(c) || c == '-' || c == '.'; }
bool in_unit(char c) {
  return !std::isspace(static_cast<unsigned char>(c)) && !is_digit(c) && c != '*';
}

}  // namespace

// Recursive descent; a problem is a thrown sentence.
class Condition::Parser {
 public:
  Parser(const std::string& text, const std::vector<std::string>& axes)
      : text_(text), axes_(axes) {}

  std::vector<Comparison> parse() {
    std::vector<Comparison> out;
    do {
      Comparison next;
      next.left = product();
      next.sign = sign();
      next.right = product();
      out.push_back(std::move(next));
    } while (word("and"));
    skip();
    if (at_ < text_.size())
      throw InputError(fmt::format("\"{}\" was not expected", text_.substr(at_)));
    return out;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool word(std::string_view wanted) {
    skip();
    const std::size_t end = at_ + wanted.size();
    if (std::string_view(text_).substr(at_).substr(0, wanted.size()) != wanted ||
        (end < text_.size() && in_name(text_[end])))
      return false;
    at_ = end;
    return true;
  }
  std::string take(bool (*belongs)(char)) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string sign() {
    skip();
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"}) {
      const std::string_view s = sign;
      if (std::string_view(text_).substr(at_).starts_with(s)) {
        at_ += s.size();
        return sign;
      }
    }
    throw InputError("a comparison is missing: ==, !=, <, <=, > or >=");
  }

  Product product() {
    Product out;
    do {
      out.push_back(factor());
      skip();
    } while (at_ < text_.size() && text_[at_] == '*' && ++at_ > 0);
    return out;
  }

  Factor factor() {
    skip();
    if (at_ >= text_.size()) throw InputError("a value is missing at the end");
    const char c = text_[at_];
    if (c == '\'') return quoted();
    if (begins_name(c)) return named();
    if (is_digit(c) || c == '-' || c == '.') return number();
    throw InputError(fmt::format("\"{}\" is no axis and no value", text_.substr(at_)));
  }

  Factor quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string::npos) throw InputError("a closing ' is missing");
    Factor out{-1, Json(text_.substr(at_ + 1, end - at_ - 1))};
    at_ = end + 1;
    return out;
  }

  Factor named() {
    const std::string name = take(in_name);
    if (name == "true" || name == "false") return {-1, Json(name == "true")};
    const auto found = std::ranges::find(axes_, name);
    if (found == axes_.end())
      throw InputError(fmt::format("there is no axis \"{}\"{}; words stand in quotes: '{}'", name,
                                   did_you_mean(name, axes_), name));
    return {static_cast<int>(found - axes_.begin()), {}};
  }

  Factor number() {
    const std::size_t begin = at_;
    if (text_[at_] == '-') ++at_;
    bool exponent = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool power = !exponent && (c == 'e' || c == 'E') && at_ + 1 < text_.size() &&
                         (is_digit(text_[at_ + 1]) || text_[at_ + 1] == '-');
      const bool minus =
          c == '-' && at_ > begin && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (!is_digit(c) && c != '.' && !power && !minus) break;
      exponent = exponent || power;
      ++at_;
    }
    const std::string digits = text_.substr(begin, at_ - begin);
    const std::size_t after = at_;
    skip();
    const std::size_t unit_at = at_;
    const bool unit = at_ < text_.size() && begins_name(text_[at_]) && !word("and");
    at_ = unit ? unit_at : after;
    if (unit) {
      const std::string text = digits + " " + take(in_unit);
      if (!quantity_of(Json(text)))
        throw InputError(fmt::format("\"{}\" has no unit we know", text));
      return {-1, Json(text)};
    }
    Diagnostics trial;
    Json value = parse_json(digits, "", trial);
    if (!trial.ok() || !value.is_number())
      throw InputError(fmt::format("\"{}\" is not a number", digits));
    return {-1, std::move(value)};
  }

  const std::string& text_;
  const std::vector<std::string>& axes_;
  std::size_t at_ = 0;
};

Condition::Condition(const std::string& text, const std::vector<std::string>& axes, Place place,
                     std::string pointer, Diagnostics& out)
    : text_(text), place_(place), pointer_(std::move(pointer)) {
  try {
    comparisons_ = Parser(text_, axes).parse();
  } catch (const InputError& problem) {
    out.error(place, pointer_, fmt::format("\"{}\": {}", text, problem.what()),
              fmt::format("the axes are {}; e.g. \"tp * pp <= gpus\", "
                          "\"size >= 1 MiB and routing != 'ecmp'\"",
                          join(axes, ", ")));
  }
}

bool Condition::holds(const ValueOf& value_of) const {
  const auto value = [&](const Factor& factor) -> const Json& {
    return factor.axis < 0 ? factor.constant : value_of(static_cast<std::size_t>(factor.axis));
  };
  const auto fail = [&](const std::string& why) {
    throw InputError(fmt::format("\"{}\": {}", text_, why));
  };
  const auto measure = [&](const Product& product) {
    AxisQuantity out{1, AxisDimension::number, true};
    for (const Factor& factor : product) {
      const std::optional<AxisQuantity> q = quantity_of(value(factor));
      if (!q) fail(to_text(value(factor), 0) + " is no quantity");
      if (q->dimension != AxisDimension::number && out.dimension != AxisDimension::number)
        fail("two values with units are multiplied");
      out.value *= q->value;
      if (q->dimension != AxisDimension::number) out.dimension = q->dimension;
    }
    return out;
  };
  const auto plain = [&](const Product& product) {
    return product.size() == 1 && !quantity_of(value(product.front()));
  };
  for (const Comparison& c : comparisons_) {
    bool met = false;
    if (plain(c.left) || plain(c.right)) {
      const bool equality = c.sign == "==" || c.sign == "!=";
      if (!equality) fail("words have no order");
      const bool same = c.left.size() == 1 && c.right.size() == 1 &&
                        to_text(value(c.left.front()), 0) == to_text(value(c.right.front()), 0);
      met = same == (c.sign == "==");
    } else {
      const AxisQuantity left = measure(c.left), right = measure(c.right);
      if (left.dimension != right.dimension)
        fail(fmt::format("{} is compared with {}", name_of(left.dimension),
                         name_of(right.dimension)));
      const std::partial_ordering order = left.value <=> right.value;
      met = c.sign == "=="   ? order == 0
            : c.sign == "!=" ? order != 0
            : c.sign == "<"  ? order < 0
            : c.sign == "<=" ? order <= 0
            : c.sign == ">"  ? order > 0
                             : order >= 0;
    }
    if (!met) return false;
  }
  return true;
}

}  // namespace weft
