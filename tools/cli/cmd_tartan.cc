// SPDX-License-Identifier: Apache-2.0
// weft tartan: three patterns of multi-GPU applications over message sizes, after the Tartan suite (Li et al., IISWC 2018):
// broadcast for data parallel, an exchange with the neighbour for model parallel, a chain for pipeline parallel. The congestion
// threshold is the first size at which the bandwidth falls by more than 10 % from the size before.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/cli/cli.hpp"
#include "tools/cli/simulate.hpp"

namespace weft {
namespace {

constexpr Bytes kFrom = 1_KB, kTo = 1_GB;
constexpr double kFall = 0.9;

struct Point {
  Bytes size;
  double gbs = 0;
};

struct Series {
  std::string name, meaning;
  std::vector<Point> points;
  std::optional<Bytes> threshold;
};

FlowEntry flow_between(const Fabric& fabric, NodeId src, NodeId dst, Bytes size) {
  FlowEntry flow;
  flow.src = fabric.name(src);
  flow.dst = fabric.name(dst);
  flow.size = size;
  return flow;
}

class Tartan final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("fabric", fabric_, "a fabric or server")->required();
    add_set_option(app, sets_);
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    Diagnostics diagnostics;
    const LoadedFabric loaded = load_fabric(fabric_, sets_, diagnostics);
    Progress progress(io.err);
    RunContext context = run_context(progress);
    context.explain = false;
    std::vector<Series> all{{"broadcast", "data parallel: rank 0 to all", {}, {}},
                            {"exchange", "model parallel: every GPU with its neighbour", {}, {}},
                            {"chain", "pipeline parallel: GPU 0 to 1 to 2 ...", {}, {}}};
    for (Series& series : all) {
      for (Bytes size = kFrom; size <= kTo; size = size * 10) {
        progress.show(series.name + " " + to_text(size));
        const double seconds = time_of(series.name, loaded.fabric, size, context, diagnostics);
        series.points.push_back({size, seconds > 0 ? size.value() / seconds * 1e-9 : 0});
      }
      for (std::size_t i = 1; i < series.points.size() && !series.threshold; ++i) {
        if (series.points[i].gbs < kFall * series.points[i - 1].gbs)
          series.threshold = series.points[i].size;
      }
    }
    io.out = json_ ? to_text(to_json(loaded.fabric, all)) + "\n" : text(loaded.fabric, all);
    return kOk;
  }

 private:
  static double time_of(const std::string& name, const Fabric& fabric, Bytes size,
                        const RunContext& context, Diagnostics& diagnostics) {
    Scenario scenario;
    JobSpec& job = scenario.jobs.emplace_back();
    const auto gpus = fabric.gpus();
    if (name == "broadcast") {
      job.collective = CollectiveKind::broadcast;
      job.size = size;
      return run_on(fabric, scenario, context, diagnostics).time_s;
    }
    if (name == "exchange") {
      for (std::size_t i = 0; i + 1 < gpus.size(); i += 2) {
        job.flows.push_back(flow_between(fabric, gpus[i], gpus[i + 1], size));
        job.flows.push_back(flow_between(fabric, gpus[i + 1], gpus[i], size));
      }
      return job.flows.empty() ? 0 : run_on(fabric, scenario, context, diagnostics).time_s;
    }
    // A stage sends when it has received: the hops of one micro-batch follow each other, and the rate is that of one hop.
    double seconds = 0;
    for (std::size_t i = 0; i + 1 < gpus.size(); ++i) {
      Scenario hop;
      hop.jobs.emplace_back().flows.push_back(flow_between(fabric, gpus[i], gpus[i + 1], size));
      seconds += run_on(fabric, hop, context, diagnostics).time_s;
    }
    return gpus.size() > 1 ? seconds / static_cast<double>(gpus.size() - 1) : 0;
  }

  static std::string threshold_text(const Series& series) {
    return series.threshold ? weft::to_text(*series.threshold) : std::string("none");
  }

  Json to_json(const Fabric& fabric, const std::vector<Series>& all) const {
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("fabric", fabric.spec().name);
    Json& list = out.set("patterns", Json::array());
    for (const Series& series : all) {
      Json s = Json::object();
      s.set("name", series.name);
      s.set("meaning", series.meaning);
      s.set("congestion_threshold_bytes",
            series.threshold ? Json(series.threshold->count) : Json{});
      Json& rows = s.set("rows", Json::array());
      for (const Point& point : series.points) {
        Json r = Json::object();
        r.set("bytes", point.size.count);
        r.set("bandwidth_gbs", point.gbs);
        rows.push(std::move(r));
      }
      list.push(std::move(s));
    }
    return out;
  }

  std::string text(const Fabric& fabric, const std::vector<Series>& all) const {
    std::string out = fmt::format("{}: {} GPUs\n\n", fabric.spec().name, fabric.gpus().size());
    Table table({"size", "broadcast GB/s", "exchange GB/s", "chain GB/s"});
    for (std::size_t i = 0; i < all.front().points.size(); ++i) {
      table.row({weft::to_text(all[0].points[i].size), fmt::format("{:.3f}", all[0].points[i].gbs),
                 fmt::format("{:.3f}", all[1].points[i].gbs),
                 fmt::format("{:.3f}", all[2].points[i].gbs)});
    }
    out += table.text() + "\ncongestion threshold (first size that loses more than 10 %):\n";
    for (const Series& series : all)
      out +=
          fmt::format("  {:<10} {:<8} {}\n", series.name, threshold_text(series), series.meaning);
    return out;
  }

  std::string fabric_;
  Settings sets_;
  bool json_ = false;
};

}  // namespace

extern const Verb kTartan;
const Verb kTartan{"tartan", "the Tartan-style suite and its congestion threshold",
                   make_command<Tartan>};

}  // namespace weft
