// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/quantity.hpp"

#include <cmath>

#include "sim/core/config.hpp"
#include "sim/core/units.hpp"

namespace weft {
namespace {

std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::llround(value)); }

// "64 MiB" where that says it all, else every digit.
template <class T>
Json short_text(T value, std::optional<T> (*parse)(std::string_view)) {
  std::string text = to_text(value);
  if (parse(text) == value) return Json(std::move(text));
  return config_detail::write(value);
}

}  // namespace

std::optional<Quantity> quantity_of(const Json& json) {
  if (json.is_number())
    return Quantity{json.number, Dimension::number, json.kind == Json::Kind::integer};
  if (!json.is_string()) return std::nullopt;
  const std::string& text = json.text;
  if (const auto v = parse_time(text))
    return Quantity{static_cast<double>(v->ps), Dimension::time, true};
  if (const auto v = parse_bytes(text)) return Quantity{v->value(), Dimension::bytes, true};
  if (const auto v = parse_bandwidth(text))
    return Quantity{static_cast<double>(v->bps), Dimension::bandwidth, true};
  if (const auto v = parse_flop_rate(text)) return Quantity{v->per_s, Dimension::flop_rate, false};
  if (const auto v = parse_power(text)) return Quantity{v->watts, Dimension::power, false};
  if (const auto v = parse_frequency(text)) return Quantity{v->hz, Dimension::frequency, false};
  if (const auto v = parse_rate(text)) return Quantity{v->per_s, Dimension::rate, false};
  return std::nullopt;
}

Json to_value(const Quantity& quantity) {
  const double v = quantity.value;
  switch (quantity.dimension) {
    case Dimension::number:
      return quantity.whole ? Json(rounded(v)) : Json(v);
    case Dimension::time:
      return short_text(Time{rounded(v)}, parse_time);
    case Dimension::bytes:
      return short_text(Bytes{rounded(v)}, parse_bytes);
    case Dimension::bandwidth:
      return short_text(Bandwidth{rounded(v)}, parse_bandwidth);
    case Dimension::flop_rate:
      return config_detail::write(FlopRate{v});
    case Dimension::power:
      return config_detail::write(Power{v});
    case Dimension::frequency:
      return config_detail::write(Frequency{v});
    case Dimension::rate:
      return config_detail::write(Rate{v});
  }
  return {};
}

std::string_view name_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::number:
      return "a number";
    case Dimension::time:
      return "a time";
    case Dimension::bytes:
      return "a size";
    case Dimension::bandwidth:
      return "a bandwidth";
    case Dimension::flop_rate:
      return "a rate of operations";
    case Dimension::power:
      return "a power";
    case Dimension::frequency:
      return "a frequency";
    case Dimension::rate:
      return "a rate";
  }
  return "";
}

}  // namespace weft
