// SPDX-License-Identifier: Apache-2.0
#include "sim/run/run.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/run/jobs.hpp"
#include "sim/run/observe.hpp"
#include "sim/run/packet_check.hpp"
#include "sim/run/repeat_memory.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostExplainedLinks =
    50'000;  // beyond these a second run costs too much to be a courtesy
constexpr std::size_t kMostExplainedOps = 1'000'000;
constexpr std::uint64_t kMostExplainedEvents = 5'000'000;  // of the packet level
constexpr std::int64_t kAsGoodAsInfinite = 1000;
constexpr double kNoGain = 1e-3;                // of the time
constexpr std::size_t kMostHalvedLinks = 4000;  // as what changes is never folded
constexpr std::size_t kMostPathSteps = 50;

JobKind kind_of(const JobSpec& spec) {
  if (spec.kind) return *spec.kind;
  return spec.collective ? JobKind::collective : spec.p2p ? JobKind::p2p : JobKind::flows;
}

// Everything between a fabric and a report; one per run, so that a what-if builds its own.
class Run {
 public:
  Run(const Fabric& fabric, const Fabric& planned_on, const Scenario& scenario,
      const RunContext& context, const CollectivePlanner& planner, Diagnostics& out)
      : fabric_(fabric),
        planned_on_(planned_on),
        scenario_(scenario),
        context_(context),
        out_(out),
        builder_(fabric, planned_on, scenario, context.algorithms, context.library, context.models,
                 planner, lone_networks(), context.progress, out) {
    watched_ = watched_links(fabric, scenario, out);
    builder_.build();
  }

  Report execute() {
    NetworkOptions with = options();
    with.cuts = !builder_.reroutes().empty();
    const std::vector<Bandwidth> capacities = fabric_.capacities();
    network_ = context_.make_network(scenario_.fidelity, capacities, with);
    Executor executor(builder_.workload(), *network_);
    watch_flows(builder_, scenario_, *network_, out_);
    out_.throw_if_errors();
    std::optional<LinkSampler> sampler;
    if (!watched_.empty()) {
      const Time every = scenario_.observe.links->every;
      bool by_itself = true;
      for (const LinkId l : watched_) by_itself = by_itself && network_->watch(l.v, every);
      if (!by_itself) {
        sampler.emplace(watched_, every, *network_, builder_);
        executor.next_look = every;
        executor.look = [&](Time now) { return sampler->look(now); };
      }
    }
    executor.progress = context_.progress;
    std::vector<ExecutorJob> jobs;
    for (const JobPlan& job : builder_.jobs()) jobs.push_back(job.run);
    if (scenario_.fidelity == Fidelity::packet)
      refuse_endless_work(builder_.workload(), jobs,
                          packet_grain(fabric_, scenario_.models.packet));
    repeats_.emplace(*network_, fabric_.link_count());
    if (scenario_.models.repeat_memory) {
      executor.skip = [this](std::uint32_t job, std::uint64_t print, Time took,
                             std::uint32_t left) {
        return repeats_->ended(job, print, took, left);
      };
    }
    executor.run(jobs, builder_.changes(), builder_.reroutes());
    Observation seen = network_->observation();
    if (sampler) seen.series = sampler->finish(executor.simulated());
    Report report = make_report(executor, std::move(seen));
    if (context_.show && !with.hypothetical) {
      context_.show({fabric_, builder_.workload(), executor, *network_, builder_.jobs(),
                     [this](std::uint32_t r) { return builder_.representative(r); }});
    }
    return report;
  }

  std::size_t operation_count() const { return builder_.workload().operations.size(); }

 private:
  NetworkOptions options() const {
    NetworkOptions out;
    out.merge_classes = scenario_.models.merge_classes;
    out.remember_repeats = scenario_.models.remember_repeats;
    out.fabric = &fabric_;
    out.packet = &scenario_.models.packet;
    out.seed = static_cast<std::uint64_t>(scenario_.seed);
    for (const JobSpec& job : scenario_.jobs) {
      out.traffic_classes =
          std::max(out.traffic_classes, static_cast<std::uint8_t>(job.traffic_class));
    }
    out.hypothetical = &fabric_ != &planned_on_;
    return out;
  }
  // For what models time alone: flows, even where the scenario itself runs packets.
  CollectiveTimer::MakeNetwork lone_networks() const {
    const Fidelity fidelity =
        scenario_.fidelity == Fidelity::packet ? Fidelity::fluid : scenario_.fidelity;
    return [this, fidelity](std::span<const Bandwidth> capacities) {
      return context_.make_network(fidelity, capacities, options());
    };
  }

  Report make_report(const Executor& executor, Observation seen) {
    Report report;
    report.version = context_.version;
    report.scenario = scenario_.name;
    report.question = scenario_.question;
    report.fidelity = write_config(scenario_.fidelity).text;
    report.fabric = fabric_.spec().name;
    report.seed = scenario_.seed;
    report.fingerprint = executor.fingerprint();
    report.time_s = executor.makespan().seconds();
    report.events = executor.events() + network_->counters().events;
    report.network = repeats_->counters();
    report.settings = network_->settings();
    report.evidence = count_evidence(scenario_.document);
    report.effective = scenario_.document;
    const auto top = static_cast<std::size_t>(scenario_.observe.top);
    const Observer observer(fabric_, builder_, executor, std::move(seen));
    report.observed = observer.report(top);
    for (std::size_t j = 0; j < builder_.jobs().size(); ++j)
      add_job_report(j, executor, observer, report);
    add_links(executor, report);
    if (scenario_.observe.critical_path) add_critical_path(executor, report);
    const auto late = [](const ScheduledChange& change) { return change.when.ps > 0; };
    if (scenario_.fidelity == Fidelity::analytic && std::ranges::any_of(builder_.changes(), late)) {
      report.warnings.push_back(
          {"analytic-faults",
           "at analytic level a fault acts only on flows that start after it; use fluid"});
    }
    for (const JobSpec& job : scenario_.jobs) {
      if (!job.expand || !job.chunk) continue;
      report.warnings.push_back(
          {"chunk",
           fmt::format("{}: the expanded form moves whole units and ignores \"chunk\"", job.name)});
    }
    for (const Problem& problem : out_.problems()) {
      if (scenario_.nccl && problem.pointer.starts_with(scenario_.nccl->pointer))
        report.warnings.push_back({"nccl", problem.pointer + ": " + problem.fact});
    }
    for (const Problem& problem : out_.problems()) {
      if (problem.severity == Problem::Severity::warning &&
          problem.pointer.starts_with("/models/packet"))
        report.warnings.push_back({"packet", problem.pointer + ": " + problem.fact});
    }
    const bool alone = std::ranges::any_of(
        scenario_.jobs, [](const JobSpec& job) { return job.inference.has_value(); });
    if (network_traffic_ <= 0 && !alone) {
      report.warnings.push_back(
          {"no-traffic", "no communication found: nothing in this scenario crosses a link"});
    }
    return report;
  }

  void add_job_report(std::size_t j, const Executor& executor, const Observer& observer,
                      Report& report) {
    const JobPlan& meta = builder_.jobs()[j];
    const JobSpec& spec = *meta.spec;
    const JobTimes& times = executor.jobs()[j];
    JobReport& job = report.jobs.emplace_back();
    job.name = spec.name;
    job.kind = write_config(kind_of(spec)).text;
    job.ranks = meta.ranks;
    job.bytes = meta.bytes;
    job.iterations = times.iterations.size();
    job.start_s = times.started.seconds();
    job.finish_s = times.finished.seconds();
    job.notes = meta.notes;
    if (const auto& rest = repeats_->result(); rest && rest->job == j) {
      job.fast_forward = rest;
      job.notes.push_back(fmt::format(
          "{} of {} iterations were not run: {} (repeat_memory); flows and series are of those "
          "that "
          "were",
          rest->skipped, job.iterations,
          rest->bound.ps == 0
              ? std::string("the last ones were the same")
              : fmt::format(
                    "the last ones differed by at most {} from {}, which puts the end {} off at "
                    "most",
                    to_text(rest->deviation), to_text(rest->each), to_text(rest->bound))));
    }
    for (const Time iteration : times.iterations)
      job.time_s += iteration.seconds() / static_cast<double>(times.iterations.size());
    if (spec.collective) {
      job.collective = write_config(*spec.collective).text;
      job.algorithm = meta.algorithm;
      job.channels = meta.channels;
      if (job.time_s > 0) job.algbw_gbs = meta.bytes / job.time_s * 1e-9;
      job.busbw_gbs = job.algbw_gbs * busbw_factor(*spec.collective, meta.ranks);
      if (meta.groups.size() > 1) {
        for (const GroupPlan& group : meta.groups) {
          const Time took =
              executor.times(group.last).finished - executor.times(group.first).started;
          job.groups.push_back({{fabric_.name(group.gpus.front()), fabric_.name(group.gpus.back())},
                                group.gpus.size(),
                                took.seconds()});
        }
      }
    }
    if (meta.modelled) meta.modelled->report(executor, report, job);
    const auto top = static_cast<std::size_t>(scenario_.observe.top);
    std::size_t finished = 0;
    std::vector<double> times_s, slowdowns;
    for (const FlowPlan& flow : meta.flows) {
      const double start = executor.times(flow.first).started.seconds(),
                   finish = executor.times(flow.last).finished.seconds();
      const double rate = finish > start ? flow.size.value() / (finish - start) * 1e-9 : 0;
      if (rate > 0) {
        job.least_rate_gbs = finished == 0 ? rate : std::min(job.least_rate_gbs, rate);
        job.mean_rate_gbs += (rate - job.mean_rate_gbs) / static_cast<double>(++finished);
      }
      const double ideal = observer.ideal_s(flow);
      const bool ended = finish >= start;
      const double slowdown = !ended ? 0 : ideal > 0 ? (finish - start) / ideal : 1;
      if (finish > start) {
        times_s.push_back(finish - start);
        slowdowns.push_back(slowdown);
      }
      if (report.flows.size() >= top) {
        ++report.flows_cut;
        continue;
      }
      report.flows.push_back({flow.id, fabric_.name(flow.src), fabric_.name(flow.dst),
                              flow.size.value(), start, finish, rate, slowdown,
                              observer.seen_of(flow)});
    }
    job.completion_s = distribution_of(std::move(times_s));
    job.slowdown = distribution_of(std::move(slowdowns));
  }

  void add_links(const Executor& executor, Report& report) {
    struct Used {
      LinkId link;
      double bytes, utilisation;
    };
    std::vector<Used> used;
    std::map<std::pair<Tier, LinkClass>, double> tiers;
    LinkId bound_link;
    const double time = executor.makespan().seconds();
    for (std::uint32_t l = 0; l < fabric_.link_count(); ++l) {
      const double bytes = repeats_->carried_bytes(builder_.representative(l));
      if (bytes <= 0) continue;
      network_traffic_ += bytes;
      const Link& link = fabric_.link(LinkId{l});
      const double utilisation =
          time > 0 && link.rate.bps > 0 ? bytes / link.rate.bytes_per_s() / time : 0;
      used.push_back({LinkId{l}, bytes, utilisation});
      double& most = tiers[{link.tier, link.link_class}];
      most = std::max(most, utilisation);
      const double bound = bytes / link.raw.bytes_per_s();
      if (bound > report.bound_s) {
        report.bound_s = bound;
        bound_link = LinkId{l};
      }
    }
    if (bound_link.valid()) report.bound_by = fabric_.name(bound_link);
    const std::size_t top = std::min(used.size(), static_cast<std::size_t>(scenario_.observe.top));
    std::ranges::partial_sort(
        used, used.begin() + static_cast<std::ptrdiff_t>(top), [](const Used& a, const Used& b) {
          return a.utilisation != b.utilisation ? a.utilisation > b.utilisation : a.link < b.link;
        });
    for (std::size_t i = 0; i < top; ++i) {
      const Link& link = fabric_.link(used[i].link);
      report.links.push_back({fabric_.name(used[i].link), write_config(link.link_class).text,
                              write_config(link.tier).text, used[i].bytes, used[i].utilisation,
                              repeats_->queue_report(used[i].link.v)});
    }
    report.links_cut = used.size() - top;
    for (const auto& [key, utilisation] : tiers) {
      report.bottlenecks.push_back(
          {write_config(key.first).text + " (" + write_config(key.second).text + ")",
           utilisation,
           {},
           {}});
      report.tiers.push_back(key);
    }
  }

  void add_critical_path(const Executor& executor, Report& report) {
    OpId last;
    for (std::uint32_t i = 0; i < builder_.workload().operations.size(); ++i) {
      const Time finished = executor.times(OpId{i}).finished;
      if (finished <= executor.makespan() &&
          (!last.valid() || finished > executor.times(last).finished))
        last = OpId{i};
    }
    for (OpId at = last; at.valid() && report.critical_path.size() < kMostPathSteps;
         at = executor.times(at).cause) {
      const Operation& operation = builder_.workload().operations[at];
      if (!operation.takes_time()) continue;
      CriticalStep step;
      step.op = fmt::format("{}#{}", builder_.workload().labels[operation.label], at.v);
      step.start_s = executor.times(at).started.seconds();
      step.duration_s = (executor.times(at).finished - executor.times(at).started).seconds();
      // A delay after a flow is its latency, one after a barrier the software that starts a collective.
      const OpId cause = executor.times(at).cause;
      const bool after_flow =
          cause.valid() && builder_.workload().operations[cause].kind == Operation::Kind::flow;
      step.resource = operation.kind != Operation::Kind::delay ? slowest_of(operation.way)
                      : after_flow                             ? "latency"
                                                               : "software";
      report.critical_path.push_back(std::move(step));
    }
    std::ranges::reverse(report.critical_path);
  }

  std::string slowest_of(std::uint32_t way) const {
    double worst = 0;
    std::uint32_t resource = kNoResource;
    for (const Share& share : builder_.workload().shares_of(way)) {
      const double load = share.weight / static_cast<double>(fabric_.capacity(share.resource).bps);
      if (load <= worst) continue;
      worst = load;
      resource = share.resource;
    }
    return resource == kNoResource ? "latency" : fabric_.resource_name(resource);
  }

  const Fabric& fabric_;
  const Fabric& planned_on_;
  const Scenario& scenario_;
  const RunContext& context_;
  Diagnostics& out_;
  JobBuilder builder_;
  std::vector<LinkId> watched_;
  std::unique_ptr<NetworkModel> network_;
  std::optional<RepeatMemory> repeats_;
  double network_traffic_ = 0;
};

// Every link of a tier at half its speed from the start, as faults of a scenario.
Scenario with_half(const Fabric& fabric, Scenario scenario, std::pair<Tier, LinkClass> tier) {
  for (std::uint32_t l = 0; l < fabric.link_count(); ++l) {
    const Link& link = fabric.link(LinkId{l});
    if (std::pair{link.tier, link.link_class} != tier || link.reverse < LinkId{l}) continue;
    FaultSpec& fault = scenario.faults.emplace_back();
    fault.target = fabric.name(LinkId{l});
    fault.action = FaultAction::degrade;
    fault.factor = 0.5;
  }
  return scenario;
}

// What the scenario would gain if each tier that carries traffic were not in the way, by running it again without. Where none is
// (computing, latency, a collective's own pace come first), what it would lose at half a tier's speed: how near the tier is.
void explain(const Fabric& fabric, const Scenario& scenario, const RunContext& context,
             const CollectivePlanner& planner, Report& report) {
  report.explained = true;
  RunContext quietly = context;
  quietly.show = nullptr;
  const auto time_of = [&](const Fabric& machine, const Scenario& what) {
    Diagnostics quiet;
    return Run(machine, fabric, what, quietly, planner, quiet).execute().time_s;
  };
  bool gains = false;
  for (std::size_t i = 0; i < report.bottlenecks.size(); ++i) {
    Fabric faster = fabric;
    faster.speed_up(report.tiers[i].first, report.tiers[i].second, kAsGoodAsInfinite);
    const double gain = std::max(0.0, report.time_s - time_of(faster, scenario));
    report.bottlenecks[i].gain_if_infinite_s = gain;
    gains = gains || gain > kNoGain * report.time_s;
  }
  // Links of an inference job do not change while it runs.
  const bool halves = !gains && fabric.link_count() <= kMostHalvedLinks &&
                      std::ranges::none_of(scenario.jobs, [](const JobSpec& job) {
                        return job.inference.has_value();
                      });
  for (std::size_t i = 0; i < report.bottlenecks.size() && halves; ++i) {
    const Scenario half = with_half(fabric, scenario, report.tiers[i]);
    report.bottlenecks[i].loss_if_halved_s = std::max(0.0, time_of(fabric, half) - report.time_s);
  }
  std::ranges::stable_sort(report.bottlenecks, std::ranges::greater{}, [](const Bottleneck& b) {
    return std::tuple{b.gain_if_infinite_s, b.loss_if_halved_s.value_or(0), b.share};
  });
}

}  // namespace

double busbw_factor(CollectiveKind kind, std::size_t ranks) {
  const double n = static_cast<double>(ranks);
  if (ranks < 1) return 0;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv:
      return 1;
  }
  return 0;
}

Report run_on(const Fabric& fabric, const Scenario& scenario, const RunContext& context,
              Diagnostics& out) {
  const CollectivePlanner planner =
      collective_planner(fabric, scenario, context.algorithms, context.library);
  Run run(fabric, fabric, scenario, context, planner, out);
  Report report = run.execute();
  if (context.explain && fabric.link_count() <= kMostExplainedLinks &&
      run.operation_count() <= kMostExplainedOps &&
      (scenario.fidelity != Fidelity::packet || report.events <= kMostExplainedEvents)) {
    explain(fabric, scenario, context, planner, report);
  } else {
    std::ranges::stable_sort(report.bottlenecks, std::ranges::greater{}, &Bottleneck::share);
  }
  return report;
}

Report run_scenario(const Scenario& scenario, const RunContext& context, Diagnostics& out) {
  const Fabric fabric = build_fabric(scenario.fabric, context.link_classes, out);
  out.throw_if_errors();
  return run_on(fabric, scenario, context, out);
}

}  // namespace weft
