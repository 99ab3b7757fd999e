// SPDX-License-Identifier: Apache-2.0
// Hashes that are the same on every machine, compiler and run: names of random streams, keys of scenarios, and the
// fingerprint of a run. Not for secrets.
//
// A Fingerprint depends on the values and on their order, so two runs with the same fingerprint did the same things in the
// same order; a changed one says that something moved, not what. Strings go through XXH3 (xxHash 0.8, frozen format).
//
//   Fingerprint trace;
//   trace.add(event.when).add(event.target).add("delivered");
//   report.fingerprint = trace.hex();                          // "9f3c0a51d2b47e86"
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "sim/core/units.hpp"

namespace weft {

// A bijection of 64 bits in which every input bit moves about half of the output bits (SplitMix64's finaliser, variant 13 of
// D. Stafford; Steele, Lea, Flood, OOPSLA 2014).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::uint64_t stable_hash(std::string_view text, std::uint64_t seed = 0);

class Fingerprint {
 public:
  template <std::integral I>
  Fingerprint& add(I value) {
    return mix(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
  template <class E>
  requires std::is_enum_v<E> Fingerprint& add(E value) {
    return add(static_cast<std::underlying_type_t<E>>(value));
  }
  Fingerprint& add(double value) {
    return mix(std::bit_cast<std::uint64_t>(value));
  }  // the bits: -0 is not 0
  Fingerprint& add(std::string_view text) { return mix(text.size()).mix(stable_hash(text)); }
  Fingerprint& add(Time value) { return add(value.ps); }
  Fingerprint& add(Bytes value) { return add(value.count); }
  Fingerprint& add(Bandwidth value) { return add(value.bps); }

  std::uint64_t value() const { return mix64(state_ ^ count_); }
  std::string hex() const;  // 16 lower-case digits

 private:
  Fingerprint& mix(std::uint64_t value) {
    state_ = mix64(state_ * 0x9e3779b97f4a7c15ULL + value);
    ++count_;
    return *this;
  }

  std::uint64_t state_ = 0x2545f4914f6cdd1dULL;
  std::uint64_t count_ = 0;
};

}  // namespace weft
