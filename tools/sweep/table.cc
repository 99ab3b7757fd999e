// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/table.hpp"

#include <map>

#include <fmt/format.h>

#include "tools/sweep/quantity.hpp"

namespace weft {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  return out + "\"";
}

std::string cell(const Json& json) {
  if (json.kind == Json::Kind::null) return {};
  return quoted(json.is_string() ? json.text : to_text(json, 0));
}

const Json& result_of(const Row& row, const std::string& name) {
  static const Json none;
  const Json* value = row.found->results.find(name);
  return value != nullptr ? *value : none;
}

// Powers of ten from base units to SI.
double si(const AxisQuantity& quantity) {
  return quantity.dimension == AxisDimension::time ? quantity.value / 1e12 : quantity.value;
}

// The values that an axis takes, each once and in the order of the points, as words and (where all are) as numbers.
class AxisValues {
 public:
  AxisValues(const Manifest& manifest, std::size_t axis) : name_(manifest.axes[axis]) {
    std::map<std::string, std::uint64_t> known;
    bool numbers = true;
    std::optional<AxisDimension> dimension;
    for (const Manifest::Point& point : manifest.points) {
      const Json& value = point.values[axis];
      std::string label = value.is_string() ? value.text : to_text(value, 0);
      const auto [at, added] = known.try_emplace(label, known.size());
      index_.push_back(at->second);
      if (!added) continue;
      const std::optional<AxisQuantity> quantity = quantity_of(value);
      numbers =
          numbers && quantity && quantity->dimension == dimension.value_or(quantity->dimension);
      if (numbers) {
        dimension = quantity->dimension;
        numbers_.push(si(*quantity));
      }
      labels_.push(std::move(label));
    }
    if (numbers && dimension) unit_ = unit_of(*dimension);
    if (!numbers) numbers_ = Json{};
  }
  Json json() const {
    Json out = Json::object();
    out.set("name", name_);
    out.set("labels", labels_);
    out.set("numbers", numbers_);
    out.set("unit", unit_);
    return out;
  }
  std::uint64_t index(std::size_t point) const { return index_[point]; }

 private:
  static std::string unit_of(AxisDimension dimension) {
    switch (dimension) {
      case AxisDimension::time:
        return "s";
      case AxisDimension::bytes:
        return "B";
      case AxisDimension::bandwidth:
        return "b/s";
      case AxisDimension::flop_rate:
        return "FLOP/s";
      case AxisDimension::power:
        return "W";
      case AxisDimension::frequency:
        return "Hz";
      case AxisDimension::rate:
        return "1/s";
      case AxisDimension::number:
        break;
    }
    return "";
  }

  std::string name_, unit_;
  Json labels_ = Json::array(), numbers_ = Json::array();
  std::vector<std::uint64_t> index_;
};

}  // namespace

std::vector<Row> rows_of(const Manifest& manifest, const StoreContents& contents) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < manifest.points.size(); ++i) {
    const auto found = contents.records.find(manifest.points[i].key);
    if (found != contents.records.end()) rows.push_back({i, &manifest.points[i], &found->second});
  }
  return rows;
}

std::string to_csv(const Manifest& manifest, const std::vector<Row>& rows) {
  std::string out = "point";
  for (const std::string& axis : manifest.axes) out += "," + quoted(axis);
  out += ",status";
  for (const std::string& output : manifest.outputs) out += "," + quoted(output);
  out += ",error\r\n";
  for (const Row& row : rows) {
    out += fmt::format("{}", row.point);
    for (const Json& value : row.asked->values) out += "," + cell(value);
    out += row.found->ok ? ",ok" : ",failed";
    for (const std::string& output : manifest.outputs) out += "," + cell(result_of(row, output));
    out += "," + quoted(row.found->error) + "\r\n";
  }
  return out;
}

Json to_json(const Manifest& manifest, const std::vector<Row>& rows) {
  Json out = Json::object();
  Json& head = out.set("weft", Json::object());
  head.set("version", manifest.engine);
  head.set("schema", 1);
  out.set("kind", "sweep-table");
  out.set("name", manifest.name);
  out.set("question", manifest.question);
  out.set("planned", std::uint64_t{manifest.points.size()});
  std::vector<AxisValues> axes;
  for (std::size_t a = 0; a < manifest.axes.size(); ++a) axes.emplace_back(manifest, a);
  Json all = Json::array();
  for (const AxisValues& axis : axes) all.push(axis.json());
  out.set("axes", std::move(all));
  Json outputs = Json::array();
  for (const std::string& output : manifest.outputs) outputs.push(output);
  out.set("outputs", std::move(outputs));
  if (manifest.front.is_object()) out.set("pareto", manifest.front);
  Json points = Json::array();
  for (const Row& row : rows) {
    Json point = Json::array(), at = Json::array(), results = Json::array();
    for (const AxisValues& axis : axes) at.push(axis.index(row.point));
    for (const std::string& output : manifest.outputs) results.push(result_of(row, output));
    point.push(std::uint64_t{row.point});
    point.push(std::move(at));
    point.push(row.found->ok ? std::move(results) : Json(row.found->error));
    points.push(std::move(point));
  }
  out.set("points", std::move(points));
  return out;
}

}  // namespace weft
