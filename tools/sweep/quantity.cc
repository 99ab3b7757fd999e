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

std::optional<AxisQuantity> quantity_of(const Json& json) {
  if (json.is_number())
    return AxisQuantity{json.number, AxisDimension::number, json.kind == Json::Kind::integer};
  if (!json.is_string()) return std::nullopt;
  const std::string& text = json.text;
  if (const auto v = parse_time(text))
    return AxisQuantity{static_cast<double>(v->ps), AxisDimension::time, true};
  if (const auto v = parse_bytes(text)) return AxisQuantity{v->value(), AxisDimension::bytes, true};
  if (const auto v = parse_bandwidth(text))
    return AxisQuantity{static_cast<double>(v->bps), AxisDimension::bandwidth, true};
  if (const auto v = parse_flop_rate(text))
    return AxisQuantity{v->per_s, AxisDimension::flop_rate, false};
  if (const auto v = parse_power(text)) return AxisQuantity{v->watts, AxisDimension::power, false};
  if (const auto v = parse_frequency(text))
    return AxisQuantity{v->hz, AxisDimension::frequency, false};
  if (const auto v = parse_rate(text)) return AxisQuantity{v->per_s, AxisDimension::rate, false};
  return std::nullopt;
}

Json to_value(const AxisQuantity& quantity) {
  const double v = quantity.value;
  switch (quantity.dimension) {
    case AxisDimension::number:
      return quantity.whole ? Json(rounded(v)) : Json(v);
    case AxisDimension::time:
      return short_text(Time{rounded(v)}, parse_time);
    case AxisDimension::bytes:
      return short_text(Bytes{rounded(v)}, parse_bytes);
    case AxisDimension::bandwidth:
      return short_text(Bandwidth{rounded(v)}, parse_bandwidth);
    case AxisDimension::flop_rate:
      return config_detail::write(FlopRate{v});
    case AxisDimension::power:
      return config_detail::write(Power{v});
    case AxisDimension::frequency:
      return config_detail::write(Frequency{v});
    case AxisDimension::rate:
      return config_detail::write(Rate{v});
  }
  return {};
}

std::string_view name_of(AxisDimension dimension) {
  switch (dimension) {
    case AxisDimension::number:
      return "a number";
    case AxisDimension::time:
      return "a time";
    case AxisDimension::bytes:
      return "a size";
    case AxisDimension::bandwidth:
      return "a bandwidth";
    case AxisDimension::flop_rate:
      return "a rate of operations";
    case AxisDimension::power:
      return "a power";
    case AxisDimension::frequency:
      return "a frequency";
    case AxisDimension::rate:
      return "a rate";
  }
  return "";
}

}  // namespace weft
