// SPDX-License-Identifier: Apache-2.0
#include "sim/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/core/check.hpp"
#include "sim/core/random.hpp"
#include "sim/core/text.hpp"
#include "sim/run/collective_ops.hpp"
#include "sim/run/executor.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostFlows = 20'000'000;
constexpr std::size_t kMostExplainedLinks = 50'000;      // beyond these a second run costs too much to be a courtesy
constexpr std::size_t kMostExplainedOps = 100'000;
constexpr std::int64_t kAsGoodAsInfinite = 1000;
constexpr std::size_t kMostPathSteps = 50;

struct FlowMeta {
  std::string id;
  NodeId src, dst;
  Bytes size;
  OpId first, last;
};

struct GroupMeta {
  std::vector<NodeId> gpus;
  OpId first, last;
};

struct JobMeta {
  const JobSpec* spec = nullptr;
  ExecutorJob run;
  std::vector<GroupMeta> groups;
  std::vector<FlowMeta> flows;
  std::string algorithm;
  std::size_t channels = 0, ranks = 0;
  double bytes = 0;
  std::vector<std::string> notes;
};

// Everything between a fabric and a report; one per run, so that a what-if builds its own.
class Run {
 public:
  Run(const Fabric& fabric, const Scenario& scenario, const RunContext& context, Diagnostics& out)
      : fabric_(fabric), scenario_(scenario), context_(context), out_(out), routes_(fabric), builder_(routes_, workload_) {}

  void build() {
    apply_faults();
    Placement placement(fabric_, static_cast<std::uint64_t>(scenario_.seed));
    for (const JobSpec& spec : scenario_.jobs) add_job(spec, placement);
    bool endless_only = true;
    for (const JobMeta& job : jobs_) endless_only = endless_only && job.run.until_end;
    if (endless_only && out_.ok()) {
      out_.error(scenario_.jobs.front().place, scenario_.jobs.front().pointer + "/repeat",
                 "every job repeats until the end, so there is no end", "give one job a number of iterations");
    }
    out_.throw_if_errors();
  }

  Report execute() {
    NetworkOptions options;
    options.merge_classes = scenario_.models.merge_classes;
    options.remember_repeats = scenario_.models.remember_repeats;
    const std::vector<Bandwidth> capacities = fabric_.capacities();
    network_ = context_.make_network(scenario_.fidelity, capacities, options);
    Executor executor(workload_, *network_);
    executor.progress = context_.progress;
    std::vector<ExecutorJob> jobs;
    for (const JobMeta& job : jobs_) jobs.push_back(job.run);
    executor.run(jobs, changes_);
    return make_report(executor);
  }

  std::size_t operation_count() const { return workload_.operations.size(); }

 private:
  void error(const Place& place, const std::string& pointer, std::string fact, std::string cure = {}) {
    out_.error(place, pointer, std::move(fact), std::move(cure));
  }

  // ---- faults

  void apply_faults() {
    for (const FaultSpec& fault : scenario_.faults) {
      std::vector<LinkId> links;
      if (const auto node = fabric_.find_node(fault.target)) {
        for (const LinkId l : fabric_.out_links(*node)) {
          links.push_back(l);
          links.push_back(fabric_.link(l).reverse);
        }
      } else if (const auto link = fabric_.find_link(fault.target)) {
        links = {*link, fabric_.link(*link).reverse};
      } else {
        error(fault.place, fault.pointer + "/target", fmt::format("\"{}\" is not a node or a link of the fabric", fault.target),
              "see `weft topo FABRIC --names '*'`");
        continue;
      }
      for (const LinkId l : links) {
        const Link& link = fabric_.link(l);
        const bool network = link.tier != Tier::scale_up && link.tier != Tier::host;
        if (fault.action == FaultAction::down) {
          if (fault.at.ps == 0 && !fault.until && network) {
            routes_.network().set_down(l, true);
            continue;
          }
          if (!fault.until) {
            error(fault.place, fault.pointer, "not yet: losing a link for good while the run goes on, or inside a server",
                  "put the fault of a network link at 0 s, give \"until\", or degrade the link");
            break;
          }
          changes_.push_back({fault.at, l.v, {0}});
        } else {
          if (fault.factor <= 0) {
            error(fault.place, fault.pointer + "/factor", "nothing is left", "use \"do\": \"down\"");
            break;
          }
          changes_.push_back({fault.at, l.v, scaled(link.rate, fault.factor)});
        }
        if (fault.until) changes_.push_back({*fault.until, l.v, link.rate});
      }
    }
  }

  // ---- jobs

  void add_job(const JobSpec& spec, Placement& placement) {
    JobMeta& job = jobs_.emplace_back();
    job.spec = &spec;
    job.run.start = spec.start;
    job.run.first_op = static_cast<std::uint32_t>(workload_.operations.size());
    if (spec.repeat.kind == Json::Kind::integer) job.run.iterations = static_cast<std::uint32_t>(spec.repeat.integer);
    job.run.until_end = spec.repeat.is_string();
    label_ = static_cast<std::uint32_t>(workload_.labels.size());
    workload_.labels.push_back(spec.name);
    if (spec.collective) add_collective(spec, job, placement);
    if (spec.p2p) add_p2p(spec, job);
    if (!spec.flows.empty()) add_flows(spec, job);
    if (spec.pattern) add_pattern(spec, job, placement);
    job.run.end_op = static_cast<std::uint32_t>(workload_.operations.size());
  }

  std::optional<std::vector<NodeId>> take_gpus(const JobSpec& spec, Placement& placement) {
    const auto wanted = spec.gpus ? static_cast<std::size_t>(*spec.gpus) : placement.free();
    auto gpus = placement.take(wanted, spec.placement.policy, jobs_.size());
    if (!gpus || gpus->empty()) {
      error(spec.place, spec.pointer + "/gpus",
            fmt::format("{} GPUs are wanted, {} of {} are free", wanted, placement.free(), fabric_.gpus().size()),
            "ask for fewer, or enlarge /fabric");
      return std::nullopt;
    }
    return gpus;
  }

  const AlgorithmEntry* find_algorithm(const JobSpec& spec, const GroupShape& shape) {
    const std::string name = spec.algorithm.empty() ? default_algorithm(*spec.collective, shape) : spec.algorithm;
    std::vector<std::string> names;
    for (const AlgorithmEntry* entry : context_.algorithms) {
      if (entry->name == name) {
        if (entry->supports(*spec.collective, shape)) return entry;
        error(spec.place, spec.pointer + "/algorithm",
              fmt::format("{} cannot do {} over this group", name, write_config(*spec.collective).text),
              "leave \"algorithm\" out to let weft choose");
        return nullptr;
      }
      names.emplace_back(entry->name);
    }
    const auto nearest = nearest_name(name, names);
    error(spec.place, spec.pointer + "/algorithm",
          fmt::format("\"{}\" is not an algorithm{}", name, nearest ? fmt::format(", did you mean \"{}\"?", *nearest) : ""),
          "one of " + join(names, ", "));
    return nullptr;
  }

  void add_collective(const JobSpec& spec, JobMeta& job, Placement& placement) {
    const auto gpus = take_gpus(spec, placement);
    if (!gpus) return;
    const std::size_t size = spec.group_size ? static_cast<std::size_t>(*spec.group_size) : gpus->size();
    const std::size_t stride = spec.group_size ? static_cast<std::size_t>(spec.group_stride) : 1;
    if (gpus->size() % (size * stride) != 0) {
      error(spec.place, spec.pointer + "/group_size",
            fmt::format("{} GPUs cannot be split into groups of {} with stride {}", gpus->size(), size, stride),
            "group_size x group_stride must divide the number of GPUs");
      return;
    }
    if (static_cast<std::size_t>(spec.root) >= size) {
      error(spec.place, spec.pointer + "/root", fmt::format("there is no rank {} in a group of {}", spec.root, size));
      return;
    }
    job.ranks = size;
    job.bytes = spec.size->value();
    for (std::size_t block = 0; block < gpus->size(); block += size * stride) {
      for (std::size_t offset = 0; offset < stride; ++offset) {
        GroupMeta& group = job.groups.emplace_back();
        for (std::size_t k = 0; k < size; ++k) group.gpus.push_back((*gpus)[block + offset + k * stride]);
        if (!add_group(spec, job, group)) return;
      }
    }
    if (size == 1) job.notes.push_back("a group of one: no traffic");
  }

  bool add_group(const JobSpec& spec, JobMeta& job, GroupMeta& group) {
    const GroupShape shape = group_shape(routes_, group.gpus);
    const AlgorithmEntry* algorithm = find_algorithm(spec, shape);
    if (algorithm == nullptr) return false;
    CollectiveRequest request;
    request.kind = *spec.collective;
    request.size = *spec.size;
    request.root = static_cast<std::uint32_t>(spec.root);
    request.channels = static_cast<std::uint32_t>(
        spec.channels.value_or(static_cast<std::int64_t>(std::clamp<std::size_t>(shape.orders.size(), 1, 64))));
    request.chunk = spec.chunk.value_or(Bytes{0});
    const Schedule schedule = algorithm->build(request, shape);
    job.algorithm = schedule.algorithm;
    job.channels = request.channels;
    CollectiveOptions options;
    options.costs = scenario_.models.collective;
    options.routing = fabric_.routing();
    options.expand = spec.expand;
    options.hash = mix64(static_cast<std::uint64_t>(scenario_.seed) ^ mix64(group.gpus.front().v));
    options.label = label_;
    group.first = workload_.add_barrier();
    group.last = builder_.append(schedule, group.gpus, options, group.first);
    return true;
  }

  std::optional<NodeId> find_gpu(const std::string& name, const Place& place, const std::string& pointer) {
    const auto node = fabric_.find_node(name);
    if (node && fabric_.node(*node).kind == NodeKind::gpu) return node;
    error(place, pointer, fmt::format("\"{}\" is not a GPU of the fabric", name),
          fmt::format("GPUs are named {} ... {}", fabric_.name(fabric_.gpus().front()), fabric_.name(fabric_.gpus().back())));
    return std::nullopt;
  }

  // The copies of one transfer one after the other, from `after` on.
  FlowMeta add_transfer(const Transfer& transfer, Bytes size, OpId after) {
    FlowMeta flow;
    OpId last = after;
    for (const Leg& leg : transfer.legs) {
      const std::uint32_t way = workload_.add_way(leg.route.shares, leg.route.latency + leg.startup, leg.cap);
      const OpId op = workload_.add_flow(way, size);
      workload_.operations[op].label = label_;
      if (last.valid()) workload_.depend(last, op);
      if (!flow.first.valid()) flow.first = op;
      last = op;
    }
    flow.last = last;
    flow.size = size;
    return flow;
  }

  void add_p2p(const JobSpec& spec, JobMeta& job) {
    const auto src = find_gpu(spec.p2p->src, spec.place, spec.pointer + "/p2p/src");
    const auto dst = find_gpu(spec.p2p->dst, spec.place, spec.pointer + "/p2p/dst");
    if (!src || !dst) return;
    TransferOptions options;
    options.via = spec.p2p->via;
    options.peer_access = spec.p2p->peer_access;
    options.copy_call = true;
    options.routing = fabric_.routing();
    job.ranks = 2;
    for (const auto& [from, to] : {std::pair{*src, *dst}, std::pair{*dst, *src}}) {
      const auto transfer = routes_.transfer(from, to, options);
      if (!transfer) {
        error(spec.place, spec.pointer + "/p2p/via", fmt::format("there is no such way from {} to {}", spec.p2p->src, spec.p2p->dst),
              "leave \"via\" out to take what the runtime would");
        return;
      }
      FlowMeta flow = add_transfer(*transfer, spec.p2p->size, {});
      flow.id = fmt::format("{}/{}", spec.name, job.flows.size());
      flow.src = from;
      flow.dst = to;
      job.flows.push_back(flow);
      job.bytes += spec.p2p->size.value();
      job.algorithm = write_config(transfer->via).text;
      if (!spec.p2p->bidirectional) break;
    }
  }

  bool add_flow(const JobSpec& spec, JobMeta& job, NodeId src, NodeId dst, Bytes size, Time start) {
    if (job.flows.size() >= kMostFlows) {
      throw LimitReached(fmt::format("more than {} flows", kMostFlows));
    }
    TransferOptions options;
    options.routing = fabric_.routing();
    options.hash = mix64(static_cast<std::uint64_t>(scenario_.seed) * 0x9e3779b97f4a7c15ULL + job.flows.size());
    const auto transfer = routes_.transfer(src, dst, options);
    if (!transfer) {
      error(spec.place, spec.pointer, fmt::format("{} cannot reach {}", fabric_.name(src), fabric_.name(dst)),
            "no link, no peer access, no host memory and no network between them");
      return false;
    }
    FlowMeta flow = add_transfer(*transfer, size, {});
    workload_.operations[flow.first].not_before = start;
    flow.id = fmt::format("{}/{}", spec.name, job.flows.size());
    flow.src = src;
    flow.dst = dst;
    job.flows.push_back(flow);
    job.bytes += size.value();
    return true;
  }

  void add_flows(const JobSpec& spec, JobMeta& job) {
    for (const FlowEntry& entry : spec.flows) {
      const auto src = find_gpu(entry.src, entry.place, entry.pointer + "/src");
      const auto dst = find_gpu(entry.dst, entry.place, entry.pointer + "/dst");
      if (src && dst && !add_flow(spec, job, *src, *dst, entry.size, entry.start)) return;
    }
    job.ranks = job.flows.size();
  }

  void add_pattern(const JobSpec& spec, JobMeta& job, Placement& placement) {
    const auto gpus = take_gpus(spec, placement);
    if (!gpus) return;
    const auto n = static_cast<std::uint32_t>(gpus->size());
    job.ranks = n;
    if (n < 2) {
      job.notes.push_back("one GPU: no traffic");
      return;
    }
    Random random(static_cast<std::uint64_t>(scenario_.seed), "pattern", jobs_.size());
    const auto send = [&](std::uint32_t a, std::uint32_t b) { return add_flow(spec, job, (*gpus)[a], (*gpus)[b], *spec.size, {}); };
    switch (*spec.pattern) {
      case Pattern::permutation: {
        const auto to = random.cyclic_permutation(n);
        for (std::uint32_t i = 0; i < n; ++i) {
          if (!send(i, to[i])) return;
        }
        break;
      }
      case Pattern::incast:
        for (std::uint32_t i = 1; i < n; ++i) {
          if (!send(i, 0)) return;
        }
        break;
      case Pattern::all_to_all:
        for (std::uint32_t i = 0; i < n; ++i) {
          for (std::uint32_t j = 1; j < n; ++j) {
            if (!send(i, (i + j) % n)) return;
          }
        }
        break;
      case Pattern::random:
        for (std::uint32_t i = 0; i < n; ++i) {
          if (!send(i, (i + 1 + static_cast<std::uint32_t>(random.below(n - 1))) % n)) return;
        }
        break;
      case Pattern::ring:
        for (std::uint32_t i = 0; i < n; ++i) {
          if (!send(i, (i + 1) % n)) return;
        }
        break;
    }
  }

  // ---- the report

  Report make_report(const Executor& executor) {
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
    report.network = network_->counters();
    report.evidence = count_evidence(scenario_.document);
    report.effective = scenario_.document;
    for (std::size_t j = 0; j < jobs_.size(); ++j) add_job_report(j, executor, report);
    add_links(executor, report);
    if (scenario_.observe.critical_path) add_critical_path(executor, report);
    if (network_traffic_ <= 0) {
      report.warnings.push_back({"no-traffic", "no communication found: nothing in this scenario crosses a link"});
    }
    return report;
  }

  void add_job_report(std::size_t j, const Executor& executor, Report& report) {
    const JobMeta& meta = jobs_[j];
    const JobSpec& spec = *meta.spec;
    const JobTimes& times = executor.jobs()[j];
    JobReport& job = report.jobs.emplace_back();
    job.name = spec.name;
    job.kind = spec.collective ? "collective" : spec.p2p ? "p2p" : "flows";
    job.ranks = meta.ranks;
    job.bytes = meta.bytes;
    job.iterations = times.iterations.size();
    job.start_s = times.started.seconds();
    job.finish_s = times.finished.seconds();
    job.notes = meta.notes;
    for (const Time iteration : times.iterations) job.time_s += iteration.seconds() / static_cast<double>(times.iterations.size());
    if (spec.collective) {
      job.collective = write_config(*spec.collective).text;
      job.algorithm = meta.algorithm;
      job.channels = meta.channels;
      if (job.time_s > 0) job.algbw_gbs = meta.bytes / job.time_s * 1e-9;
      job.busbw_gbs = job.algbw_gbs * busbw_factor(*spec.collective, meta.ranks);
      if (meta.groups.size() > 1) {
        for (const GroupMeta& group : meta.groups) {
          const Time took = executor.times(group.last).finished - executor.times(group.first).started;
          job.groups.push_back({{fabric_.name(group.gpus.front()), fabric_.name(group.gpus.back())}, group.gpus.size(), took.seconds()});
        }
      }
    }
    const auto top = static_cast<std::size_t>(scenario_.observe.top);
    for (const FlowMeta& flow : meta.flows) {
      if (report.flows.size() >= top) {
        ++report.flows_cut;
        continue;
      }
      const double start = executor.times(flow.first).started.seconds(), finish = executor.times(flow.last).finished.seconds();
      report.flows.push_back({flow.id, fabric_.name(flow.src), fabric_.name(flow.dst), flow.size.value(), start, finish,
                              finish > start ? flow.size.value() / (finish - start) * 1e-9 : 0});
    }
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
      const double bytes = network_->carried_bytes(l);
      if (bytes <= 0) continue;
      network_traffic_ += bytes;
      const Link& link = fabric_.link(LinkId{l});
      const double utilisation = time > 0 && link.rate.bps > 0 ? bytes / link.rate.bytes_per_s() / time : 0;
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
    std::ranges::partial_sort(used, used.begin() + static_cast<std::ptrdiff_t>(top), [](const Used& a, const Used& b) {
      return a.utilisation != b.utilisation ? a.utilisation > b.utilisation : a.link < b.link;
    });
    for (std::size_t i = 0; i < top; ++i) {
      const Link& link = fabric_.link(used[i].link);
      report.links.push_back({fabric_.name(used[i].link), write_config(link.link_class).text, write_config(link.tier).text,
                              used[i].bytes, used[i].utilisation});
    }
    report.links_cut = used.size() - top;
    for (const auto& [key, utilisation] : tiers) {
      report.bottlenecks.push_back({write_config(key.first).text + " (" + write_config(key.second).text + ")", utilisation, 0});
      report.tiers.push_back(key);
    }
  }

  void add_critical_path(const Executor& executor, Report& report) {
    OpId last;
    for (std::uint32_t i = 0; i < workload_.operations.size(); ++i) {
      const Time finished = executor.times(OpId{i}).finished;
      if (finished <= executor.makespan() && (!last.valid() || finished > executor.times(last).finished)) last = OpId{i};
    }
    for (OpId at = last; at.valid() && report.critical_path.size() < kMostPathSteps; at = executor.times(at).cause) {
      const Operation& operation = workload_.operations[at];
      if (operation.kind == Operation::Kind::barrier) continue;
      CriticalStep step;
      step.op = fmt::format("{}#{}", workload_.labels[operation.label], at.v);
      step.start_s = executor.times(at).started.seconds();
      step.duration_s = (executor.times(at).finished - executor.times(at).started).seconds();
      step.resource = operation.kind == Operation::Kind::delay ? "software" : slowest_of(operation.way);
      report.critical_path.push_back(std::move(step));
    }
    std::ranges::reverse(report.critical_path);
  }

  std::string slowest_of(std::uint32_t way) const {
    double worst = 0;
    std::uint32_t resource = kNoResource;
    for (const Share& share : workload_.shares_of(way)) {
      const double load = share.weight / static_cast<double>(fabric_.capacity(share.resource).bps);
      if (load <= worst) continue;
      worst = load;
      resource = share.resource;
    }
    return resource == kNoResource ? "latency" : fabric_.resource_name(resource);
  }

  const Fabric& fabric_;
  const Scenario& scenario_;
  const RunContext& context_;
  Diagnostics& out_;
  Routes routes_;
  Workload workload_;
  CollectiveBuilder builder_;
  std::vector<JobMeta> jobs_;
  std::vector<ScheduledChange> changes_;
  std::unique_ptr<NetworkModel> network_;
  std::uint32_t label_ = 0;
  double network_traffic_ = 0;
};

// What the scenario would gain if each tier that carries traffic were not in the way, by running it again without.
void explain(const Fabric& fabric, const Scenario& scenario, const RunContext& context, Report& report) {
  for (std::size_t i = 0; i < report.bottlenecks.size(); ++i) {
    Fabric faster = fabric;
    faster.speed_up(report.tiers[i].first, report.tiers[i].second, kAsGoodAsInfinite);
    Diagnostics quiet;
    Run again(faster, scenario, context, quiet);
    again.build();
    const Report other = again.execute();
    report.bottlenecks[i].gain_if_infinite_s = std::max(0.0, report.time_s - other.time_s);
  }
  std::ranges::stable_sort(report.bottlenecks, std::ranges::greater{}, [](const Bottleneck& b) {
    return std::pair{b.gain_if_infinite_s, b.share};
  });
}

}  // namespace

double busbw_factor(CollectiveKind kind, std::size_t ranks) {
  const double n = static_cast<double>(ranks);
  if (ranks < 1) return 0;
  switch (kind) {
    case CollectiveKind::all_reduce: return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter: return (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv: return 1;
  }
  return 0;
}

std::string default_algorithm(CollectiveKind kind, const GroupShape& shape) {
  switch (kind) {
    case CollectiveKind::all_reduce: return shape.switch_reduces ? "in_switch" : "ring";
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce: return "ring";
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
    case CollectiveKind::send_recv: return "direct";
  }
  return "ring";
}

Report run_on(const Fabric& fabric, const Scenario& scenario, const RunContext& context, Diagnostics& out) {
  Run run(fabric, scenario, context, out);
  run.build();
  Report report = run.execute();
  if (context.explain && fabric.link_count() <= kMostExplainedLinks && run.operation_count() <= kMostExplainedOps) {
    explain(fabric, scenario, context, report);
  }
  return report;
}

Report run_scenario(const Scenario& scenario, const RunContext& context, Diagnostics& out) {
  const Fabric fabric = build_fabric(scenario.fabric, context.link_classes, out);
  out.throw_if_errors();
  return run_on(fabric, scenario, context, out);
}

}  // namespace weft
