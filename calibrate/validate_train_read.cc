// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_train_read.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "calibrate/validate_table.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostRows = 10'000;

const Json* follow(const Json& from, const std::vector<std::string>& tokens) {
  const Json* at = &from;
  for (const std::string& token : tokens) {
    if (at->is_array()) {
      const bool number = !token.empty() && token.size() < 6 &&
                          std::ranges::all_of(token, [](char c) { return c >= '0' && c <= '9'; });
      const std::size_t index = number ? std::stoul(token) : at->items.size();
      at = index < at->items.size() ? &at->items[index] : nullptr;
    } else {
      at = at->find(token);
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

void check_assumed(const Json& ask, const std::string& pointer, const TrainCase& c,
                   Diagnostics& out) {
  const Json* list = ask.find("assumed");
  for (std::size_t i = 0; i < c.assumed.size() && list != nullptr && i < list->items.size(); ++i) {
    const auto tokens = parse_pointer(c.assumed[i]);
    if (tokens && !tokens->empty() && follow(ask, *tokens) != nullptr) continue;
    out.error(
        list->items[i].place, config_detail::child(pointer + "/assumed", i),
        fmt::format("the case has no value at \"{}\"", c.assumed[i]),
        "name a value of the case by its pointer, e.g. \"/attention\" or \"/plan/zero\"; a default "
        "that is assumed is written out");
  }
}

// What a record's unit does to the number: 1 where it is the measure's own.
std::optional<double> factor_of(TrainMeasure measure, std::string_view unit) {
  const auto has = [unit](std::string_view part) {
    return unit.find(part) != std::string_view::npos;
  };
  switch (measure) {
    case TrainMeasure::tokens_per_s_per_gpu:
      if (has("token") && !has("tokens/s/node")) return 1.0;
      break;
    case TrainMeasure::iteration_s:
      if (unit == "s" || unit.starts_with("s/") || has("second")) return 1.0;
      if (unit == "ms" || unit.starts_with("ms/") || has("_ms")) return 1e-3;
      break;
    case TrainMeasure::tflops_per_gpu:
      if (has("TFLOP") || has("tflop") || has("Tflop")) return 1.0;
      break;
    case TrainMeasure::mfu:
      if (has("%") || has("pct")) return 0.01;
      if (unit == "ratio" || unit == "1" || unit == "mfu" || unit == "MFU") return 1.0;
      break;
  }
  return std::nullopt;
}

class RowReader {
 public:
  RowReader(const Json& json, const std::string& pointer, ValidationRecord& record,
            Diagnostics& out)
      : json_(json), pointer_(pointer), record_(record), case_(record.train), out_(out) {}

  bool read() {
    const std::size_t before = out_.error_count();
    if (const Json* unit = json_.find("unit")) read_unit(*unit);
    if (json_.find("rows") != nullptr)
      read_table();
    else
      read_value();
    for (const CaseRow& row : record_.rows) {
      if (row.gpus > 0 && row.global_batch > 0) continue;
      out_.error(json_.find("weft")->place, at("weft"),
                 fmt::format("the number of {} is not known",
                             row.gpus > 0 ? "sequences per step" : "GPUs"),
                 row.gpus > 0 ? R"(add "global_batch" or a column of that name)"
                              : R"(add "gpus" or a column "n_gpus")");
      break;
    }
    return out_.error_count() == before;
  }

 private:
  std::string at(std::string_view key) const { return config_detail::child(pointer_, key); }

  void read_unit(const Json& unit) {
    if (!unit.is_string()) return config_detail::wrong_kind(unit, at("unit"), "a string", out_);
    if (const auto factor = factor_of(case_.measure, unit.text)) {
      factor_ = *factor;
      return;
    }
    out_.error(
        unit.place, at("unit"),
        fmt::format("\"{}\" is not a unit of {}", unit.text, write_config(case_.measure).text),
        fmt::format("write {}, or nothing", unit_of(case_.measure)));
  }

  CaseRow plain_row() const {
    CaseRow row;
    row.gpus = case_.gpus.value_or(0);
    row.global_batch = case_.global_batch.value_or(0);
    return row;
  }

  void read_value() {
    const Json* value = json_.find("value");
    if (value == nullptr) {
      out_.error(json_.place, pointer_, "nothing to compare with",
                 "give value, or columns and rows");
    } else if (!value->is_number() || !(value->number > 0)) {
      out_.error(value->place, at("value"), "not a number above 0");
    } else {
      CaseRow row = plain_row();
      row.measured = value->number * factor_;
      record_.rows.push_back(row);
    }
  }

  void read_table() {
    const auto table = read_record_table(json_, pointer_, kMostRows, out_);
    if (!table) return;
    const std::vector<std::string>& names = table->names;
    const std::string measure = write_config(case_.measure).text;
    const auto column = find_column(
        names, {case_.column.empty() ? std::string_view(measure) : std::string_view(case_.column)});
    if (!column)
      return lacks_column(*table, pointer_, case_.column,
                          fmt::format("which column is {}?", measure), out_);
    const auto gpus = find_column(names, {"n_gpus", "gpus"});
    const auto batch = find_column(names, {"global_batch"});
    each_row(*table, pointer_, out_, [&](const Json& row, const std::string& here, std::size_t i) {
      CaseRow out = plain_row();
      if (gpus && !count(row.items[*gpus], here, out.gpus)) return;
      if (batch && !count(row.items[*batch], here, out.global_batch)) return;
      out.label = gpus ? fmt::format("{} gpus", out.gpus) : fmt::format("row {}", i + 1);
      const Json& cell = row.items[*column];
      if (cell.kind == Json::Kind::null) {
        ++record_.missing;
      } else if (!cell.is_number() || !(cell.number > 0)) {
        out_.error(cell.place, here, "not a number above 0", "null stands for a missing one");
      } else {
        out.measured = cell.number * factor_;
        record_.rows.push_back(std::move(out));
      }
    });
  }

  bool count(const Json& cell, const std::string& here, std::int64_t& out) {
    if (cell.kind == Json::Kind::integer && cell.integer > 0 && cell.integer <= 1'000'000'000) {
      out = cell.integer;
      return true;
    }
    out_.error(cell.place, here, "a count is a whole number above 0");
    return false;
  }

  const Json& json_;
  const std::string& pointer_;
  ValidationRecord& record_;
  const TrainCase& case_;
  Diagnostics& out_;
  double factor_ = 1;
};

// A member of `from` under the same key in `to`, when it was written.
void copy(const Json& from, std::string_view key, Json& to) {
  if (const Json* value = from.find(key)) to.set(key, *value);
}

Json fabric_of(const TrainCase& c, std::int64_t servers) {
  Json changes = Json::object();
  bool sized = servers <= 1;
  for (const JsonMember& member : c.set.members) {
    changes.set(member.key, member.value);
    sized = sized || member.key == "/servers";
  }
  if (!sized) changes.set("/servers", servers);
  Json out = Json::object();
  out.set("use", c.fabric);
  if (!changes.members.empty()) out.set("set", std::move(changes));
  return out;
}

}  // namespace

std::string_view unit_of(TrainMeasure measure) {
  switch (measure) {
    case TrainMeasure::tokens_per_s_per_gpu:
      return "tokens/s/GPU";
    case TrainMeasure::iteration_s:
      return "s";
    case TrainMeasure::tflops_per_gpu:
      return "TFLOP/s/GPU";
    case TrainMeasure::mfu:
      return "MFU";
  }
  return "";
}

void read_train_case(const Json& ask, const std::string& pointer, TrainCase& out,
                     Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.error_count();
  read_config(ask, pointer, out, diagnostics);
  if (diagnostics.error_count() != before) return;
  const auto object = [&](const Json& value, const char* key, bool or_text) {
    if (value.kind == Json::Kind::null || value.is_object() || (or_text && value.is_string()))
      return;
    config_detail::wrong_kind(value, config_detail::child(pointer, key),
                              or_text ? "a name or an object" : "an object", diagnostics);
  };
  object(out.set, "set", false);
  object(out.model, "model", true);
  object(out.nccl, "nccl", false);
  check_assumed(ask, pointer, out, diagnostics);
  if (const Json* convention = ask.find("flops_convention");
      convention != nullptr && (out.measure == TrainMeasure::tokens_per_s_per_gpu ||
                                out.measure == TrainMeasure::iteration_s)) {
    diagnostics.warning(convention->place, config_detail::child(pointer, "flops_convention"),
                        "is not needed for this measure", "leave it out");
  }
  out.written = ask;
}

bool read_train_rows(const Json& json, const std::string& pointer, ValidationRecord& record,
                     Diagnostics& diagnostics) {
  return RowReader(json, pointer, record, diagnostics).read();
}

JobServers spread_evenly(std::int64_t gpus, std::int64_t most_per_server) {
  JobServers out{.servers = (gpus + most_per_server - 1) / most_per_server,
                 .gpus_per_server = most_per_server};
  for (std::int64_t servers = out.servers; servers <= 2 * out.servers; ++servers) {
    if (gpus % servers == 0) return {.servers = servers, .gpus_per_server = gpus / servers};
  }
  return out;
}

Json train_scenario(const ValidationRecord& record, const CaseRow& row, JobServers servers) {
  const TrainCase& c = record.train;
  Json job = Json::object();
  job.set("name", "train");
  job.set("kind", "training");
  job.set("gpus", row.gpus);
  Json placement = Json::object();
  placement.set("gpus_per_server", servers.gpus_per_server);
  job.set("placement", std::move(placement));
  for (const char* key : {"model", "seq"}) copy(c.written, key, job);
  if (job.find("model")->is_string()) {
    Json use = Json::object();
    use.set("use", job.find("model")->text);
    job.set("model", std::move(use));
  }
  job.set("global_batch", row.global_batch);
  Json plan = c.written.find("plan") != nullptr ? *c.written.find("plan") : Json::object();
  if (c.dispatcher) plan.set("dispatcher", write_config(*c.dispatcher));
  if (c.routing == ExpertRouting::dropped && plan.find("expert_capacity") == nullptr)
    plan.set("expert_capacity", 1);
  job.set("plan", std::move(plan));
  for (const char* key : {"dtype", "optimizer", "attention", "fusion", "graphs", "lora_rank"})
    copy(c.written, key, job);
  Json jobs = Json::array();
  jobs.push(std::move(job));
  Json out = Json::object();
  Json head = Json::object();
  head.set("schema", 1);
  out.set("weft", std::move(head));
  out.set("name", record.id);
  out.set("fabric", fabric_of(c, servers.servers));
  copy(c.written, "nccl", out);
  out.set("jobs", std::move(jobs));
  return out;
}

}  // namespace weft
