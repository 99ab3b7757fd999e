// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/axes.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "tools/sweep/quantity.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostValues = 100'000;
// Columns of a table that are no axes.
constexpr std::string_view kReserved[] = {"point", "key", "status", "error", "wall_s"};

// Two ends of one dimension, or nothing and a problem.
std::optional<std::pair<AxisQuantity, AxisQuantity>> ends(const Json& from, const Json& to,
                                                          const std::string& pointer,
                                                          Diagnostics& out) {
  std::optional<AxisQuantity> both[2];
  const Json* json[] = {&from, &to};
  for (int i = 0; i < 2; ++i) {
    both[i] = quantity_of(*json[i]);
    if (!both[i])
      out.error(json[i]->place, fmt::format("{}/{}", pointer, i == 0 ? "from" : "to"),
                "a range needs numbers or quantities at its ends", R"(e.g. 8, "1 MiB", "10 us")");
  }
  if (!both[0] || !both[1]) return std::nullopt;
  if (both[0]->dimension != both[1]->dimension) {
    out.error(to.place, pointer + "/to",
              fmt::format("the range begins with {} and ends with {}", name_of(both[0]->dimension),
                          name_of(both[1]->dimension)));
    return std::nullopt;
  }
  return std::pair{*both[0], *both[1]};
}

void too_many(Place place, const std::string& pointer, Diagnostics& out) {
  out.error(place, pointer, fmt::format("more than {} values", kMostValues),
            "take larger steps or fewer values");
}

std::vector<Json> values_of(const RangeSpec& range, const std::string& pointer, Diagnostics& out) {
  const auto both = ends(range.from, range.to, pointer, out);
  if (!both) return {};
  const auto [from, to] = *both;
  const bool stepped = range.step.kind != Json::Kind::null;
  if (stepped == range.count.has_value()) {
    out.error(range.place, pointer, R"(a range needs "step" or "count", and not both)");
    return {};
  }
  AxisQuantity at = from;
  std::vector<Json> values;
  if (range.count) {
    if (*range.count > static_cast<std::int64_t>(kMostValues)) {
      too_many(range.place, pointer, out);
      return {};
    }
    const double gap = (to.value - from.value) / static_cast<double>(*range.count - 1);
    if (from.dimension == AxisDimension::number)
      at.whole = from.whole && to.whole && gap == std::floor(gap);
    for (std::int64_t i = 0; i < *range.count; ++i) {
      at.value = from.value + static_cast<double>(i) * gap;
      values.push_back(to_value(at));
    }
    return values;
  }
  const std::optional<AxisQuantity> step = quantity_of(range.step);
  if (!step || step->dimension != from.dimension || step->value == 0 ||
      (step->value > 0) != (to.value >= from.value)) {
    out.error(range.step.place, pointer + "/step",
              fmt::format("steps of {} do not lead from {} to {}", to_text(range.step, 0),
                          to_text(range.from, 0), to_text(range.to, 0)),
              step && step->dimension == from.dimension ? "above zero when the range rises, below "
                                                          "it when it falls"
                                                        : "give it the unit of the ends");
    return {};
  }
  const double steps = (to.value - from.value) / step->value;
  if (steps >= static_cast<double>(kMostValues)) {
    too_many(range.place, pointer, out);
    return {};
  }
  if (from.dimension == AxisDimension::number) at.whole = from.whole && step->whole;
  constexpr double kRounding = 1e-9;  // ten steps of 0.1 reach 1
  for (std::size_t i = 0; static_cast<double>(i) <= steps + kRounding; ++i) {
    at.value = from.value + static_cast<double>(i) * step->value;
    values.push_back(to_value(at));
  }
  return values;
}

std::vector<Json> values_of(const LogRangeSpec& range, const std::string& pointer,
                            Diagnostics& out) {
  const auto both = ends(range.from, range.to, pointer, out);
  if (!both) return {};
  const auto [from, to] = *both;
  for (const auto& [value, json, key] :
       {std::tuple{from.value, &range.from, "/from"}, {to.value, &range.to, "/to"}}) {
    if (value > 0) continue;
    out.error(json->place, pointer + key, "a log range needs ends above zero");
    return {};
  }
  if (range.factor.has_value() == range.count.has_value()) {
    out.error(range.place, pointer, R"(a log range needs "factor" or "count", and not both)");
    return {};
  }
  if (range.factor && to.value < from.value) {
    out.error(range.to.place, pointer + "/to", "the range ends before it begins",
              "swap \"from\" and \"to\"");
    return {};
  }
  const double span = std::log(to.value / from.value);
  const double gap =
      range.factor ? std::log(*range.factor) : span / static_cast<double>(*range.count - 1);
  constexpr double kRounding = 1e-9;
  const double steps =
      range.factor ? std::floor(span / gap + kRounding) : static_cast<double>(*range.count - 1);
  if (steps >= static_cast<double>(kMostValues)) {
    too_many(range.place, pointer, out);
    return {};
  }
  AxisQuantity at = from;
  if (from.dimension == AxisDimension::number)
    at.whole =
        from.whole && to.whole && (range.count || *range.factor == std::floor(*range.factor));
  std::vector<Json> values;
  std::optional<std::int64_t> before;
  for (std::size_t i = 0; static_cast<double>(i) <= steps; ++i) {
    at.value = from.value * (range.factor ? std::pow(*range.factor, static_cast<double>(i))
                                          : std::exp(static_cast<double>(i) * gap));
    if (range.count && static_cast<double>(i) == steps) at.value = to.value;
    if (at.whole) {  // small integers meet when they are rounded
      const std::int64_t now = std::llround(at.value);
      if (before == now) continue;
      before = now;
    }
    values.push_back(to_value(at));
  }
  return values;
}

Axis read_line(const AxisLine& line, Diagnostics& out) {
  Axis axis{line.name, line.target, {}, line.place, line.pointer};
  if (!line.target.empty()) {
    const auto keys = parse_pointer(line.target);
    if (!keys || keys->empty()) {
      out.error(line.place, line.pointer + "/pointer",
                fmt::format("\"{}\" is not a JSON pointer to a value", line.target),
                "start with \"/\", e.g. \"/fabric/servers\"");
    } else if (axis.name.empty()) {
      axis.name = keys->back();
    }
  } else if (axis.name.empty()) {
    out.error(line.place, line.pointer, R"(an axis needs "pointer" or "name")",
              R"(e.g. "pointer": "/fabric/servers")");
  }
  const int ways = (line.values.empty() ? 0 : 1) + (line.range ? 1 : 0) + (line.log_range ? 1 : 0);
  if (ways != 1) {
    out.error(line.place, line.pointer,
              ways == 0 ? "the axis has no values" : "the axis gives its values in several ways",
              R"(give one of "values", "range" and "log_range")");
    return axis;
  }
  if (line.range) {
    axis.values = values_of(*line.range, line.pointer + "/range", out);
  } else if (line.log_range) {
    axis.values = values_of(*line.log_range, line.pointer + "/log_range", out);
  } else {
    axis.values = line.values;
  }
  for (Json& value : axis.values) {
    if (value.place.line == 0) value.place = line.place;
  }
  return axis;
}

bool is_within(const std::string& inner, const std::string& outer) {
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '/');
}

}  // namespace

std::string column_key(const std::string& name) {
  std::string out = name;
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool is_reserved_column(const std::string& name) {
  return std::ranges::find(kReserved, column_key(name)) != std::end(kReserved);
}

std::vector<AxisGroup> read_axes(const std::vector<AxisSpec>& specs, Diagnostics& out) {
  std::vector<AxisGroup> groups;
  std::vector<std::pair<Axis, const AxisLine*>> all;
  for (const AxisSpec& spec : specs) {
    AxisGroup& group = groups.emplace_back();
    if (spec.together.empty()) {
      group.push_back(read_line(spec, out));
      all.emplace_back(group.back(), &spec);
      continue;
    }
    if (!spec.name.empty() || !spec.target.empty() || !spec.values.empty() || spec.range ||
        spec.log_range)
      out.error(spec.place, spec.pointer, R"(nothing may stand beside "together")",
                "put it into an axis of its own inside");
    for (const AxisLine& line : spec.together) {
      group.push_back(read_line(line, out));
      all.emplace_back(group.back(), &line);
      const std::size_t here = group.back().values.size(), first = group.front().values.size();
      if (here != first && here > 0 && first > 0)
        out.error(line.place, line.pointer,
                  fmt::format("{} values beside {} of \"{}\"", here, first, group.front().name),
                  "axes together have as many values each");
    }
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [axis, line] = all[i];
    if (axis.name.empty()) continue;
    if (is_reserved_column(axis.name)) {
      out.error(line->place, line->pointer,
                fmt::format("\"{}\" is a column that every table has", axis.name),
                "give the axis another \"name\"");
    } else if (!names.insert(column_key(axis.name)).second) {
      out.error(line->place, line->pointer,
                fmt::format("there are two axes named \"{}\"", axis.name),
                "give one of them another \"name\", different in more than upper and lower case");
    }
    for (std::size_t j = 0; j < i && !axis.target.empty(); ++j) {
      if (all[j].first.target.empty() || !is_within(all[j].first.target, axis.target)) continue;
      out.error(line->place, line->pointer,
                fmt::format("it replaces what the axis \"{}\" has set", all[j].first.name),
                "put it before that axis");
    }
  }
  return groups;
}

}  // namespace weft
