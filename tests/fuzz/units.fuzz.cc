// SPDX-License-Identifier: Apache-2.0
// Text with units: what is accepted reads back from the exact text to the same value, and from the text for people to one
// within the digits that it shows.
#include "sim/core/units.hpp"

#include <cmath>

#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

bool near(double a, double b) {
  return std::abs(a - b) <= 1e-3 * std::max(std::abs(a), std::abs(b));
}

double size_of(Time v) { return static_cast<double>(v.ps); }
double size_of(Bytes v) { return v.value(); }
double size_of(Bandwidth v) { return static_cast<double>(v.bps); }
double size_of(FlopRate v) { return v.per_s; }
double size_of(Power v) { return v.watts; }
double size_of(Frequency v) { return v.hz; }
double size_of(Rate v) { return v.per_s; }

template <class T, class Parse>
void check(std::string_view text, Parse parse) {
  const std::optional<T> value = parse(text);
  if (!value) return;
  FUZZ_CHECK(size_of(*value) >= 0);
  FUZZ_CHECK(std::isfinite(size_of(*value)));
  if constexpr (requires { to_exact_text(*value); }) {
    const auto again = parse(to_exact_text(*value));
    FUZZ_CHECK(again == value);
  }
  if (size_of(*value) > 9e18) return;  // the text for people may round up to what no longer fits
  const auto shown = parse(to_text(*value));
  if constexpr (std::is_same_v<T, Time>) {
    if (*value == Time::never()) return;
  }
  FUZZ_CHECK(shown.has_value());
  FUZZ_CHECK(near(size_of(*shown), size_of(*value)));
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string_view text = fuzz::view(data, size);
  check<Time>(text, parse_time);
  check<Bytes>(text, parse_bytes);
  check<Bandwidth>(text, parse_bandwidth);
  check<FlopRate>(text, parse_flop_rate);
  check<Power>(text, parse_power);
  check<Frequency>(text, parse_frequency);
  check<Rate>(text, parse_rate);
  const auto size_value = parse_bytes(text);
  if (size_value) {
    for (const Bandwidth rate : {Bandwidth{0}, Bandwidth{1}, 400_Gbps, Bandwidth{INT64_MAX}}) {
      const Time time = transfer_time(*size_value, rate);
      FUZZ_CHECK(time.ps >= 0);
      FUZZ_CHECK(rate_over(*size_value, time).bps >= 0);
    }
  }
  return 0;
}
