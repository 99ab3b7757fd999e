// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/table.hpp"

#include <fmt/format.h>

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
  Json out = to_json(manifest);
  out.set("kind", "sweep-table");
  out.set("planned", std::uint64_t{manifest.points.size()});
  Json points = Json::array();
  for (const Row& row : rows) {
    Json point = Json::object();
    point.set("point", std::uint64_t{row.point});
    Json axes = Json::array(), outputs = Json::array();
    for (const Json& value : row.asked->values) axes.push(value);
    for (const std::string& output : manifest.outputs) outputs.push(result_of(row, output));
    point.set("axes", std::move(axes));
    if (row.found->ok)
      point.set("outputs", std::move(outputs));
    else
      point.set("error", row.found->error);
    points.push(std::move(point));
  }
  out.set("points", std::move(points));
  return out;
}

}  // namespace weft
