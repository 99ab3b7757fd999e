// SPDX-License-Identifier: Apache-2.0
// weft nccl-tests: the table of nccl-tests, predicted. The algorithm is weft's own choice or --algo; NCCL's protocols, tuner
// and environment are not modelled yet and are refused.
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "models/catalog.hpp"
#include "sim/core/check.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/simulate.hpp"

namespace weft {
namespace {

// Software costs of a collective as NCCL has them on recent GPUs, to the order of magnitude; assumed until NCCL itself is
// modelled. An 8-byte all-reduce over 8 H100 takes 13.7 us (measured), of which most is the launch.
constexpr CollectiveCosts kNcclCosts{.launch = 7_us, .step = 700_ns, .network_step = 3_us};

constexpr std::size_t kMostSizes = 200;
constexpr std::size_t kMostGpus = 100'000;

// "8", "512K", "4M", "8G" as nccl-tests takes them, or a size with a unit.
std::optional<Bytes> parse_size(std::string text) {
  if (const auto size = parse_bytes(text)) return size;
  if (!text.empty()) {
    const char last = static_cast<char>(std::toupper(text.back()));
    if (last == 'K' || last == 'M' || last == 'G' || last == 'T')
      return parse_bytes(text.substr(0, text.size() - 1) + last + "iB");
  }
  return parse_bytes(text + "B");
}

struct Row {
  std::int64_t bytes = 0;
  double time_us = 0, algbw = 0, busbw = 0;
  std::string algorithm;
  std::size_t channels = 0;
};

class NcclTests final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option(
           "test", test_,
           "all_reduce_perf, all_gather_perf, reduce_scatter_perf, broadcast_perf, reduce_perf, "
           "alltoall_perf, sendrecv_perf, gather_perf or scatter_perf")
        ->required();
    app.add_option("--fabric", fabric_, "a fabric or server")->required();
    app.add_option("-b,--minbytes", from_, "smallest size, default 8");
    app.add_option("-e,--maxbytes", to_, "largest size, default 8G");
    app.add_option("-f,--stepfactor", factor_, "from one size to the next, default 2")
        ->check(CLI::Range(1.01, 1e6));
    app.add_option("-g,--ngpus", gpus_, "number of GPUs; default all")
        ->check(CLI::Range(1, 10'000'000));
    app.add_option("--nodes", nodes_, "number of servers")->check(CLI::Range(1, 1'000'000));
    app.add_option("--gpus-per-node", per_node_, "GPUs of each server")
        ->check(CLI::Range(1, 10'000));
    app.add_option("--algo", algorithm_, "see `weft list collectives`");
    app.add_option("--proto", proto_, "not yet");
    app.add_option("--nccl", nccl_, "not yet");
    app.add_option("--env", env_, "not yet");
    app.add_option("--fidelity", fidelity_, "analytic or fluid");
    add_set_option(app, sets_);
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    Diagnostics diagnostics;
    const auto collective = read_test(diagnostics);
    const auto from = parse_size(from_), to = parse_size(to_);
    if (!from)
      diagnostics.error({}, "-b", fmt::format("\"{}\" is not a size", from_),
                        "e.g. 8, 1M, \"1 MiB\"");
    if (!to)
      diagnostics.error({}, "-e", fmt::format("\"{}\" is not a size", to_), "e.g. 8G, \"1 GiB\"");
    if (!(factor_ > 1 && factor_ < 1e9))
      diagnostics.error({}, "-f", "the factor must be a number above 1", "e.g. 2");
    if (gpus_ && (nodes_ || per_node_))
      diagnostics.error({}, "-g", "--nodes and --gpus-per-node already count the GPUs",
                        "give one or the other");
    if (from && to && *from > *to)
      diagnostics.error({}, "-b", "the smallest size is above the largest");
    if (!proto_.empty())
      diagnostics.error({}, "--proto", "not yet: NCCL's protocols", "leave it out");
    if (!nccl_.empty()) diagnostics.error({}, "--nccl", "not yet: NCCL's releases", "leave it out");
    if (!env_.empty())
      diagnostics.error({}, "--env", "not yet: NCCL's environment", "leave it out");
    Fidelity fidelity = Fidelity::fluid;
    if (!fidelity_.empty()) read_config(Json(fidelity_), "--fidelity", fidelity, diagnostics);
    diagnostics.throw_if_errors();
    const Fabric fabric = load(diagnostics);
    Scenario scenario;
    scenario.name = test_;
    scenario.fidelity = fidelity;
    scenario.models.collective = kNcclCosts;
    JobSpec& job = scenario.jobs.emplace_back();
    job.collective = collective;
    job.algorithm = algorithm_;
    job.gpus = gpus_;
    job.placement.gpus_per_server = per_node_;
    Progress progress(io.err);
    RunContext context = run_context(progress);
    context.explain = false;
    std::vector<Row> rows;
    std::size_t ranks = 0;
    for (double size = from->value(); size <= to->value() * (1 + 1e-12) && rows.size() < kMostSizes;
         size *= factor_) {
      job.size = Bytes{static_cast<std::int64_t>(size)};
      progress.show(fmt::format("{} of {}", test_, weft::to_text(*job.size)));
      const Report report = run_on(fabric, scenario, context, diagnostics);
      const JobReport& result = report.jobs.front();
      ranks = result.ranks;
      rows.push_back({job.size->count, result.time_s * 1e6, result.algbw_gbs, result.busbw_gbs,
                      result.algorithm, result.channels});
      if (size == 0) break;
    }
    io.out = json_ ? to_text(to_json(*collective, ranks, rows)) + "\n"
                   : text(fabric, *collective, ranks, rows);
    return kOk;
  }

 private:
  std::optional<CollectiveKind> read_test(Diagnostics& diagnostics) const {
    static const std::map<std::string, CollectiveKind> tests{
        {"all_reduce_perf", CollectiveKind::all_reduce},
        {"all_gather_perf", CollectiveKind::all_gather},
        {"reduce_scatter_perf", CollectiveKind::reduce_scatter},
        {"broadcast_perf", CollectiveKind::broadcast},
        {"reduce_perf", CollectiveKind::reduce},
        {"alltoall_perf", CollectiveKind::all_to_all},
        {"sendrecv_perf", CollectiveKind::send_recv},
        {"gather_perf", CollectiveKind::gather},
        {"scatter_perf", CollectiveKind::scatter}};
    if (const auto found = tests.find(test_); found != tests.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [name, kind] : tests) names.push_back(name);
    diagnostics.error({}, {},
                      fmt::format("\"{}\" is not a test{}", test_, did_you_mean(test_, names)),
                      "one of " + join(names, ", "));
    return std::nullopt;
  }

  // The fabric, of --nodes servers when asked for; with --gpus-per-node only the first GPUs of each server take part.
  Fabric load(Diagnostics& diagnostics) {
    std::vector<std::string> sets = sets_;
    if (nodes_) sets.push_back(fmt::format("/servers={}", *nodes_));
    if (nodes_ && *nodes_ == 1) sets.pop_back();
    Fabric fabric = load_fabric(fabric_, sets, diagnostics).fabric;
    std::size_t fewest = fabric.gpus().size();
    for (const ServerType& type : fabric.types()) fewest = std::min(fewest, type.gpus.size());
    if (per_node_ && static_cast<std::size_t>(*per_node_) > fewest) {
      throw InputError(
          fmt::format("error: --gpus-per-node: {} GPUs are wanted of each server, one has {}\n",
                      *per_node_, fewest));
    }
    if (fabric.gpus().size() > kMostGpus)
      throw LimitReached(fmt::format("more than {} GPUs", kMostGpus));
    return fabric;
  }

  Json to_json(CollectiveKind kind, std::size_t ranks, const std::vector<Row>& rows) const {
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("collective", write_config(kind));
    out.set("ranks", std::uint64_t{ranks});
    Json& list = out.set("rows", Json::array());
    for (const Row& row : rows) {
      Json r = Json::object();
      r.set("bytes", row.bytes);
      r.set("time_us", row.time_us);
      r.set("algbw_gbs", row.algbw);
      r.set("busbw_gbs", row.busbw);
      r.set("algorithm", row.algorithm);
      r.set("protocol", "simple");
      r.set("channels", std::uint64_t{row.channels});
      list.push(std::move(r));
    }
    return out;
  }

  std::string text(const Fabric& fabric, CollectiveKind kind, std::size_t ranks,
                   const std::vector<Row>& rows) const {
    const bool reduces = kind == CollectiveKind::all_reduce ||
                         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::reduce;
    const bool rooted = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
                        kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
    std::string out = fmt::format("# {} predicted by weft {} on {}, {} ranks\n", test_,
                                  WEFT_VERSION, fabric.spec().name, ranks);
    out += fmt::format("# software costs assumed: launch {}, step {}, network step {}\n#\n",
                       weft::to_text(kNcclCosts.launch), weft::to_text(kNcclCosts.step),
                       weft::to_text(kNcclCosts.network_step));
    out += fmt::format(
        "#{:>12}{:>14}{:>10}{:>8}{:>8}{:>10}{:>8}{:>8}{:>7}{:>10}{:>8}{:>8}{:>7}  algorithm\n",
        "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
        "algbw", "busbw", "#wrong");
    out += fmt::format("#{:>12}{:>14}{:>10}{:>8}{:>8}{:>10}{:>8}{:>8}{:>7}{:>10}{:>8}{:>8}{:>7}\n",
                       "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
                       "(GB/s)", "(GB/s)", "");
    double sum = 0;
    for (const Row& row : rows) {
      const std::string figures =
          fmt::format("{:>10.2f}{:>8.2f}{:>8.2f}{:>7}", row.time_us, row.algbw, row.busbw, "N/A");
      out += fmt::format(" {:>12}{:>14}{:>10}{:>8}{:>8}{}{}  {} x{}\n", row.bytes, row.bytes / 4,
                         "float", reduces ? "sum" : "none", rooted ? 0 : -1, figures, figures,
                         row.algorithm, row.channels);
      sum += row.busbw;
    }
    if (!rows.empty())
      out +=
          fmt::format("# Avg bus bandwidth    : {:.4f}\n", sum / static_cast<double>(rows.size()));
    return out;
  }

  std::string test_, fabric_, from_ = "8", to_ = "8G", algorithm_, proto_, nccl_, fidelity_;
  double factor_ = 2;
  std::optional<std::int64_t> gpus_, nodes_, per_node_;
  std::vector<std::string> env_, sets_;
  bool json_ = false;
};

}  // namespace

extern const Verb kNcclTests;
const Verb kNcclTests{"nccl-tests", "predicts the table of nccl-tests", make_command<NcclTests>};

}  // namespace weft
