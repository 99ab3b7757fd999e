// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/nccl_inspector.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "calibrate/import/lines.hpp"
#include "calibrate/log_facts.hpp"
#include "calibrate/measurement.hpp"
#include "calibrate/probe/timing.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"AllReduce", "all_reduce"}, {"AllGather", "all_gather"}, {"ReduceScatter", "reduce_scatter"},
    {"Broadcast", "broadcast"},  {"Reduce", "reduce"},        {"AlltoAll", "all_to_all"},
    {"AllToAll", "all_to_all"}};
// From the most to the least trustworthy clock.
constexpr std::string_view kClocks[] = {"kernel_gpu", "kernel_cpu", "collective_cpu"};
constexpr double kStep = 1;         // us: times are whole
constexpr double kMismatch = 0.01;  // of what should be equal

// The objects of the text, each from its brace to the one that closes it, with the line it begins in. What is no object is
// told, too: lines outside of any (`damage` says so), and an object that is cut off.
struct Object {
  std::string_view text;
  std::uint32_t line = 0;
  std::string_view damage;  // empty: an object
};
constexpr std::string_view kCutOff = "the object that begins here is cut off",
                           kOutside = "it is outside of any object";

std::vector<Object> objects_of(std::string_view text) {
  std::vector<Object> out;
  std::uint32_t line = 1, begun = 0, outside = 0;
  std::size_t from = 0;
  int depth = 0;
  bool quoted = false, escaped = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      quoted = escaped = false;  // no string of JSON goes on in the next line
      if (depth > 0 && i + 1 < text.size() && text.substr(i + 1).starts_with("{\"header\"")) {
        depth = 0;
        out.push_back({{}, begun, kCutOff});
      }
      continue;
    }
    if (quoted) {
      quoted = escaped || c != '"';
      escaped = !escaped && c == '\\';
      continue;
    }
    if (c == '"') {
      quoted = depth > 0;
    } else if (c == '{') {
      if (depth++ == 0) {
        from = i;
        begun = line;
      }
    } else if (c == '}' && depth > 0 && --depth == 0) {
      out.push_back({text.substr(from, i + 1 - from), begun, {}});
      continue;
    }
    // A list of objects has brackets and commas around them.
    const bool form = c == '[' || c == ']' || c == ',' || c == ' ' || c == '\t' || c == '\r';
    if (depth == 0 && !form && outside != line) {
      outside = line;
      out.push_back({{}, line, kOutside});
    }
  }
  if (depth > 0) out.push_back({{}, begun, kCutOff});
  return out;
}

const Json* at(const Json& object, std::string_view first, std::string_view second) {
  const Json* inner = object.find(first);
  return inner == nullptr ? nullptr : inner->find(second);
}
std::string text_at(const Json& object, std::string_view first, std::string_view second) {
  const Json* value = at(object, first, second);
  return value != nullptr && value->is_string() ? value->text : std::string{};
}
std::optional<double> number_at(const Json& object, std::string_view first,
                                std::string_view second) {
  const Json* value = at(object, first, second);
  if (value == nullptr || !value->is_number() || !std::isfinite(value->number)) return std::nullopt;
  return value->number;
}
std::optional<std::int64_t> whole_at(const Json& object, std::string_view first,
                                     std::string_view second, double most) {
  const auto value = number_at(object, first, second);
  if (!value || *value < 0 || *value > most || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

bool near(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::abs(b);
}

struct Record {
  std::string collective, clock;
  int ranks = 0, nodes = 0, rank = 0;
  Bytes bytes{0};
  double us = 0, algbw = 0, busbw = 0;
};

struct RunKey {
  std::string collective;
  int ranks = 0, nodes = 0;
  auto operator<=>(const RunKey&) const = default;
};
struct Call {
  Record shortest;
  std::set<int> ranks;
};
using Calls =
    std::map<std::pair<std::string, std::int64_t>, Call>;  // communicator, number of the call

class InspectorImport {
 public:
  InspectorImport(const ImportOptions& options, const std::string& file, Imported& imported,
                  Diagnostics& out)
      : imported_(imported),
        out_(out),
        ignored_(imported),
        measurement_(new_measurement(options.name.empty() ? "measurement" : options.name,
                                     "nccl-inspector", file)) {}

  void run(std::string_view text) {
    const std::vector<Object> objects = objects_of(text);
    for (const Object& object : objects) {
      LogLine line;
      line.number = object.line;
      if (!object.damage.empty()) {
        ignored_.row(line, object.damage);
        continue;
      }
      Diagnostics trial;
      const Json document = parse_json(object.text, "record", trial);
      if (!trial.ok()) {
        ignored_.row(line, "it is not JSON");
        continue;
      }
      take(document, line);
    }
    keep_best_clock();
    if (runs_.empty()) {
      std::string why = "no collective of NCCL's Inspector";
      if (ignored_.rows() > 0) why += ": " + ignored_.first_reason();
      out_.error({}, {}, why,
                 "its files have objects with \"header\" and \"coll_perf\", one per call and rank");
    }
    ignored_.finish();
    write();
    if (out_.ok()) imported_.measurement = write_measurement(measurement_);
  }

 private:
  void take(const Json& document, const LogLine& line) {
    if (document.find("coll_perf") == nullptr) {
      ++others_;
      return;
    }
    std::string why;
    const auto record = read(document, why);
    if (!record) return ignored_.row(line, why);
    const std::string id = text_at(document, "header", "id");
    const std::int64_t call = whole_at(document, "coll_perf", "coll_sn", 9e15).value_or(0);
    if (const std::string version =
            text_at(document, "metadata", "inspector_output_format_version");
        !version.empty())
      measurement_.version = version;
    const std::string host = text_at(document, "metadata", "hostname");
    if (communicators_.insert(id).second || communicators_.size() == 1)
      hosts_.try_emplace(record->rank, host);
    Call& known = all_[record->clock][{record->collective, record->ranks, record->nodes}]
                      [record->bytes][{id, call}];
    if (known.ranks.empty() || record->us < known.shortest.us) known.shortest = *record;
    known.ranks.insert(record->rank);
    ++records_;
  }

  std::optional<Record> read(const Json& document, std::string& why) const {
    Record out;
    const std::string name = text_at(document, "coll_perf", "coll");
    const auto known = std::ranges::find(kNames, name, [](const auto& pair) { return pair.first; });
    if (known == std::end(kNames)) {
      why = fmt::format("\"{}\" is no collective that weft knows", name);
      return std::nullopt;
    }
    out.collective = known->second;
    out.clock = text_at(document, "coll_perf", "coll_timing_source");
    const auto ranks = whole_at(document, "header", "n_ranks", 1e7);
    const auto rank = whole_at(document, "header", "rank", 1e7);
    const auto size = whole_at(document, "coll_perf", "coll_msg_size_bytes", 1e15);
    const auto us = number_at(document, "coll_perf", "coll_exec_time_us");
    if (!ranks || *ranks < 2 || !rank || *rank >= *ranks || !size || *size < 1) {
      why = "its ranks or its size make no sense";
      return std::nullopt;
    }
    if (!us || *us <= 0 || *us > 1e12) {
      why = "it has no time";
      return std::nullopt;
    }
    out.ranks = static_cast<int>(*ranks);
    out.rank = static_cast<int>(*rank);
    out.nodes = static_cast<int>(whole_at(document, "header", "nnodes", 1e7).value_or(0));
    out.us = *us;
    const bool of_parts = out.collective == "all_gather" || out.collective == "reduce_scatter";
    out.bytes = Bytes{*size * (of_parts ? *ranks : 1)};
    if (out.bytes.value() > 9e18) {
      why = "its ranks or its size make no sense";
      return std::nullopt;
    }
    return agrees(document, out, why) ? std::optional(out) : std::nullopt;
  }

  // The printed bandwidths against what follows from size, time and ranks.
  static bool agrees(const Json& document, Record& record, std::string& why) {
    const double algbw = record.bytes.value() / record.us * 1e-3;
    const double factor = bus_factor(record.collective, record.ranks);
    record.algbw = number_at(document, "coll_perf", "coll_algobw_gbs").value_or(algbw);
    record.busbw = number_at(document, "coll_perf", "coll_busbw_gbs").value_or(algbw * factor);
    if (!near(record.algbw, algbw, kMismatch + kStep / record.us)) {
      why = fmt::format("its algbw is {:.4g}, its size over its time {:.4g} GB/s", record.algbw,
                        algbw);
      return false;
    }
    if (!near(record.busbw, record.algbw * factor, kMismatch)) {
      why = fmt::format("its busbw is {:.4g}, algbw times the factor of {} ranks {:.4g} GB/s",
                        record.busbw, record.ranks, record.algbw * factor);
      return false;
    }
    return true;
  }

  void keep_best_clock() {
    std::string best;
    for (const std::string_view clock : kClocks) {
      if (best.empty() && all_.contains(std::string(clock))) best = clock;
    }
    if (best.empty() && !all_.empty()) best = all_.begin()->first;
    for (auto& [clock, runs] : all_) {
      if (clock == best) {
        runs_ = std::move(runs);
      } else {
        imported_.note(Kind::ignored, fmt::format("records timed by \"{}\"", clock));
      }
    }
    if (runs_.empty()) return;
    if (!best.empty()) measurement_.setup["timing"] = best;
    if (best == kClocks[2])
      warn("the times are those of the calls on the CPU, which are not those of the operations");
  }

  void warn(const std::string& text) {
    imported_.note(Kind::warning, text);
    measurement_.problems.push_back(text);
  }

  void write() {
    Json list = Json::array();
    bool lonely = false;
    for (const auto& [key, sizes] : runs_) {
      MeasuredRun run;
      run.collective = key.collective;
      run.ranks = key.ranks;
      run.nodes = key.nodes;
      std::size_t calls = 0;
      double fastest = 0;
      for (const auto& [bytes, of_size] : sizes) {
        run.samples.push_back(sample_of(bytes, of_size));
        calls += of_size.size();
        fastest = std::max(fastest, run.samples.back().busbw.gbytes_per_s());
        for (const auto& [id, call] : of_size)
          lonely = lonely || static_cast<int>(call.ranks.size()) < key.ranks;
      }
      Json entry = Json::object();
      entry.set("collective", key.collective);
      entry.set("ranks", key.ranks);
      if (key.nodes > 0) entry.set("nodes", key.nodes);
      entry.set("sizes", std::uint64_t{sizes.size()});
      entry.set("calls", std::uint64_t{calls});
      entry.set("fastest_busbw_gbs", fastest);
      list.push(std::move(entry));
      imported_.note(
          Kind::read,
          fmt::format("{} among {} ranks: {} of {}, up to {:.4g} GB/s busbw", key.collective,
                      key.ranks, counted(static_cast<std::int64_t>(calls), "call"),
                      counted(static_cast<std::int64_t>(sizes.size()), "size"), fastest));
      measurement_.runs.push_back(std::move(run));
    }
    if (lonely)
      warn(
          "of some calls not all ranks are there: a rank that came early counts its waiting, so "
          "these "
          "times may be too long");
    if (others_ > 0)
      imported_.note(Kind::ignored, counted(static_cast<std::int64_t>(others_), "object") +
                                        " without \"coll_perf\"");
    if (communicators_.size() == 1) {
      for (const auto& [rank, host] : hosts_)
        measurement_.devices.push_back({.rank = rank, .host = host});
    }
    Json facts = Json::object();
    facts.set("tool", "nccl-inspector");
    facts.set("records", std::uint64_t{records_});
    const auto timing = measurement_.setup.find("timing");
    facts.set("timing", timing == measurement_.setup.end() ? Json{} : Json(timing->second));
    facts.set("collectives", std::move(list));
    Json& problems = facts.set("problems", Json::array());
    for (const std::string& text : measurement_.problems) problems.push(text);
    imported_.facts = std::move(facts);
  }

  // The call in the middle, so that every number is one of the tool.
  static CollectiveSample sample_of(Bytes bytes, const Calls& calls) {
    std::vector<const Record*> sorted;
    std::vector<Time> times;
    for (const auto& [id, call] : calls) {
      sorted.push_back(&call.shortest);
      times.push_back(time_from_us(call.shortest.us).value_or(Time{0}));
    }
    std::ranges::stable_sort(sorted, {}, [](const Record* record) { return record->us; });
    const Record& middle = *sorted[(sorted.size() - 1) / 2];
    CollectiveSample out;
    out.bytes = bytes;
    out.time = time_from_us(middle.us);
    out.algbw = bandwidth_from_gbytes(middle.algbw).value_or(Bandwidth{});
    out.busbw = bandwidth_from_gbytes(middle.busbw).value_or(Bandwidth{});
    if (sorted.size() > 1) out.repeated = summarise(std::move(times))->repeats;
    return out;
  }

  Imported& imported_;
  Diagnostics& out_;
  IgnoredLines ignored_;
  Measurement measurement_;
  std::map<std::string, std::map<RunKey, std::map<Bytes, Calls>>> all_;  // by clock
  std::map<RunKey, std::map<Bytes, Calls>> runs_;
  std::set<std::string> communicators_;
  std::map<int, std::string> hosts_;
  std::size_t records_ = 0, others_ = 0;
};

Imported read_inspector(std::string_view text, const std::string& file,
                        const ImportOptions& options, Diagnostics& diagnostics) {
  Imported imported;
  imported.kind = "nccl-inspector";
  InspectorImport(options, file, imported, diagnostics).run(text);
  return imported;
}

}  // namespace

extern const Importer kNcclInspectorImporter;
const Importer kNcclInspectorImporter{
    "nccl-inspector", "JSON lines of NCCL's Inspector, a profiler plug-in",
    "github.com/NVIDIA/nccl, ext-profiler/inspector", "", read_inspector};

}  // namespace weft
