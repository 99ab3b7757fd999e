// SPDX-License-Identifier: Apache-2.0
// weft explain-log: a log of nccl-tests against the prediction for the machine it should have run on, row by row, and what is
// likely to be wrong.
//
//   weft explain-log node.log --fabric hgx-h100+ib-ndr
//   weft explain-log vm.log --fabric hgx-h200+ib-ndr --against baremetal.log
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/explain_log.hpp"
#include "calibrate/import/nccl_tests.hpp"
#include "calibrate/log_facts.hpp"
#include "calibrate/percent.hpp"
#include "models/nccl/library.hpp"
#include "sim/core/check.hpp"
#include "sim/core/loader.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/nccl_flags.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostGpus = 100'000;
// What kernel TCP may run over when RDMA is missing: the management port, or the fast one.
constexpr const char* kSocketNics[] = {"eth-25g-tcp", "eth-100g-tcp"};

struct Log {
  Measurement measurement;
  std::size_t run = 0;  // the table that is explained
  std::vector<std::string> notes;
  const MeasuredRun& table() const { return measurement.runs[run]; }
};

// The model in a product name: "H200" of "NVIDIA H200 NVL".
bool names_gpu(const std::string& product, const std::string& model) {
  std::string word;
  const auto has = [&] {
    const bool digits =
        std::ranges::any_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
    return digits && model.find(word) != std::string::npos;
  };
  for (const char c : product + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (has()) return true;
    word.clear();
  }
  return false;
}

class ExplainLog final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("log", log_, "output of nccl-tests, any release, with whatever stands around it")
        ->required();
    app.add_option("--fabric", fabric_, "the fabric or server it should have run on")->required();
    app.add_option("--against", against_, "a second log of the same test, to compare with");
    app.add_option("--collective", collective_, "what was measured, where the log does not say");
    app.add_option("--ranks", ranks_, "how many ranks took part, where the log does not say")
        ->check(CLI::Range(1, 10'000'000));
    app.add_option("--run", run_, "which table of the log, counted from 1")
        ->check(CLI::Range(1, 1'000'000));
    add_nccl_flags(app, flags_, ": what the log says, or 2.27.7", "; default: what the log says");
    add_set_option(app, sets_);
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    Diagnostics diagnostics;
    const std::optional<Log> log = read(log_, run_, diagnostics);
    std::optional<Log> other;
    if (!against_.empty()) other = read(against_, std::nullopt, diagnostics);
    diagnostics.throw_if_errors();
    LogQuestion question = ask(*log, diagnostics);
    diagnostics.throw_if_errors();
    io.err << diagnostics.text();
    LogExplanation found = explain_log(question);
    std::optional<LogPair> pair;
    if (other) pair = compare(*log, *other);
    std::vector<std::string> notes = log->notes;
    notes.insert(notes.end(), notes_.begin(), notes_.end());
    notes.insert(notes.end(), found.notes.begin(), found.notes.end());
    if (pair) {
      for (auto cause = pair->causes.rbegin(); cause != pair->causes.rend(); ++cause) {
        std::erase_if(found.causes, [&](const LogCause& old) { return old.name == cause->name; });
        found.causes.insert(found.causes.begin(), *cause);
      }
      notes.insert(notes.end(), pair->notes.begin(), pair->notes.end());
    }
    io.out = json_ ? to_text(to_json(question, found, pair, notes)) + "\n"
                   : text(question, found, pair, notes, io);
    return kOk;
  }

 private:
  // ---- logs

  std::optional<Log> read(const std::string& path, std::optional<std::int64_t> which,
                          Diagnostics& diagnostics) const {
    Configs files(find_configs_root());
    const std::optional<std::string> text = read_capture(files, path, diagnostics);
    if (!text) return std::nullopt;
    ImportOptions options;
    options.name = std::filesystem::path(path).stem().string();
    if (!collective_.empty()) options.answers["collective"] = collective_;
    if (ranks_) options.answers["ranks"] = std::to_string(*ranks_);
    const std::size_t before = diagnostics.error_count();
    const Imported imported = kNcclTestsImporter.read(*text, path, options, diagnostics);
    if (diagnostics.error_count() > before) return std::nullopt;
    Log log;
    log.measurement = read_measurement(imported.measurement, diagnostics);
    if (diagnostics.error_count() > before) return std::nullopt;
    const std::size_t tables = log.measurement.runs.size();
    if (which && static_cast<std::size_t>(*which) > tables) {
      diagnostics.error({}, "--run", fmt::format("{} has {} tables", path, tables));
      return std::nullopt;
    }
    if (which) log.run = static_cast<std::size_t>(*which) - 1;
    if (tables > 1 && !which)
      log.notes.push_back(
          fmt::format("{} has {} tables; this is the first, --run N takes another", path, tables));
    check_table(path, log.table(), diagnostics);
    for (const ImportNote& note : imported.notes) {
      if (note.kind == ImportNote::Kind::warning) log.notes.push_back(note.text);
    }
    for (const Anomaly& anomaly : anomalies(log.table())) {
      if (std::ranges::find(log.notes, anomaly.text) == log.notes.end())
        log.notes.push_back(anomaly.text);
    }
    if (const auto fixed = fixed_cost(log.table()); fixed && fixed->up_to >= 1_MiB) {
      log.notes.push_back(
          fmt::format("sizes up to {} all take {:.4g} us: a fixed cost, no bandwidth",
                      to_text(fixed->up_to), us_of(fixed->time)));
    }
    return log;
  }

  static void check_table(const std::string& path, const MeasuredRun& run,
                          Diagnostics& diagnostics) {
    if (run.collective.empty())
      diagnostics.error({}, path, "the log does not say which collective it is of",
                        "add --collective NAME");
    if (run.ranks == 0)
      diagnostics.error({}, path, "the log does not say how many ranks there were",
                        "add --ranks N");
    if (log_points(run).empty()) diagnostics.error({}, path, "no row has a time");
  }

  // ---- the machine and the settings: the log's word, then the options; contradictions are told

  LogQuestion ask(const Log& log, Diagnostics& diagnostics) {
    LogQuestion question;
    const MeasuredRun& run = log.table();
    question.rows = log_points(run);
    question.devices = log.measurement.devices;
    read_config(Json(run.collective), log_, question.collective, diagnostics);
    read_setup(log, question.setup, diagnostics);
    diagnostics.throw_if_errors();
    const std::int64_t nodes = count_nodes(run);
    if (nodes > run.ranks) {
      throw InputError(
          fmt::format("{}: error: {} ranks cannot be on {} servers\n    correct --nodes\n", log_,
                      run.ranks, nodes));
    }
    Fabric fabric = load_fabric(fabric_, sets_, diagnostics).fabric;
    if (nodes > 1 && !fabric.spec().network) {
      throw InputError(
          fmt::format("{}: error: its {} ranks are on {} servers, {} is one without a network\n    "
                      "name a fabric "
                      "as --fabric, or correct --nodes: see `weft list fabrics`\n",
                      log_, run.ranks, nodes, fabric_));
    }
    if (fabric.server_count() < static_cast<std::size_t>(nodes) || flags_.nodes) {
      Settings sets = sets_;
      sets.emplace_back("/servers", Json(std::max<std::int64_t>(nodes, 1)));
      if (nodes > 1) fabric = load_fabric(fabric_, sets, diagnostics).fabric;
    }
    question.gpus = choose(fabric, run, nodes);
    check_product(log, fabric);
    question.fabric = std::make_shared<const Fabric>(std::move(fabric));
    Configs files(find_configs_root());
    Loader loader(files, diagnostics);
    for (const char* nic : kSocketNics)
      question.socket_nics.push_back(loader.load_component("model", nic));
    return question;
  }

  std::int64_t count_nodes(const MeasuredRun& run) {
    std::int64_t nodes = run.nodes;
    if (nodes == 0 && flags_.per_node && run.ranks % *flags_.per_node == 0)
      nodes = run.ranks / *flags_.per_node;
    if (flags_.nodes && nodes > 0 && *flags_.nodes != nodes) {
      notes_.push_back(fmt::format("--nodes {} contradicts the log, which has ranks on {} hosts",
                                   *flags_.nodes, nodes));
    }
    if (flags_.nodes) nodes = *flags_.nodes;
    if (nodes == 0) {  // as many as the ranks fill
      Diagnostics ignored;
      const Fabric fabric = load_fabric(fabric_, sets_, ignored).fabric;
      const auto each = static_cast<std::int64_t>(fabric.types().front().gpus.size());
      nodes = each > 0 ? (run.ranks + each - 1) / each : 1;
      if (nodes > 1)
        notes_.push_back(fmt::format(
            "the log does not say how many servers there were: {} taken, of {} GPUs", nodes, each));
    }
    return nodes;
  }

  // Ranks fill the servers evenly.
  std::vector<NodeId> choose(const Fabric& fabric, const MeasuredRun& run,
                             std::int64_t nodes) const {
    std::int64_t each = flags_.per_node.value_or((run.ranks + nodes - 1) / nodes);
    if (each * nodes < run.ranks || (flags_.per_node && each * nodes != run.ranks)) {
      throw InputError(
          fmt::format("{}: error: {} ranks are not {} servers of {} GPUs\n    correct --nodes or "
                      "--gpus-per-node\n",
                      log_, run.ranks, nodes, each));
    }
    if (fabric.gpus().size() > kMostGpus)
      throw LimitReached(fmt::format("more than {} GPUs", kMostGpus));
    std::vector<NodeId> gpus = first_gpus(fabric, each, run.ranks);
    if (static_cast<int>(gpus.size()) < run.ranks) {
      throw InputError(
          fmt::format("{}: error: {} ranks on {} servers do not fit {}: it has {} GPUs\n"
                      "    name another --fabric, or correct --nodes and --gpus-per-node\n",
                      log_, run.ranks, nodes, fabric_, fabric.gpus().size()));
    }
    return gpus;
  }

  void check_product(const Log& log, const Fabric& fabric) {
    const ServerType& type = fabric.types().front();
    if (type.gpu_specs.empty() || log.measurement.devices.empty()) return;
    const std::string &product = log.measurement.devices.front().product,
                      &model = type.gpu_specs.front().name;
    if (!product.empty() && !model.empty() && !names_gpu(product, model)) {
      notes_.push_back(fmt::format(
          "the log is of \"{}\", the fabric has {}: what differs may be the GPU", product, model));
    }
  }

  void read_setup(const Log& log, NcclSetup& setup, Diagnostics& diagnostics) {
    const auto& said = log.measurement.setup;
    const auto value = [&](const char* key) {
      const auto found = said.find(key);
      return found == said.end() ? std::string{} : found->second;
    };
    const std::string nccl = value("nccl");
    const auto logged = parse_nccl_version(nccl.substr(0, nccl.find('+')));  // 2.10.3+cuda11.6
    if (!flags_.release.empty()) {
      if (const auto version = read_nccl_release(flags_.release, diagnostics)) {
        setup.version = *version;
        if (logged && version_text(*logged) != version_text(*version)) {
          notes_.push_back(fmt::format("--nccl {} contradicts the log, which says {}",
                                       flags_.release, version_text(*logged)));
        }
      }
    } else if (logged) {
      setup.version = *logged;
    } else {
      notes_.push_back(nccl.empty()
                           ? fmt::format("the log does not say which NCCL it was: {} taken",
                                         version_text(setup.version))
                           : fmt::format("NCCL {} is not modelled: {} taken", nccl,
                                         version_text(setup.version)));
    }
    setup.harness = harness_of(log, value("nGpus"), value("graph"));
    if (!flags_.harness.empty()) {
      const NcclHarness seen = setup.harness;
      read_config(Json(flags_.harness), "--harness", setup.harness, diagnostics);
      if (seen != NcclHarness::unknown && seen != setup.harness)
        notes_.push_back(fmt::format("--harness {} contradicts the log, which looks like {}",
                                     flags_.harness, write_config(seen).text));
    }
    read_nccl_choices(flags_, setup, diagnostics);
    // What was forced is no fault; other variables may be, and are looked for.
    for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
      const auto& set = log.table().environment;
      const auto found = set.find(name);
      if (found == set.end() || setup.environment.find(name) != nullptr) continue;
      const NcclEnvironment one{{{name, found->second}}};
      if (!check_nccl_environment(one).empty()) continue;
      setup.environment.variables[name] = found->second;
      notes_.push_back(fmt::format("the log says {}={}: predicted with it, --env says otherwise",
                                   name, found->second));
    }
  }

  static NcclHarness harness_of(const Log& log, const std::string& per_thread,
                                const std::string& graph) {
    if (!graph.empty() && graph != "0") return NcclHarness::graph;
    if (per_thread.empty()) return NcclHarness::unknown;
    return per_thread != "1" && log.table().ranks > 1 ? NcclHarness::one_process
                                                      : NcclHarness::process_per_gpu;
  }

  LogPair compare(const Log& log, const Log& other) const {
    if (log.table().collective != other.table().collective) {
      throw InputError(
          fmt::format("{}: error: it is of {}, {} of {}\n    compare logs of one collective\n",
                      against_, other.table().collective, log_, log.table().collective));
    }
    const auto pair = compare_logs(log.measurement, log.table(), other.measurement, other.table());
    if (!pair)
      throw InputError(
          fmt::format("{}: error: its sizes and those of {} do not overlap\n", against_, log_));
    return *pair;
  }

  // ---- answers

  static Json cause_json(const LogCause& cause) {
    Json out = Json::object();
    out.set("name", cause.name);
    out.set("explains", cause.explains);
    out.set("evidence", cause.evidence);
    out.set("measure_next", cause.measure_next);
    return out;
  }

  Json to_json(const LogQuestion& question, const LogExplanation& found,
               const std::optional<LogPair>& pair, const std::vector<std::string>& notes) const {
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("fabric", fabric_);
    out.set("collective", write_config(question.collective));
    out.set("ranks", std::uint64_t{question.gpus.size()});
    out.set("nccl", version_text(question.setup.version));
    out.set("harness", write_config(question.setup.harness));
    Json& rows = out.set("rows", Json::array());
    for (const LogRow& row : found.rows) {
      Json r = Json::object();
      r.set("bytes", row.bytes.count);
      r.set("measured_us", row.measured_us);
      r.set("predicted_us", row.predicted_us);
      r.set("measured_busbw_gbs", row.measured_gbs);
      r.set("predicted_busbw_gbs", row.predicted_gbs);
      r.set("ratio", row.ratio);
      r.set("verdict", write_config(row.verdict));
      r.set("algorithm", row.algorithm);
      r.set("protocol", row.protocol);
      r.set("bottleneck", row.bottleneck);
      rows.push(std::move(r));
    }
    Json& summary = out.set("summary", Json::object());
    summary.set("verdict", write_config(found.verdict));
    summary.set("ratio", found.ratio);
    if (found.launch_us) {
      summary.set("launch_us", *found.launch_us);
      summary.set("expected_launch_us", *found.expected_launch_us);
    }
    Json& causes = summary.set("causes", Json::array());
    for (const LogCause& cause : found.causes) causes.push(cause_json(cause));
    if (pair) {
      Json& against = out.set("against", Json::object());
      against.set("log", against_);
      against.set("ratio", pair->ratio);
      against.set("from_bytes", pair->from.count);
      against.set("to_bytes", pair->to.count);
    }
    Json& list = out.set("notes", Json::array());
    for (const std::string& note : notes) list.push(note);
    return out;
  }

  std::string text(const LogQuestion& question, const LogExplanation& found,
                   const std::optional<LogPair>& pair, const std::vector<std::string>& notes,
                   const Io& io) const {
    std::string out = fmt::format("{} of {} ranks on {}, NCCL {}, harness {}\n\n",
                                  write_config(question.collective).text, question.gpus.size(),
                                  fabric_, version_text(question.setup.version),
                                  write_config(question.setup.harness).text);
    Table table({"size", "measured us", "predicted us", "measured GB/s", "predicted GB/s", "ratio",
                 "verdict", "predicted as"});
    for (const LogRow& row : found.rows) {
      const Colour colour = row.verdict == LogVerdict::normal ? Colour::green
                            : row.verdict == LogVerdict::low  ? Colour::red
                                                              : Colour::yellow;
      table.row({to_text(row.bytes), fmt::format("{:.1f}", row.measured_us),
                 fmt::format("{:.1f}", row.predicted_us), fmt::format("{:.2f}", row.measured_gbs),
                 fmt::format("{:.2f}", row.predicted_gbs), fmt::format("{:.2f}", row.ratio),
                 paint(write_config(row.verdict).text, colour, io.colour),
                 row.algorithm + "/" + row.protocol});
    }
    out += table.text() + "\n";
    out += summary(found, pair);
    for (const LogCause& cause : found.causes) {
      out += fmt::format("\n{}: {}\n  because {}\n  next: {}\n",
                         paint(cause.name, Colour::bold, io.colour), cause.explains, cause.evidence,
                         cause.measure_next);
    }
    if (!notes.empty()) out += "\n";
    for (const std::string& note : notes) out += "note: " + note + "\n";
    return out;
  }

  std::string summary(const LogExplanation& found, const std::optional<LogPair>& pair) const {
    std::string out =
        fmt::format("{}: {} of {} rows are normal; large messages run at {} of the prediction.\n",
                    write_config(found.verdict).text, found.normal_rows(), found.rows.size(),
                    percent(found.ratio, 0));
    if (found.launch_us)
      out += fmt::format("Small messages take {:.1f} us, expected {:.1f}.\n", *found.launch_us,
                         *found.expected_launch_us);
    if (!found.rows.empty())
      out += fmt::format("Expected to hold the largest size back: {}.\n",
                         found.rows.back().bottleneck);
    if (pair) {
      out += fmt::format("{} runs at {} of {} from {} to {}.\n", log_, percent(pair->ratio, 0),
                         against_, to_text(pair->from), to_text(pair->to));
    }
    return out;
  }

  std::string log_, fabric_, against_, collective_;
  std::optional<std::int64_t> ranks_, run_;
  NcclFlags flags_;
  Settings sets_;
  std::vector<std::string> notes_;
  bool json_ = false;
};

}  // namespace

extern const Verb kExplainLog;
const Verb kExplainLog{"explain-log", "says why a log of nccl-tests is as it is, row by row",
                       make_command<ExplainLog>};

}  // namespace weft
