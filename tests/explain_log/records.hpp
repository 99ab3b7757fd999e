// SPDX-License-Identifier: Apache-2.0
// Validation records as questions about logs: what the verb would ask had the table been its log.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "calibrate/explain_log.hpp"
#include "calibrate/validate_case.hpp"
#include "sim/core/loader.hpp"
#include "sim/run/run.hpp"
#include "tests/support/nccl_records.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"

namespace weft::explain_test {

using test::nccl_records;
inline const Dataset& dataset() { return nccl_records().dataset; }

// In-place times of a published table, by size; empty where it has none.
inline std::map<std::int64_t, double> in_place_us(const std::string& id) {
  std::map<std::int64_t, double> out;
  const Json& record = nccl_records().published.at(id);
  const Json* columns = record.find("columns");
  if (columns == nullptr) return out;
  const auto column = [&](std::string_view name) {
    return std::ranges::find(columns->items, name, &Json::text) - columns->items.begin();
  };
  const auto count = static_cast<std::ptrdiff_t>(columns->items.size());
  const auto size = column("bytes");
  auto time = column("time_us_in_place");
  if (time == count) time = column("time_us_ip");
  if (size == count || time == count) return out;
  for (const Json& row : record.find("rows")->items) {
    const Json& us = row.items[static_cast<std::size_t>(time)];
    if (us.is_number() && us.number > 0)
      out[row.items[static_cast<std::size_t>(size)].integer] = us.number;
  }
  return out;
}

inline const ValidationRecord& record(const std::string& id) {
  for (const ValidationRecord& found : dataset().records) {
    if (found.id == id) return found;
  }
  throw std::runtime_error("no record " + id);
}

inline std::vector<Json> socket_nics() {
  Configs files(find_configs_root());
  Diagnostics diagnostics;
  Loader loader(files, diagnostics);
  std::vector<Json> out;
  for (const char* name : {"eth-25g-tcp", "eth-100g-tcp"})
    out.push_back(loader.load_component("model", name));
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
  return out;
}

// A question about the first GPUs of `nodes` servers, or those at `positions` of each, without rows.
inline LogQuestion question_on(const std::string& reference, Settings sets, std::int64_t nodes,
                               std::int64_t per_node,
                               const std::vector<std::int64_t>& positions = {}) {
  LogQuestion out;
  if (nodes > 1) sets.emplace_back("/servers", Json(nodes));
  Diagnostics diagnostics;
  out.fabric = std::make_shared<const Fabric>(load_fabric(reference, sets, diagnostics).fabric);
  std::map<ServerId, std::int64_t> taken;
  for (const NodeId gpu : out.fabric->gpus()) {
    const ServerId server = out.fabric->node(gpu).server;
    if (server.v >= nodes) continue;
    const std::int64_t position = taken[server]++;
    if (positions.empty() ? position < per_node
                          : std::ranges::find(positions, position) != positions.end())
      out.gpus.push_back(gpu);
  }
  out.socket_nics = socket_nics();
  return out;
}

// One question per set of GPUs that the record covers.
inline std::vector<LogQuestion> questions(const ValidationRecord& record) {
  const NcclCase& ask = record.nccl;
  const Settings sets = settings_of(ask.set);
  EXPECT_EQ(ask.set.find("/servers"), nullptr);
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const CaseRow*>> groups;
  for (const CaseRow& row : record.rows)
    groups[{row.nodes, row.gpus_per_node.value_or(ask.gpus_per_node.value_or(100'000))}].push_back(
        &row);
  std::vector<LogQuestion> out;
  for (const auto& [shape, rows] : groups) {
    LogQuestion& question =
        out.emplace_back(question_on(ask.fabric, sets, shape.first, shape.second, ask.gpus));
    question.collective = ask.collective;
    if (const auto version = parse_nccl_version(ask.nccl)) question.setup.version = *version;
    question.setup.harness = ask.harness;
    question.setup.algorithm = ask.algorithm;
    question.setup.protocol = ask.protocol;
    for (const auto& [name, value] : ask.env) question.setup.environment.variables[name] = value;
    const double factor = busbw_factor(ask.collective, question.gpus.size());
    std::map<std::int64_t, double> times;
    for (const CaseRow* row : rows) {
      const double bits = record.quantity == Quantity::busbw ? factor : 1;
      times[row->bytes.count] = record.quantity == Quantity::time
                                    ? row->measured
                                    : bits * row->bytes.value() / row->measured * 1e-3;
    }
    const std::map<std::int64_t, double> in_place =
        groups.size() == 1 ? in_place_us(record.id) : std::map<std::int64_t, double>{};
    for (const auto& [bytes, us] : times) {
      const auto other = in_place.find(bytes);
      const double second = other == in_place.end() ? us : other->second;
      question.rows.push_back({Bytes{bytes}, us, std::min(us, second), std::max(us, second)});
    }
  }
  return out;
}

inline bool names(const LogExplanation& found, const std::string& cause) {
  return std::ranges::any_of(found.causes, [&](const LogCause& one) { return one.name == cause; });
}
inline std::string first_cause(const LogExplanation& found) {
  return found.causes.empty() ? "" : found.causes.front().name;
}
inline std::string list(const LogExplanation& found) {
  std::ostringstream out;
  out << write_config(found.verdict).text << " " << found.ratio << "\n";
  for (const LogCause& cause : found.causes)
    out << "  " << cause.name << " " << cause.off << ": " << cause.evidence << "\n";
  return out.str();
}

}  // namespace weft::explain_test
