// SPDX-License-Identifier: Apache-2.0
// The report that nccl-tests writes with -J.
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "calibrate/import/nccl_log.hpp"

namespace weft {
namespace {

std::string text_of(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  if (value == nullptr) return {};
  if (value->is_string()) return std::string(trimmed(value->text));
  if (value->kind == Json::Kind::integer) return fmt::format("{}", value->integer);
  if (value->is_number()) return fmt::format("{}", value->number);
  if (value->kind == Json::Kind::boolean) return value->boolean ? "true" : "false";
  return {};
}

std::optional<std::int64_t> whole_of(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  if (value != nullptr && value->kind == Json::Kind::integer) return value->integer;
  return value != nullptr && value->is_string() ? parse_whole(trimmed(value->text)) : std::nullopt;
}

// The report prints six decimals.
std::optional<PrintedNumber> number_of(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  if (value == nullptr || !value->is_number() || !std::isfinite(value->number)) return std::nullopt;
  return PrintedNumber{value->number, 0.5e-6, 6};
}

class JsonReader {
 public:
  JsonReader(IgnoredLines& ignored, Diagnostics& out) : ignored_(ignored), out_(out) {}

  NcclLog read(const Json& document) {
    NcclLog log;
    log.header = true;
    if (const Json* args = document.find("args"); args != nullptr && !args->items.empty()) {
      program_ = collective_of_program(args->items.front().text);
      for (const Json& arg : args->items) {
        if (arg.is_string()) log.setup["args"] += (log.setup["args"].empty() ? "" : " ") + arg.text;
      }
    }
    log.nccl = text_of(document, "nccl_version");
    if (const Json* environment = document.find("env")) read_environment(*environment);
    if (const Json* config = document.find("config")) read_config(*config, log);
    const Json* results = document.find("results");
    if (results == nullptr || !results->is_array()) {
      out_.error(document.place, {}, "this is no report of nccl-tests: \"results\" is missing",
                 "it is the file written by the option -J");
      return log;
    }
    log.tables.emplace_back();
    for (const Json& result : results->items) read_row(result, log);
    read_footer(document, log);
    return log;
  }

 private:
  // {"NCCL_ALGO": "Ring"} or ["NCCL_ALGO=Ring"].
  void read_environment(const Json& environment) {
    for (const JsonMember& member : environment.members)
      keep_nccl_variable(environment_, member.key, text_of(environment, member.key));
    for (const Json& item : environment.items) {
      const std::size_t equals = item.is_string() ? item.text.find('=') : std::string::npos;
      if (equals != std::string::npos)
        keep_nccl_variable(environment_, std::string_view(item.text).substr(0, equals),
                           std::string_view(item.text).substr(equals + 1));
    }
  }

  static void read_config(const Json& config, NcclLog& log) {
    for (const std::string_view key :
         {"nthreads", "ngpus", "warmup_iters", "iterations", "aggregated_iterations", "validation",
          "graph", "blocking_collectives"}) {
      if (std::string value = text_of(config, key); !value.empty())
        // As the text table calls it, so that both tell how many processes there were.
        log.setup[key == "ngpus" ? "nGpus" : std::string(key)] = std::move(value);
    }
    const Json* devices = config.find("devices");
    if (devices == nullptr) return;
    for (const Json& device : devices->items) {
      const auto rank = whole_of(device, "rank");
      if (!rank || *rank < 0 || *rank > 10'000'000) continue;
      MeasuredDevice out;
      out.rank = static_cast<int>(*rank);
      const auto number = whole_of(device, "device");
      if (number && *number >= 0 && *number <= 1'000'000) out.device = static_cast<int>(*number);
      out.host = text_of(device, "hostname");
      out.bus = text_of(device, "device_hex");
      out.product = text_of(device, "device_info");
      log.devices.push_back(std::move(out));
    }
  }

  void read_row(const Json& result, NcclLog& log) {
    const auto refuse = [&](std::string_view why) {
      LogLine line;
      line.number = result.place.line;
      ignored_.row(line, why);
    };
    NcclLogRow row;
    row.place = result.place;
    const auto bytes = whole_of(result, "size");
    if (!bytes || *bytes <= 0) return refuse("its size is not a positive whole number");
    row.bytes = *bytes;
    row.count = std::max<std::int64_t>(0, whole_of(result, "count").value_or(0));
    row.type = text_of(result, "type");
    if (const std::string redop = text_of(result, "redop"); redop != "none") row.operation = redop;
    const auto root = whole_of(result, "root");
    if (root && *root >= 0 && *root <= 10'000'000) row.root = static_cast<int>(*root);
    constexpr std::string_view kHalves[] = {"out_of_place", "in_place"};
    for (std::size_t i = 0; i < 2; ++i) {
      const Json* half = result.find(kHalves[i]);
      if (half == nullptr || !half->is_object()) continue;
      const std::string why = read_half(*half, row.bytes, row.halves[i].emplace(), log.cpu_time);
      if (!why.empty()) return refuse(why);
      if (const Json* spread = result.find(fmt::format("{}_per_iter", kHalves[i]))) {
        row.halves[i]->shortest = number_of(*spread, "min_us");
        row.halves[i]->longest = number_of(*spread, "max_us");
        row.halves[i]->percentile_99 = number_of(*spread, "p99_us");
      }
    }
    if (!row.halves[0] && !row.halves[1]) return refuse("it holds no time");
    for (const NcclLogRow& other : log.tables.back().rows) {
      const bool same = other.bytes == row.bytes && other.type == row.type &&
                        other.operation == row.operation && other.root == row.root;
      if (!same) continue;
      log.tables.emplace_back();
      break;
    }
    log.tables.back().program = program_;
    log.tables.back().environment = environment_;
    log.tables.back().rows.push_back(std::move(row));
  }

  static std::string read_half(const Json& json, std::int64_t bytes, NcclHalf& half,
                               bool& cpu_time) {
    const auto cpu = number_of(json, "cpu_time");
    const auto time = cpu ? cpu : number_of(json, "time");
    const auto algbw = number_of(json, "alg_bw"), busbw = number_of(json, "bus_bw");
    if (!time || !algbw || !busbw) return "time, alg_bw or bus_bw is not a number";
    half.time = *time;
    half.algbw = *algbw;
    half.busbw = *busbw;
    cpu_time |= cpu.has_value();
    if (const Json* wrong = json.find("nwrong");
        wrong != nullptr && wrong->kind != Json::Kind::null) {
      if (!wrong->is_number() || wrong->number < 0) return "nwrong is not a count";
      half.wrong = wrong->number;
    }
    return disagreement(bytes, half, cpu.has_value());
  }

  static void read_footer(const Json& document, NcclLog& log) {
    NcclTable& last = log.tables.back();
    if (const Json* bounds = document.find("out_of_bounds")) {
      last.out_of_bounds = whole_of(*bounds, "count");
      if (text_of(*bounds, "okay") == "false" && last.out_of_bounds.value_or(0) == 0)
        last.out_of_bounds = 1;
      last.below = bounds->place;
    }
    if (const Json* average = document.find("average_bus_bandwidth")) {
      last.average = number_of(*average, "bandwidth");
      last.below = average->place;
    }
    if (const Json* errors = document.find("errors"); errors != nullptr && !errors->items.empty()) {
      log.failure = errors->items.front().is_string() ? errors->items.front().text : "an error";
      log.failure_place = errors->place;
    }
  }

  IgnoredLines& ignored_;
  Diagnostics& out_;
  std::string program_;
  std::map<std::string, std::string> environment_;
};

}  // namespace

NcclLog read_nccl_json(std::string_view text, const std::string& file, IgnoredLines& ignored,
                       Diagnostics& out) {
  const Json document = parse_json(text, file, out);
  if (!out.ok()) return {};
  return JsonReader(ignored, out).read(document);
}

}  // namespace weft
