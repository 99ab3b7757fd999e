// SPDX-License-Identifier: Apache-2.0
// weft nccl-tests: the table of nccl-tests, predicted, with what NCCL would choose for every size and what holds it back.
// GPUs that NCCL does not drive run weft's own algorithms at assumed software costs.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/fit/intervals.hpp"
#include "models/catalog.hpp"
#include "models/nccl/predict.hpp"
#include "models/nccl/tuner_file.hpp"
#include "sim/core/check.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/calibrate_input.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/nccl_flags.hpp"
#include "tools/cli/output.hpp"
#include "tools/cli/simulate.hpp"

namespace weft {
namespace {

// Of a library that is not modelled (RCCL, HCCL), to the order of magnitude: assumed.
constexpr CollectiveCosts kOtherCosts{.launch = 7_us, .step = 700_ns, .network_step = 3_us};

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
        ->check(number_between(1.01, 1e6));
    app.add_option("-g,--ngpus", gpus_, "number of GPUs; default all")
        ->check(CLI::Range(1, 10'000'000));
    add_nccl_flags(app, flags_, " 2.27.7", ": how the test starts its kernels");
    app.add_option("--export-tuner", tuner_,
                   "writes the choices as a file of NCCL's tuner plug-in");
    app.add_option("--fidelity", fidelity_, "analytic or fluid");
    app.add_flag("--intervals", intervals_,
                 "90 % intervals: the fabric is a patch of `weft calibrate fit`");
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
    if (gpus_ && (flags_.nodes || flags_.per_node))
      diagnostics.error({}, "-g", "--nodes and --gpus-per-node already count the GPUs",
                        "give one or the other");
    if (from && to && *from > *to)
      diagnostics.error({}, "-b", "the smallest size is above the largest");
    NcclSetup setup = read_setup(diagnostics);
    Fidelity fidelity = Fidelity::fluid;
    if (!fidelity_.empty()) read_config(Json(fidelity_), "--fidelity", fidelity, diagnostics);
    if (fidelity == Fidelity::packet)
      diagnostics.error({}, "--fidelity", "not yet: tables of NCCL at packet level",
                        "one of analytic, fluid; `weft run` knows packets");
    diagnostics.throw_if_errors();
    io.err << diagnostics.text();
    const Fabric fabric = load(diagnostics);
    const std::vector<NodeId> gpus = choose(fabric);
    setup.fidelity = fidelity;
    const std::vector<Bytes> sizes = sizes_between(*from, *to);
    sizes_ = sizes;
    expect_writable(tuner_);
    Progress progress(io.err);
    const bool nccl = driven_by_nccl(fabric, gpus);
    const std::vector<NcclRow> rows =
        nccl ? predict_nccl(fabric, gpus, *collective, sizes, setup)
             : predict_other(fabric, *collective, sizes, fidelity, progress, diagnostics);
    if (!tuner_.empty()) {
      const std::size_t nodes = node_count(fabric, gpus);
      write_file(tuner_, tuner_csv(*collective, rows, nodes, gpus.size()));
    }
    if (intervals_) spread_ = spreads(*collective, gpus, rows, setup, diagnostics);
    io.out = json_ ? to_text(to_json(*collective, gpus.size(), rows, setup)) + "\n"
                   : text(fabric, *collective, gpus.size(), rows, setup, nccl);
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

  // Each size once, however small the step.
  std::vector<Bytes> sizes_between(Bytes from, Bytes to) const {
    std::vector<Bytes> sizes;
    for (double size = from.value(); size <= to.value() * (1 + 1e-12); size *= factor_) {
      const Bytes whole{static_cast<std::int64_t>(size)};
      if (sizes.empty() || sizes.back() != whole) sizes.push_back(whole);
      if (sizes.size() > kMostSizes)
        throw LimitReached(fmt::format("-f {} makes more than {} sizes", factor_, kMostSizes));
      if (size == 0) break;
    }
    return sizes;
  }

  // The fabric, of --nodes servers when asked for; with --gpus-per-node only the first GPUs of each server take part.
  Fabric load(Diagnostics& diagnostics) {
    Settings sets = sets_;
    if (flags_.nodes) {
      const bool network =
          load_fabric(fabric_, sets_, diagnostics).fabric.spec().network.has_value();
      if (*flags_.nodes > 1 && !network) {
        throw InputError(
            fmt::format("error: --nodes: {} is one server without a network\n"
                        "    name a fabric as --fabric, see `weft list fabrics`\n",
                        fabric_));
      }
      if (network) sets.emplace_back("/servers", Json(*flags_.nodes));
    }
    Fabric fabric = load_fabric(fabric_, sets, diagnostics).fabric;
    std::size_t fewest = fabric.gpus().size();
    for (const ServerType& type : fabric.types()) fewest = std::min(fewest, type.gpus.size());
    if (flags_.per_node && static_cast<std::size_t>(*flags_.per_node) > fewest) {
      throw InputError(
          fmt::format("error: --gpus-per-node: {} GPUs are wanted of each server, one has {}\n",
                      *flags_.per_node, fewest));
    }
    if (fabric.gpus().size() > kMostGpus)
      throw LimitReached(fmt::format("more than {} GPUs", kMostGpus));
    return fabric;
  }

  NcclSetup read_setup(Diagnostics& diagnostics) const {
    NcclSetup setup;
    if (const auto version = read_nccl_release(flags_.release, diagnostics))
      setup.version = *version;
    if (!flags_.harness.empty())
      read_config(Json(flags_.harness), "--harness", setup.harness, diagnostics);
    read_nccl_choices(flags_, setup, diagnostics);
    return setup;
  }

  // By row: the factor that its 90 % interval goes up and down by; parameters and what weft is off by beside them.
  std::vector<double> spreads(CollectiveKind kind, const std::vector<NodeId>& gpus,
                              const std::vector<NcclRow>& rows, const NcclSetup& setup,
                              Diagnostics& diagnostics) {
    const Calibration calibration = calibration_of(fabric_, pointers_of(sets_));
    std::vector<Bytes> sizes;
    for (const NcclRow& row : rows) sizes.push_back(row.bytes);
    const Settings given = sets_;
    bool across = false;
    const std::vector<double> sd = propagate(calibration, [&](const ValueChanges& changes) {
      sets_ = given;
      sets_.insert(sets_.end(), changes.begin(), changes.end());
      const Fabric changed = load(diagnostics);
      across = node_count(changed, gpus) > 1;
      std::vector<double> out;
      for (const NcclRow& row : predict_nccl(changed, gpus, kind, sizes, setup))
        out.push_back(row.time.us());
      return out;
    });
    sets_ = given;
    std::vector<double> out;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      out.push_back(interval_factor(
          calibration, sd[i],
          {.kind = PredictedKind::collective, .bytes = sizes[i], .across = across}));
    }
    return out;
  }

  // The GPUs that take part, in rank order.
  std::vector<NodeId> choose(const Fabric& fabric) const {
    std::vector<NodeId> gpus = first_gpus(fabric, flags_.per_node, gpus_);
    if (gpus_ && static_cast<std::int64_t>(gpus.size()) < *gpus_) {
      throw InputError(fmt::format("error: -g: {} GPUs are wanted, the fabric has {}\n", *gpus_,
                                   fabric.gpus().size()));
    }
    return gpus;
  }

  static bool driven_by_nccl(const Fabric& fabric, const std::vector<NodeId>& gpus) {
    return std::ranges::all_of(gpus, [&](NodeId gpu) {
      const std::string& vendor = fabric.gpu_spec(gpu).vendor;
      return vendor.empty() || vendor == "nvidia";
    });
  }

  std::vector<NcclRow> predict_other(const Fabric& fabric, CollectiveKind kind,
                                     const std::vector<Bytes>& sizes, Fidelity fidelity,
                                     Progress& progress, Diagnostics& diagnostics) const {
    Scenario scenario;
    scenario.name = test_;
    scenario.fidelity = fidelity;
    scenario.models.collective = kOtherCosts;
    JobSpec& job = scenario.jobs.emplace_back();
    job.collective = kind;
    job.algorithm = flags_.algorithm;
    job.gpus = gpus_;
    job.placement.gpus_per_server = flags_.per_node;
    RunContext context = run_context(progress);
    context.explain = false;
    std::vector<NcclRow> rows;
    for (const Bytes size : sizes) {
      job.size = size;
      progress.show(fmt::format("{} of {}", test_, weft::to_text(size)));
      const Report report = run_on(fabric, scenario, context, diagnostics);
      const JobReport& result = report.jobs.front();
      NcclRow& row = rows.emplace_back();
      row.bytes = size;
      row.time = Time{static_cast<std::int64_t>(result.time_s * 1e12)};
      row.algbw_gbs = result.algbw_gbs;
      row.busbw_gbs = result.busbw_gbs;
      row.algorithm = result.algorithm;
      row.protocol = "simple";
      row.channels = static_cast<std::uint32_t>(result.channels);
    }
    return rows;
  }

  static std::size_t node_count(const Fabric& fabric, const std::vector<NodeId>& gpus) {
    std::set<ServerId> servers;
    for (const NodeId gpu : gpus) servers.insert(fabric.node(gpu).server);
    return servers.size();
  }

  Json to_json(CollectiveKind kind, std::size_t ranks, const std::vector<NcclRow>& rows,
               const NcclSetup& setup) const {
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("collective", write_config(kind));
    out.set("ranks", std::uint64_t{ranks});
    out.set("nccl", version_text(setup.version));
    out.set("harness", write_config(setup.harness));
    Json& list = out.set("rows", Json::array());
    for (const NcclRow& row : rows) {
      Json r = Json::object();
      r.set("bytes", row.bytes.count);
      r.set("time_us", row.time.seconds() * 1e6);
      r.set("algbw_gbs", row.algbw_gbs);
      r.set("busbw_gbs", row.busbw_gbs);
      r.set("algorithm", row.algorithm);
      r.set("protocol", row.protocol);
      r.set("channels", std::uint64_t{row.channels});
      r.set("bottleneck", row.bottleneck);
      if (const std::size_t i = list.items.size(); i < spread_.size()) {
        r.set("time_us_low", row.time.seconds() * 1e6 / spread_[i]);
        r.set("time_us_high", row.time.seconds() * 1e6 * spread_[i]);
      }
      list.push(std::move(r));
    }
    return out;
  }

  std::string text(const Fabric& fabric, CollectiveKind kind, std::size_t ranks,
                   const std::vector<NcclRow>& rows, const NcclSetup& setup, bool nccl) const {
    const bool reduces = kind == CollectiveKind::all_reduce ||
                         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::reduce;
    const bool rooted = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
                        kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
    const std::size_t nodes = node_count(fabric, choose(fabric));
    std::string out =
        fmt::format("# {} predicted by weft {} on {}, {} ranks on {} server{}\n", test_,
                    WEFT_VERSION, fabric.spec().name, ranks, nodes, nodes == 1 ? "" : "s");
    out += nccl ? fmt::format("# NCCL {}, harness {}\n#\n", version_text(setup.version),
                              write_config(setup.harness).text)
                : fmt::format("# not NCCL: assumed costs: launch {}, step {}, network step {}\n#\n",
                              weft::to_text(kOtherCosts.launch), weft::to_text(kOtherCosts.step),
                              weft::to_text(kOtherCosts.network_step));
    out += fmt::format(
        "#{:>12}{:>14}{:>10}{:>8}{:>8}{:>10}{:>8}{:>8}{:>7}{:>10}{:>8}{:>8}{:>7}  {:<24}{}\n",
        "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
        "algbw", "busbw", "#wrong", "chosen", "held back by");
    out += fmt::format("#{:>12}{:>14}{:>10}{:>8}{:>8}{:>10}{:>8}{:>8}{:>7}{:>10}{:>8}{:>8}{:>7}\n",
                       "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
                       "(GB/s)", "(GB/s)", "");
    double sum = 0;
    for (const NcclRow& row : rows) {
      const std::string figures =
          fmt::format("{:>10.2f}{:>8.2f}{:>8.2f}{:>7}", row.time.seconds() * 1e6, row.algbw_gbs,
                      row.busbw_gbs, "N/A");
      out += fmt::format(" {:>12}{:>14}{:>10}{:>8}{:>8}{}{}  {:<24}{}\n", row.bytes.count,
                         row.bytes.count / 4, "float", reduces ? "sum" : "none", rooted ? 0 : -1,
                         figures, figures,
                         fmt::format("{}/{} x{}", row.algorithm, row.protocol, row.channels),
                         row.bottleneck + interval_text(row));
      sum += row.busbw_gbs;
    }
    if (!rows.empty())
      out +=
          fmt::format("# Avg bus bandwidth    : {:.4f}\n", sum / static_cast<double>(rows.size()));
    return out;
  }

  std::string interval_text(const NcclRow& row) const {
    for (std::size_t i = 0; i < spread_.size(); ++i) {
      if (sizes_[i] != row.bytes) continue;
      const double us = row.time.seconds() * 1e6;
      return fmt::format("; 90 % {:.2f} to {:.2f} us", us / spread_[i], us * spread_[i]);
    }
    return {};
  }

  std::vector<double> spread_;  // of --intervals, by row
  std::vector<Bytes> sizes_;
  bool intervals_ = false;
  std::string test_, fabric_, from_ = "8", to_ = "8G", tuner_, fidelity_;
  double factor_ = 2;
  NcclFlags flags_;
  std::optional<std::int64_t> gpus_;
  Settings sets_;
  bool json_ = false;
};

}  // namespace

extern const Verb kNcclTests;
const Verb kNcclTests{"nccl-tests", "predicts the table of nccl-tests", make_command<NcclTests>};

}  // namespace weft
