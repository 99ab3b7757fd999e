// SPDX-License-Identifier: Apache-2.0
// How numbers, shares and relative errors are printed, everywhere alike: 461.2384 is "461.2", 0.0714 "7.1 %", an error "+7.1 %".
#pragma once

#include <string>

#include <fmt/format.h>

namespace weft {

inline std::string number(double value) { return fmt::format("{:.4g}", value); }
inline std::string percent(double share, int digits = 1) {
  return fmt::format("{:.{}f} %", 100 * share, digits);
}
inline std::string signed_percent(double error, int digits = 1) {
  return fmt::format("{:+.{}f} %", 100 * error, digits);
}

}  // namespace weft
