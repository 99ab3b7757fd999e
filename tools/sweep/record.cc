// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/record.hpp"

#include <fmt/format.h>

#include "sim/core/hash.hpp"

namespace weft {
namespace {

constexpr std::string_view kHead = "{\"check\":\"", kMiddle = "\",\"record\":", kTail = "}";
constexpr std::size_t kDigits = 16;
constexpr std::size_t kBody = kHead.size() + kDigits + kMiddle.size();

std::string check_of(std::string_view body) { return fmt::format("{:016x}", stable_hash(body)); }

}  // namespace

std::string to_line(const Record& record) {
  Json json = Json::object();
  json.set("key", record.key);
  json.set("status", record.ok ? "ok" : "failed");
  if (record.ok)
    json.set("results", record.results);
  else
    json.set("error", record.error);
  json.set("wall_s", record.wall_s);
  const std::string body = to_text(json, 0);
  return fmt::format("{}{}{}{}{}\n", kHead, check_of(body), kMiddle, body, kTail);
}

std::optional<Record> read_line(std::string_view line) {
  if (line.size() < kBody + kTail.size() || !line.starts_with(kHead) || !line.ends_with(kTail) ||
      line.substr(kHead.size() + kDigits, kMiddle.size()) != kMiddle)
    return std::nullopt;
  const std::string_view body = line.substr(kBody, line.size() - kBody - kTail.size());
  if (line.substr(kHead.size(), kDigits) != check_of(body)) return std::nullopt;
  Diagnostics problems;
  const Json json = parse_json(body, {}, problems);
  const Json *key = json.find("key"), *status = json.find("status");
  if (!problems.ok() || key == nullptr || !key->is_string() || status == nullptr)
    return std::nullopt;
  Record record;
  record.key = key->text;
  record.ok = status->text == "ok";
  if (const Json* results = json.find("results")) record.results = *results;
  if (const Json* error = json.find("error")) record.error = error->text;
  if (const Json* wall = json.find("wall_s")) record.wall_s = wall->number;
  return record;
}

}  // namespace weft
