// SPDX-License-Identifier: Apache-2.0
// A condition on a point of a sweep: comparisons of products of axes and values, joined by "and".
//
//   tp * pp * dp == gpus        servers >= 4 and size <= 64 MiB        routing != 'ecmp'
//
// Names are those of axes; words of the values stand in single quotes. Quantities compare with quantities of the same kind;
// words only by == and !=.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/core/json.hpp"

namespace weft {

class Condition {
 public:
  using ValueOf = std::function<const Json&(std::size_t axis)>;

  // Problems go to `out` at `place`.
  Condition(const std::string& text, const std::vector<std::string>& axes, Place place,
            std::string pointer, Diagnostics& out);

  // Throws InputError when values cannot be compared.
  bool holds(const ValueOf& value_of) const;

  const std::string& text() const { return text_; }
  Place place() const { return place_; }
  const std::string& pointer() const { return pointer_; }

 private:
  struct Factor {
    int axis = -1;  // else `constant`
    Json constant;
  };
  using Product = std::vector<Factor>;
  struct Comparison {
    Product left, right;
    std::string sign;
  };
  class Parser;

  std::string text_;
  Place place_;
  std::string pointer_;
  std::vector<Comparison> comparisons_;
};

}  // namespace weft
