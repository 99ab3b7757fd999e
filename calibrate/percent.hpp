// SPDX-License-Identifier: Apache-2.0
// How shares and relative errors are printed, everywhere alike: 0.0714 is "7.1 %", an error "+7.1 %".
#pragma once

#include <string>

#include <fmt/format.h>

namespace weft {

inline std::string percent(double share, int digits = 1) {
  return fmt::format("{:.{}f} %", 100 * share, digits);
}
inline std::string signed_percent(double error, int digits = 1) {
  return fmt::format("{:+.{}f} %", 100 * error, digits);
}

}  // namespace weft
