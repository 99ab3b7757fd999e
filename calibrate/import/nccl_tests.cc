// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/nccl_tests.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "calibrate/import/nccl_log.hpp"
#include "calibrate/latency_bandwidth.hpp"
#include "calibrate/log_facts.hpp"
#include "sim/core/text.hpp"
#include "sim/workload/schedule.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;

// An old release prints the largest relative error instead of a count; above this it is no rounding in any type.
constexpr double kMostOldError = 1e-2;
constexpr double kMismatch = 0.01;

CollectiveSample sample_of(const NcclLogRow& row, std::size_t half, bool cpu_time) {
  const NcclHalf& from = *row.halves[half];
  CollectiveSample out;
  out.bytes = {row.bytes};
  out.count = row.count;
  out.type = row.type;
  out.operation = row.operation;
  out.root = row.root;
  out.buffers = half == 0 ? Buffers::out_of_place : Buffers::in_place;
  (cpu_time ? out.cpu_time : out.time) = time_from_us(from.time.value);
  out.algbw = bandwidth_from_gbytes(from.algbw.value).value_or(Bandwidth{});
  out.busbw = bandwidth_from_gbytes(from.busbw.value).value_or(Bandwidth{});
  out.wrong = from.wrong;
  const auto time = [](const std::optional<PrintedNumber>& n) {
    return n ? time_from_us(n->value) : std::nullopt;
  };
  out.shortest = time(from.shortest);
  out.longest = time(from.longest);
  out.percentile_99 = time(from.percentile_99);
  out.line = static_cast<int>(row.place.line);
  return out;
}

// How many times the bytes are count elements: 1, or the number of ranks where the size is that of all parts together. The
// value of most rows; 0 when the table has no counts or unknown types.
std::int64_t parts_of(const NcclTable& table) {
  std::map<std::int64_t, std::size_t> votes;
  for (const NcclLogRow& row : table.rows) {
    const int element = element_size(row.type);
    if (element > 0 && row.count > 0) ++votes[row.bytes / element / row.count];
  }
  if (votes.empty()) return 0;
  const auto best = std::ranges::max_element(votes, {}, [](const auto& v) { return v.second; });
  return best->first;
}

// The collective from what the columns show; empty when several are possible.
std::string collective_of_columns(const NcclTable& table, double factor) {
  const NcclLogRow& row = table.rows.front();
  if (factor <= 0) return {};
  const bool shares = factor < 1 - kMismatch;
  if (!row.operation.empty()) {
    if (row.root) return "reduce";
    return shares ? "reduce_scatter" : "all_reduce";
  }
  if (row.root) return shares ? std::string{} : "broadcast";
  if (!shares) return "send_recv";
  // Only the all-to-all cannot be validated in place.
  const bool out = row.halves[0] && row.halves[0]->wrong, in = row.halves[1].has_value();
  if (out && in) return row.halves[1]->wrong ? "all_gather" : "all_to_all";
  return {};
}

class NcclImport {
 public:
  NcclImport(NcclLog log, const ImportOptions& options, const std::string& file, Imported& imported,
             Diagnostics& out)
      : log_(std::move(log)),
        options_(options),
        imported_(imported),
        out_(out),
        measurement_(new_measurement(options.name.empty() ? "measurement" : options.name,
                                     "nccl-tests", file)) {}

  void run(const IgnoredLines& ignored) {
    const bool rows =
        std::ranges::any_of(log_.tables, [](const auto& t) { return !t.rows.empty(); });
    measurement_.version = log_.version;
    measurement_.setup = log_.setup;
    if (!log_.nccl.empty()) measurement_.setup["nccl"] = log_.nccl;
    measurement_.devices = log_.devices;
    if (!rows) return refuse_empty(ignored);
    check_devices();
    if (!log_.header)
      warn(
          "the table has no header: columns taken from its shape, each row checked by algbw = size "
          "/ time");
    if (log_.predicted) problem("a prediction of weft: nothing was measured");
    if (log_.cpu_time)
      warn("times are those of the call on the CPU; the bandwidths are of the operation");
    if (!log_.failure.empty())
      problem(fmt::format("the run failed after these rows: {}", log_.failure), log_.failure_place);
    Json runs = Json::array();
    for (const NcclTable& table : log_.tables) {
      if (!table.rows.empty()) read_table(table, runs);
    }
    if (measurement_.runs.empty() && out_.ok())
      out_.error({}, {}, "no row agrees with the others", "capture the run again");
    write_facts(std::move(runs));
    if (wrong_ && options_.force) {
      measurement_.forced = true;
      imported_.note(Kind::warning, "failed its own check; kept because of --force");
    }
    if (out_.ok()) imported_.measurement = write_measurement(measurement_);
  }

 private:
  void warn(std::string text, Place place = {}) {
    imported_.note(Kind::warning, std::move(text), place);
  }
  // A warning that stays with the measurement.
  void problem(const std::string& text, Place place = {}) {
    warn(text, place);
    measurement_.problems.push_back(text);
  }

  void refuse_empty(const IgnoredLines& ignored) {
    std::string why = "no measurements";
    if (!log_.failure.empty()) why += "; run failed with: " + log_.failure;
    if (ignored.rows() > 0)
      why += fmt::format("; {} rows could not be used, the first ({})", ignored.rows(),
                         ignored.first_reason());
    out_.error(log_.failure_place, {}, why,
               "a capture of nccl-tests has rows of size, time, algbw and busbw");
    write_facts(Json::array());
  }

  void check_devices() {
    std::map<std::pair<std::string, std::string>, int> seen;
    std::set<std::string> hosts;
    for (const MeasuredDevice& device : log_.devices) {
      hosts.insert(device.host);
      const std::string place =
          device.bus.empty() ? fmt::format("device {}", device.device) : device.bus;
      const auto [at, fresh] = seen.try_emplace({device.host, place}, device.rank);
      if (fresh) continue;
      problem(fmt::format("ranks {} and {} share one GPU ({} on {})", at->second, device.rank,
                          place, device.host));
    }
    nodes_ = static_cast<int>(hosts.size());
    int largest = -1;
    for (const MeasuredDevice& device : log_.devices) largest = std::max(largest, device.rank);
    const auto count = static_cast<int>(log_.devices.size());
    if (count > 0 && largest + 1 == count) {
      stated_ranks_ = count;
    } else if (count > 0) {
      warn(fmt::format("the list of ranks is not complete: {} of at least {}", count, largest + 1));
      nodes_ = 0;
    }
    if (stated_ranks_ == 0 && log_.stated_ranks) {
      stated_ranks_ = *log_.stated_ranks;
      nodes_ = log_.stated_nodes.value_or(0);
    }
  }

  // ---- one table

  void read_table(const NcclTable& table, Json& runs) {
    MeasuredRun run;
    run.collective = table.program;
    run.environment = table.environment;
    use_answered_collective(run);
    const std::int64_t parts = parts_of(table);
    for (const NcclLogRow& row : table.rows) {
      const int element = element_size(row.type);
      if (parts > 0 && element > 0 && row.count > 0 && row.bytes / element / row.count != parts) {
        imported_.note(Kind::ignored,
                       fmt::format("row not used: {} B are {} times its count, {} times elsewhere",
                                   row.bytes, row.bytes / element / row.count, parts),
                       row.place);
        continue;
      }
      for (std::size_t half = 0; half < 2; ++half) {
        if (row.halves[half]) run.samples.push_back(sample_of(row, half, log_.cpu_time));
      }
    }
    find_collective(table, infer_ranks(run), run);
    const RankGuess guess = infer_ranks(run);  // again: the collective tells which factor it is
    find_ranks(guess, parts, run);
    check_factor(guess, run);
    if (run.samples.empty()) return;
    check_results(table, run);
    check_average(table, run);
    Json facts = facts_of(run, guess);
    describe(run, facts);
    runs.push(std::move(facts));
    measurement_.runs.push_back(std::move(run));
  }

  void use_answered_collective(MeasuredRun& run) {
    const auto answer = options_.answers.find("collective");
    if (answer == options_.answers.end()) return;
    std::vector<std::string> names;
    for (const auto& entry : enum_names(CollectiveKind{})) names.emplace_back(entry.name);
    if (std::ranges::find(names, answer->second) == names.end()) {
      out_.error({}, {},
                 fmt::format("there is no collective \"{}\"{}", answer->second,
                             did_you_mean(answer->second, names)),
                 "one of " + join(names, ", "));
    } else if (!run.collective.empty() && run.collective != answer->second) {
      out_.error({}, {}, fmt::format("the log is of {}, not of {}", run.collective, answer->second),
                 "leave the answer out");
    } else {
      run.collective = answer->second;
    }
  }

  void find_collective(const NcclTable& table, const RankGuess& guess, MeasuredRun& run) {
    if (!run.collective.empty()) return;
    const bool agreed = 2 * guess.agree > guess.total;
    const double factor = agreed ? (guess.factor_low + guess.factor_high) / 2 : 0;
    run.collective = collective_of_columns(table, factor);
    run.collective_inferred = !run.collective.empty();
    if (run.collective.empty())
      imported_.note(Kind::unknown, "which collective was measured: add --collective NAME");
  }

  void find_ranks(const RankGuess& guess, std::int64_t parts, MeasuredRun& run) {
    run.nodes = nodes_;
    const auto answer = options_.answers.find("ranks");
    const auto given =
        answer == options_.answers.end() ? std::nullopt : parse_whole(answer->second);
    if (answer != options_.answers.end() && (!given || *given < 1 || *given > 10'000'000)) {
      out_.error({}, {}, fmt::format("\"{}\" is not a number of ranks", answer->second),
                 "write a whole number, e.g. --ranks 16");
    } else if (given) {
      run.ranks = static_cast<int>(*given);
    } else if (stated_ranks_ > 0) {
      run.ranks = stated_ranks_;
    } else {
      // Where the size is that of all parts together, the column of counts tells their number.
      const bool counted =
          parts > 1 && (guess.total == 0 || (guess.fewest <= parts && parts <= guess.most));
      if (counted && parts < 10'000'000) {
        run.ranks = static_cast<int>(parts);
      } else if (guess.ranks) {
        run.ranks = *guess.ranks;
      }
      run.ranks_inferred = run.ranks > 0;
    }
    if (run.ranks == 0)
      imported_.note(Kind::unknown,
                     "how many ranks there were: busbw and algbw do not tell; add --ranks N");
  }

  // busbw again from algbw; rows that contradict the others are damaged, all of them together mean a wrong number of ranks.
  void check_factor(const RankGuess& guess, MeasuredRun& run) {
    if (guess.total == 0) return;
    if (2 * guess.agree <= guess.total) {
      problem("busbw / algbw changes from row to row: the rows are of different runs or damaged");
      return;
    }
    const double printed = (guess.factor_low + guess.factor_high) / 2;
    const auto strays = factor_outliers(run, printed);
    for (auto at = strays.rbegin(); at != strays.rend(); ++at) {
      const auto position = run.samples.begin() + static_cast<std::ptrdiff_t>(*at);
      imported_.note(
          Kind::ignored,
          fmt::format("row not used: busbw {} is not {:.4g} x algbw {} as elsewhere",
                      to_text_bytes(position->busbw), printed, to_text_bytes(position->algbw)),
          {0, static_cast<std::uint32_t>(position->line), 1});
      run.samples.erase(position);
    }
    const double expected = bus_factor(run.collective, run.ranks);
    if (run.ranks < 1 || expected <= 0) return;
    if (guess.factor_low > expected * (1 + kMismatch) ||
        guess.factor_high < expected * (1 - kMismatch))
      problem(
          fmt::format("busbw / algbw is {:.4g}; {} among {} ranks has {:.4g}: the number of ranks "
                      "or the collective is another",
                      printed, run.collective, run.ranks, expected));
  }

  void check_results(const NcclTable& table, const MeasuredRun& run) {
    const double most = log_.old_error ? kMostOldError : 0;
    std::size_t wrong = 0, unchecked = 0;
    Place first = table.below;
    for (const CollectiveSample& sample : run.samples) {
      if (!sample.wrong) ++unchecked;
      if (sample.wrong.value_or(0) <= most) continue;
      if (wrong++ == 0) first = {table.below.file, static_cast<std::uint32_t>(sample.line), 1};
    }
    if (unchecked == run.samples.size())
      imported_.note(Kind::read, "results were not validated (N/A); that is no error");
    const std::int64_t stated = table.out_of_bounds.value_or(0);
    if (wrong == 0 && stated == 0) return;
    wrong_ = true;
    std::string text = fmt::format("wrong results in {} of {} samples", wrong, run.samples.size());
    if (stated != 0) text += fmt::format(", \"Out of bounds values\" is {}", stated);
    measurement_.problems.push_back(text);
    if (options_.force) return warn(text, first);
    out_.error(first, {}, text,
               "data that arrive wrong say nothing about a sound machine; --force keeps the "
               "measurement and records that");
  }

  void check_average(const NcclTable& table, MeasuredRun& run) {
    if (!table.average) return;
    run.average_busbw = bandwidth_from_gbytes(table.average->value);
    const double again = average_busbw_gbs(run);
    const double allowed = kMismatch * again + 0.005;
    if (std::abs(again - table.average->value) <= allowed) return;
    problem(fmt::format("the rows have a mean busbw of {:.6g} GB/s, the tool printed {}: rows are "
                        "missing or were not read",
                        again, table.average->value),
            table.below);
  }

  // ---- what is said about it

  Json facts_of(const MeasuredRun& run, const RankGuess& guess) const {
    Json out = Json::object();
    out.set("collective", run.collective.empty() ? Json{} : Json(run.collective));
    out.set("collective_inferred", run.collective_inferred);
    out.set("ranks", run.ranks > 0 ? Json(run.ranks) : Json{});
    out.set("ranks_inferred", run.ranks_inferred);
    if (run.ranks_inferred && guess.fewest > 0) {
      out.set("ranks_low", std::min(run.ranks, guess.fewest));
      out.set("ranks_high", std::max(run.ranks, guess.most));
    }
    out.set("nodes", run.nodes > 0 ? Json(run.nodes) : Json{});
    std::set<std::pair<int, std::int64_t>> rows;  // carriage returns alone do not count as lines
    for (const CollectiveSample& s : run.samples) rows.emplace(s.line, s.bytes.count);
    out.set("rows", static_cast<std::int64_t>(rows.size()));
    out.set("average_printed",
            run.average_busbw ? Json(run.average_busbw->gbytes_per_s()) : Json{});
    out.set("average_recomputed", average_busbw_gbs(run));
    const auto [least, most] =
        std::ranges::minmax_element(run.samples, {}, &CollectiveSample::bytes);
    out.set("smallest_bytes", least->bytes.count);
    out.set("largest_bytes", most->bytes.count);
    return out;
  }

  void describe(const MeasuredRun& run, Json& facts) {
    const std::string name = run.collective.empty() ? "a collective" : run.collective;
    const std::int64_t rows = facts.find("rows")->integer;
    imported_.note(
        Kind::read,
        fmt::format("{}{}: {}, {} to {}", name, run.collective_inferred ? " (inferred)" : "",
                    counted(rows, "row"), to_text(Bytes{facts.find("smallest_bytes")->integer}),
                    to_text(Bytes{facts.find("largest_bytes")->integer})));
    if (run.ranks_inferred) {
      const Json* low = facts.find("ranks_low");
      const bool several = low != nullptr && low->integer != facts.find("ranks_high")->integer;
      imported_.note(Kind::read,
                     several
                         ? fmt::format("about {} ranks, inferred from busbw / algbw ({} to {} fit)",
                                       run.ranks, low->integer, facts.find("ranks_high")->integer)
                         : fmt::format("{} ranks, inferred from the columns", run.ranks));
    } else if (run.ranks > 0) {
      imported_.note(Kind::read, run.nodes > 0 ? fmt::format("{} on {}", counted(run.ranks, "rank"),
                                                             counted(run.nodes, "node"))
                                               : counted(run.ranks, "rank"));
    }
    if (const auto flat = fixed_cost(run)) {
      facts.set("latency_us", us_of(flat->time));
      facts.set("latency_up_to", flat->up_to.count);
      imported_.note(
          Kind::read,
          fmt::format("a fixed cost of {} up to {}; rates there say nothing about a link",
                      to_text(flat->time), to_text(flat->up_to)));
    }
    if (const auto limit = asymptotic_busbw(run)) {
      facts.set("busbw_gbs", limit->busbw_gbs);
      facts.set("saturated", limit->saturated);
      imported_.note(Kind::read,
                     fmt::format("{:.4g} GB/s busbw at the largest sizes{}", limit->busbw_gbs,
                                 limit->saturated ? "" : ", still growing or only one size"));
    }
    if (const auto wire = wire_reading(run)) {
      facts.set("in_switch_gbs", wire->in_switch_gbs);
      constexpr double kNoPcie = 150;  // faster than any PCIe link: NVLink, so perhaps NVSwitches
      if (run.nodes == 1 && wire->ring_gbs > kNoPcie)
        imported_.note(
            Kind::read,
            fmt::format("on the wire that is {:.4g} GB/s each way per GPU in a ring, and "
                        "{:.4g} if the switch reduces (NVLS)",
                        wire->ring_gbs, wire->in_switch_gbs));
    }
    Json& list = facts.set("anomalies", Json::array());
    for (const Anomaly& anomaly : anomalies(run)) {
      list.push(anomaly.text);
      warn(anomaly.text);
    }
  }

  void write_facts(Json runs) {
    Json facts = Json::object();
    facts.set("tool", "nccl-tests");
    facts.set("version", log_.version.empty() ? Json{} : Json(log_.version));
    facts.set("nccl", log_.nccl.empty() ? Json{} : Json(log_.nccl));
    std::int64_t rows = 0;
    for (const Json& run : runs.items) rows += run.find("rows")->integer;
    if (!runs.items.empty()) {
      for (const JsonMember& member : runs.items.front().members)
        facts.set(member.key, member.value);
    }
    facts.set("rows", rows);
    Json& devices = facts.set("devices", Json::array());
    for (const MeasuredDevice& device : log_.devices) devices.push(write_config(device));
    Json& problems = facts.set("problems", Json::array());
    for (const std::string& text : measurement_.problems) problems.push(text);
    if (!log_.failure.empty()) facts.set("failure", log_.failure);
    facts.set("runs", std::move(runs));
    imported_.facts = std::move(facts);
  }

  NcclLog log_;
  const ImportOptions& options_;
  Imported& imported_;
  Diagnostics& out_;
  Measurement measurement_;
  int stated_ranks_ = 0, nodes_ = 0;
  bool wrong_ = false;
};

Imported read_nccl_tests(std::string_view text, const std::string& file,
                         const ImportOptions& options, Diagnostics& diagnostics) {
  Imported imported;
  imported.kind = "nccl-tests";
  IgnoredLines ignored(imported);
  const bool json = looks_like_json(text);
  const std::uint32_t index = json ? 0 : diagnostics.add_file(file);
  NcclLog log = json ? read_nccl_json(text, file, ignored, diagnostics)
                     : read_nccl_text(text, index, ignored);
  if (log.failure_place.file == 0) log.failure_place.file = index;
  ignored.finish();
  if (diagnostics.ok())
    NcclImport(std::move(log), options, file, imported, diagnostics).run(ignored);
  return imported;
}

}  // namespace

extern const Importer kNcclTestsImporter;
const Importer kNcclTestsImporter{"nccl-tests", "all_reduce_perf and its siblings, text or JSON",
                                  "github.com/NVIDIA/nccl-tests, src/util.cu", "collective ranks",
                                  read_nccl_tests};

}  // namespace weft
