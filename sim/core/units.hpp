// SPDX-License-Identifier: Apache-2.0
// Quantities that cannot be mixed up, and the one rule by which bytes become time.
//
// Law:      transfer_time(size, rate) = ceil(8 * size * 10^12 / rate) picoseconds, exact in 128 bits, rounded up once.
// Assumes:  |Time| < 2^63 ps (106 days), sizes below 2^63 B, rates below 2^63 b/s. Sums and products saturate at those bounds: never() + t is never().
// Example:  transfer_time(4096_B, 450_GBps) is 9103 ps.
//
// Literals: 500_ns, 400_Gbps (bits), 50_GBps (bytes), 4_MiB. In files the same quantities are text, see parse_time().
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

namespace units_detail {
using Limits = std::numeric_limits<std::int64_t>;
constexpr std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (!__builtin_add_overflow(a, b, &out)) return out;
  return b < 0 ? Limits::min() : Limits::max();
}
constexpr std::int64_t difference(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (!__builtin_sub_overflow(a, b, &out)) return out;
  return b > 0 ? Limits::min() : Limits::max();
}
constexpr std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (!__builtin_mul_overflow(a, b, &out)) return out;
  return (a < 0) != (b < 0) ? Limits::min() : Limits::max();
}
// The nearest integer of a value that is not negative; halves up.
constexpr std::int64_t rounded(double value) {
  return value < 9.2233720368547e18 ? static_cast<std::int64_t>(value + 0.5) : Limits::max();
}
}  // namespace units_detail

struct Time {
  std::int64_t ps = 0;

  static constexpr Time never() { return {std::numeric_limits<std::int64_t>::max()}; }
  constexpr double seconds() const { return static_cast<double>(ps) * 1e-12; }
  constexpr double us() const { return static_cast<double>(ps) * 1e-6; }

  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time a, Time b) { return {units_detail::sum(a.ps, b.ps)}; }
  friend constexpr Time operator-(Time a, Time b) { return {units_detail::difference(a.ps, b.ps)}; }
  friend constexpr Time operator*(Time a, std::int64_t n) {
    return {units_detail::product(a.ps, n)};
  }
  friend constexpr Time operator*(std::int64_t n, Time a) {
    return {units_detail::product(a.ps, n)};
  }
  constexpr Time& operator+=(Time b) { return *this = *this + b; }
  constexpr Time& operator-=(Time b) { return *this = *this - b; }
};

struct Bytes {
  std::int64_t count = 0;

  constexpr double value() const { return static_cast<double>(count); }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    return {units_detail::sum(a.count, b.count)};
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    return {units_detail::difference(a.count, b.count)};
  }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) {
    return {units_detail::product(a.count, n)};
  }
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
};

// Bits per second, per direction.
struct Bandwidth {
  std::int64_t bps = 0;

  constexpr double gbytes_per_s() const { return static_cast<double>(bps) / 8e9; }
  constexpr double bytes_per_s() const { return static_cast<double>(bps) / 8.0; }
  constexpr double bytes_per_ps() const { return static_cast<double>(bps) / 8e12; }

  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;
  friend constexpr Bandwidth operator+(Bandwidth a, Bandwidth b) {
    return {units_detail::sum(a.bps, b.bps)};
  }
  friend constexpr Bandwidth operator*(Bandwidth a, std::int64_t n) {
    return {units_detail::product(a.bps, n)};
  }
  // Scales by a dimensionless factor (an efficiency); rounds to the nearest bit per second.
  friend constexpr Bandwidth scaled(Bandwidth a, double factor) {
    return {units_detail::rounded(static_cast<double>(a.bps) * factor)};
  }
};

// Floating-point operations per second.
struct FlopRate {
  double per_s = 0;
  friend constexpr auto operator<=>(FlopRate, FlopRate) = default;
};
struct Power {
  double watts = 0;
  friend constexpr auto operator<=>(Power, Power) = default;
};
struct Frequency {
  double hz = 0;
  friend constexpr auto operator<=>(Frequency, Frequency) = default;
};
// Operations or messages per second ("200 M/s").
struct Rate {
  double per_s = 0;
  friend constexpr auto operator<=>(Rate, Rate) = default;
};

constexpr Time transfer_time(Bytes size, Bandwidth rate) {
  if (size.count <= 0) return {0};
  if (rate.bps <= 0) return Time::never();
  __extension__ typedef unsigned __int128 Wide;
  const Wide bit_picoseconds = static_cast<Wide>(size.count) * 8 * 1'000'000'000'000ULL;
  const Wide divisor = static_cast<Wide>(rate.bps);
  const Wide ps = (bit_picoseconds + divisor - 1) / divisor;
  return ps > static_cast<Wide>(Time::never().ps) ? Time::never()
                                                  : Time{static_cast<std::int64_t>(ps)};
}

// The rate at which `size` takes `duration`; zero for an empty duration.
constexpr Bandwidth rate_over(Bytes size, Time duration) {
  if (duration.ps <= 0) return {0};
  const double bps = static_cast<double>(size.count) * 8e12 / static_cast<double>(duration.ps);
  return {units_detail::rounded(bps)};
}

// Text with units, as written in files: "500 ns", "4 MiB", "400 Gb/s", "50 GB/s", "312 TFLOP/s", "400 W", "1.41 GHz",
// "200 M/s". G = 10^9, Gi = 2^30, b = bit, B = byte. nullopt when the text is not exactly one non-negative number and
// one known unit, or the value does not fit. A negative or non-finite number is refused too.
std::optional<Time> parse_time(std::string_view text);
std::optional<Bytes> parse_bytes(std::string_view text);
std::optional<Bandwidth> parse_bandwidth(std::string_view text);
std::optional<FlopRate> parse_flop_rate(std::string_view text);
std::optional<Power> parse_power(std::string_view text);
std::optional<Frequency> parse_frequency(std::string_view text);
std::optional<Rate> parse_rate(std::string_view text);

// Text for people, three or four significant digits: "1.235 ms", "4 MiB", "400 Gb/s", "50 GB/s".
std::string to_text(Time);
std::string to_text(Bytes);
std::string to_text(Bandwidth);        // bits: "400 Gb/s"
std::string to_text_bytes(Bandwidth);  // bytes: "50 GB/s"
std::string to_text(FlopRate);
std::string to_text(Power);
std::string to_text(Frequency);
std::string to_text(Rate);

// Text that parses back to exactly the same value, for files that weft writes: "1234567 ps", "4194304 B", "400000000000 b/s".
std::string to_exact_text(Time);
std::string to_exact_text(Bytes);
std::string to_exact_text(Bandwidth);

inline namespace literals {
consteval Time operator""_ps(unsigned long long v) { return {static_cast<std::int64_t>(v)}; }
consteval Time operator""_ns(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000};
}
consteval Time operator""_us(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000};
}
consteval Time operator""_ms(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000'000};
}
consteval Time operator""_s(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000'000'000};
}
consteval Bytes operator""_B(unsigned long long v) { return {static_cast<std::int64_t>(v)}; }
consteval Bytes operator""_KiB(unsigned long long v) {
  return {static_cast<std::int64_t>(v) << 10};
}
consteval Bytes operator""_MiB(unsigned long long v) {
  return {static_cast<std::int64_t>(v) << 20};
}
consteval Bytes operator""_GiB(unsigned long long v) {
  return {static_cast<std::int64_t>(v) << 30};
}
consteval Bytes operator""_KB(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000};
}
consteval Bytes operator""_MB(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000};
}
consteval Bytes operator""_GB(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000'000};
}
consteval Bandwidth operator""_Mbps(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000};
}
consteval Bandwidth operator""_Gbps(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000'000};
}
consteval Bandwidth operator""_GBps(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 8'000'000'000};
}
}  // namespace literals

}  // namespace weft
