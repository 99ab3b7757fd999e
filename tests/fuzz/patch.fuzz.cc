// SPDX-License-Identifier: Apache-2.0
// Patches of `weft calibrate fit`: refused with places, or intervals can be made of them.
#include <cmath>

#include "calibrate/fit/intervals.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  constexpr std::size_t kMostParameters = 64;  // an eigenvalue problem each time
  Diagnostics out;
  const Json document = parse_json(fuzz::view(data, size), "input.json", out);
  if (!out.ok()) return 0;
  const auto calibration = read_calibration(document, out);
  fuzz::check_problems(out);
  FUZZ_CHECK(calibration.has_value() == out.ok());
  if (!calibration || calibration->parameters.size() > kMostParameters) return 0;
  FUZZ_CHECK(calibration->values.size() == calibration->parameters.size());
  const auto predict = [&](const ValueChanges& changes) {
    double sum = 1;
    for (const auto& [pointer, value] : changes) {
      FUZZ_CHECK(pointer.starts_with('/'));
      sum += value.is_number() ? value.number : 1;
    }
    return std::vector<double>{sum};
  };
  for (const double sd : propagate(*calibration, predict)) {
    FUZZ_CHECK(sd >= 0 || std::isnan(sd));
    FUZZ_CHECK(!(interval_factor(*calibration, sd, {}) < 1));
  }
  Diagnostics of_fabric;
  check_calibration(*calibration, document, {}, of_fabric);
  fuzz::check_problems(of_fabric);
  return 0;
}
