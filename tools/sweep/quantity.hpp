// SPDX-License-Identifier: Apache-2.0
// A value of an axis as a magnitude with a unit, so that ranges can step over it and conditions compare it:
// 8 is the number 8, "4 MiB" is 4194304 bytes, "adaptive" is a word.
#pragma once

#include <optional>
#include <string>

#include "sim/core/json.hpp"

namespace weft {

enum class AxisDimension { number, time, bytes, bandwidth, flop_rate, power, frequency, rate };

struct AxisQuantity {
  double value = 0;  // in base units: picoseconds, bytes, bits per second, ...
  AxisDimension dimension = AxisDimension::number;
  bool whole = false;  // an integer, or of a unit that is counted in integers
};

// Nothing for words, truth values, lists and objects.
std::optional<AxisQuantity> quantity_of(const Json& json);

// The JSON that stands for it: a number, or text with a unit that reads back to the same value.
Json to_value(const AxisQuantity& quantity);

std::string_view name_of(AxisDimension dimension);  // "a time"

}  // namespace weft
