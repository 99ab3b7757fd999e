// SPDX-License-Identifier: Apache-2.0
#include "sim/core/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace weft {
namespace {

__extension__ typedef unsigned __int128 Wide;

// A decimal number as written: digits * 10^exponent, without the binary rounding of a double.
struct Decimal {
  std::uint64_t digits = 0;  // at most 19 significant ones; later ones are below any base unit
  int exponent = 0;
};

struct IntegerUnit {
  std::string_view name;
  std::int64_t scale;  // base units in one of these
};

struct RealUnit {
  std::string_view name;
  int exponent;  // power of ten of the base unit
};

constexpr std::int64_t kKibi = 1LL << 10, kMebi = 1LL << 20, kGibi = 1LL << 30, kTebi = 1LL << 40,
                       kPebi = 1LL << 50;
constexpr std::int64_t kKilo = 1'000, kMega = 1'000'000, kGiga = 1'000'000'000;
constexpr std::int64_t kTera = 1'000'000'000'000, kPeta = 1000 * kTera;

constexpr std::array<IntegerUnit, 7> kTimeUnits{{{"ps", 1},
                                                 {"ns", kKilo},
                                                 {"us", kMega},
                                                 {"ms", kGiga},
                                                 {"s", kTera},
                                                 {"min", 60 * kTera},
                                                 {"h", 3600 * kTera}}};

constexpr std::array<IntegerUnit, 6> kDecimalByteUnits{
    {{"B", 1}, {"KB", kKilo}, {"MB", kMega}, {"GB", kGiga}, {"TB", kTera}, {"PB", kPeta}}};
constexpr std::array<IntegerUnit, 6> kBinaryByteUnits{
    {{"B", 1}, {"KiB", kKibi}, {"MiB", kMebi}, {"GiB", kGibi}, {"TiB", kTebi}, {"PiB", kPebi}}};

constexpr std::array<IntegerUnit, 5> kBitRateUnits{
    {{"b/s", 1}, {"Kb/s", kKilo}, {"Mb/s", kMega}, {"Gb/s", kGiga}, {"Tb/s", kTera}}};
constexpr std::array<IntegerUnit, 5> kByteRateUnits{{{"B/s", 8},
                                                     {"KB/s", 8 * kKilo},
                                                     {"MB/s", 8 * kMega},
                                                     {"GB/s", 8 * kGiga},
                                                     {"TB/s", 8 * kTera}}};
constexpr std::array<IntegerUnit, 8> kBinaryRateUnits{{{"Kib/s", kKibi},
                                                       {"Mib/s", kMebi},
                                                       {"Gib/s", kGibi},
                                                       {"Tib/s", kTebi},
                                                       {"KiB/s", 8 * kKibi},
                                                       {"MiB/s", 8 * kMebi},
                                                       {"GiB/s", 8 * kGibi},
                                                       {"TiB/s", 8 * kTebi}}};

constexpr std::array<RealUnit, 7> kFlopUnits{{{"FLOP/s", 0},
                                              {"KFLOP/s", 3},
                                              {"MFLOP/s", 6},
                                              {"GFLOP/s", 9},
                                              {"TFLOP/s", 12},
                                              {"PFLOP/s", 15},
                                              {"EFLOP/s", 18}}};
constexpr std::array<RealUnit, 3> kPowerUnits{{{"W", 0}, {"kW", 3}, {"MW", 6}}};
constexpr std::array<RealUnit, 4> kFrequencyUnits{{{"Hz", 0}, {"kHz", 3}, {"MHz", 6}, {"GHz", 9}}};
constexpr std::array<RealUnit, 4> kRateUnits{{{"/s", 0}, {"K/s", 3}, {"M/s", 6}, {"G/s", 9}}};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes a JSON-like number off the front of `text`: digits [. digits] [e [sign] digits].
std::optional<Decimal> take_decimal(std::string_view& text) {
  constexpr std::uint64_t kFull = 1'000'000'000'000'000'000ULL;
  constexpr int kExponentLimit = 100'000;
  Decimal out;
  std::size_t i = 0;
  const auto take_digits = [&](bool fraction) {
    const std::size_t first = i;
    for (; i < text.size() && is_digit(text[i]); ++i) {
      const auto digit = static_cast<std::uint64_t>(text[i] - '0');
      if (out.digits < kFull) {
        out.digits = out.digits * 10 + digit;
        out.exponent -= fraction ? 1 : 0;
      } else {
        out.exponent += fraction ? 0 : 1;
      }
    }
    return i > first;
  };
  if (text.size() > kExponentLimit || !take_digits(false)) return std::nullopt;
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (!take_digits(true)) return std::nullopt;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    const bool negative = i < text.size() && text[i] == '-';
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    const std::size_t first = i;
    int exponent = 0;
    for (; i < text.size() && is_digit(text[i]); ++i) {
      if (exponent < kExponentLimit) exponent = exponent * 10 + (text[i] - '0');
    }
    if (i == first) return std::nullopt;
    out.exponent += negative ? -exponent : exponent;
  }
  text.remove_prefix(i);
  if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return out;
}

// digits * scale * 10^exponent to the nearest integer, halves up; nullopt above 2^63 - 1.
std::optional<std::int64_t> to_base(Decimal number, std::int64_t scale) {
  constexpr Wide kMax = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
  if (number.digits == 0) return 0;
  Wide value = static_cast<Wide>(number.digits) * static_cast<Wide>(scale);  // < 10^19 * 2^52
  for (int e = number.exponent; e > 0; --e) {
    if (value > kMax) return std::nullopt;
    value *= 10;
  }
  if (number.exponent < 0) {
    constexpr int kLargestPower = 38;
    if (number.exponent < -kLargestPower) return 0;
    Wide power = 1;
    for (int e = number.exponent; e < 0; ++e) power *= 10;
    const Wide remainder = value % power;
    value = value / power + (remainder >= power - remainder ? 1 : 0);
  }
  if (value > kMax) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> parse_integer(
    std::string_view text, std::initializer_list<std::span<const IntegerUnit>> tables) {
  const auto number = take_decimal(text);
  if (!number) return std::nullopt;
  for (const auto table : tables) {
    for (const IntegerUnit& unit : table) {
      if (unit.name == text) return to_base(*number, unit.scale);
    }
  }
  return std::nullopt;
}

// The double nearest to the decimal value, prefix included: "1.41 GHz" is the double 1.41e9.
std::optional<double> parse_real(std::string_view text, std::span<const RealUnit> table) {
  const auto number = take_decimal(text);
  if (!number) return std::nullopt;
  for (const RealUnit& unit : table) {
    if (unit.name != text) continue;
    if (number->digits == 0) return 0.0;
    const std::string plain =
        fmt::format("{}e{}", number->digits, number->exponent + unit.exponent);
    double value = 0;
    const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
    if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

// Four significant digits and the unit of the table that leaves the number below 1000.
template <class Unit, class Scaled>
std::string four_digits(double value, std::span<const Unit> table, Scaled scaled) {
  const double size = std::fabs(value);
  std::size_t i = 0;
  while (i + 1 < table.size() && scaled(size, table[i]) >= scaled.limit(table[i], table[i + 1]))
    ++i;
  return fmt::format("{:.4g} {}", scaled(value, table[i]), table[i].name);
}

struct ByScale {
  double operator()(double value, const IntegerUnit& unit) const {
    return value / static_cast<double>(unit.scale);
  }
  // A number that would round to the next unit is shown in the next unit.
  double limit(const IntegerUnit& unit, const IntegerUnit& next) const {
    const double ratio = static_cast<double>(next.scale) / static_cast<double>(unit.scale);
    return ratio == 1000 ? 999.95 : ratio;
  }
};

struct ByPower {
  double operator()(double value, const RealUnit& unit) const {
    constexpr std::array<double, 7> kPowers{1, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18};
    return value / kPowers[static_cast<std::size_t>(unit.exponent / 3)];
  }
  double limit(const RealUnit&, const RealUnit&) const { return 999.95; }
};

std::string integer_text(std::int64_t value, std::span<const IntegerUnit> table) {
  return four_digits(static_cast<double>(value), table, ByScale{});
}
std::string real_text(double value, std::span<const RealUnit> table) {
  return four_digits(value, table, ByPower{});
}

template <class T, class U>
std::optional<T> wrap(std::optional<U> value) {
  if (!value) return std::nullopt;
  return T{*value};
}

}  // namespace

std::optional<Time> parse_time(std::string_view text) {
  return wrap<Time>(parse_integer(text, {kTimeUnits}));
}
std::optional<Bytes> parse_bytes(std::string_view text) {
  return wrap<Bytes>(parse_integer(text, {kDecimalByteUnits, kBinaryByteUnits}));
}
std::optional<Bandwidth> parse_bandwidth(std::string_view text) {
  return wrap<Bandwidth>(parse_integer(text, {kBitRateUnits, kByteRateUnits, kBinaryRateUnits}));
}
std::optional<FlopRate> parse_flop_rate(std::string_view text) {
  return wrap<FlopRate>(parse_real(text, kFlopUnits));
}
std::optional<Power> parse_power(std::string_view text) {
  return wrap<Power>(parse_real(text, kPowerUnits));
}
std::optional<Frequency> parse_frequency(std::string_view text) {
  return wrap<Frequency>(parse_real(text, kFrequencyUnits));
}
std::optional<Rate> parse_rate(std::string_view text) {
  return wrap<Rate>(parse_real(text, kRateUnits));
}

std::string to_text(Time time) {
  if (time == Time::never()) return "never";
  const double size = std::fabs(static_cast<double>(time.ps));
  const std::span<const IntegerUnit> units = kTimeUnits;
  if (size < 999.95 * kTera) return integer_text(time.ps, units.first(5));
  return integer_text(time.ps, units.subspan(5));
}

// Binary units unless only the decimal text is exact: "4 MiB", "64 MB", "1.465 KiB" for neither.
std::string to_text(Bytes size) {
  std::string binary = integer_text(size.count, kBinaryByteUnits);
  if (parse_bytes(binary) == size) return binary;
  std::string decimal = integer_text(size.count, kDecimalByteUnits);
  return parse_bytes(decimal) == size ? decimal : binary;
}

std::string to_text(Bandwidth rate) { return integer_text(rate.bps, kBitRateUnits); }
std::string to_text_bytes(Bandwidth rate) { return integer_text(rate.bps, kByteRateUnits); }
std::string to_text(FlopRate rate) { return real_text(rate.per_s, kFlopUnits); }
std::string to_text(Power power) { return real_text(power.watts, kPowerUnits); }
std::string to_text(Frequency frequency) { return real_text(frequency.hz, kFrequencyUnits); }
std::string to_text(Rate rate) { return real_text(rate.per_s, kRateUnits); }

std::string to_exact_text(Time time) { return fmt::format("{} ps", time.ps); }
std::string to_exact_text(Bytes size) { return fmt::format("{} B", size.count); }
std::string to_exact_text(Bandwidth rate) { return fmt::format("{} b/s", rate.bps); }

}  // namespace weft
