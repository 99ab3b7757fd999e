// SPDX-License-Identifier: Apache-2.0
#include "sim/run/observe.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostWatched = 1000;  // links; each keeps up to 4,096 windows
constexpr double kLeastVictimShare =
    0.01;  // of its time that a flow is paused to be called a victim

std::vector<LinkId> select_links(const Fabric& fabric, const ObserveLinks& wanted,
                                 Diagnostics& out) {
  constexpr std::string_view kTier = "tier:";
  std::vector<LinkId> links;
  std::optional<Tier> tier;
  const bool by_tier = wanted.select.starts_with(kTier);
  if (by_tier) {
    std::vector<std::string> names;
    for (const auto& [value, name] : enum_names(Tier{})) {
      names.emplace_back(name);
      if (wanted.select.substr(kTier.size()) == name) tier = value;
    }
    if (!tier) {
      out.error(wanted.place, wanted.pointer + "/select",
                fmt::format("\"{}\" is not a tier{}", wanted.select.substr(kTier.size()),
                            did_you_mean(wanted.select.substr(kTier.size()), names)),
                "one of " + join(names, ", "));
      return links;
    }
  } else if (const auto one = fabric.find_link(wanted.select)) {
    return {*one};
  }
  for (std::uint32_t l = 0; l < fabric.link_count(); ++l) {
    const bool chosen = by_tier ? fabric.link(LinkId{l}).tier == *tier
                                : glob_match(wanted.select, fabric.name(LinkId{l}));
    if (chosen) links.emplace_back(l);
  }
  if (links.empty()) {
    out.error(wanted.place, wanted.pointer + "/select",
              fmt::format("no link of the fabric is \"{}\"", wanted.select),
              "see `weft topo FABRIC --names '*:*'`; tiers are selected by \"tier:NAME\"");
  }
  if (links.size() > kMostWatched) {
    out.error(
        wanted.place, wanted.pointer + "/select",
        fmt::format("{} links are selected, at most {} are recorded", links.size(), kMostWatched),
        "select fewer, e.g. \"leaf0:*\"");
  }
  return links;
}

double seconds_between(const OperationTimes& first, const OperationTimes& last) {
  return (last.finished - first.started).seconds();
}

// Sorts by a member, the most first, and returns how many were cut off.
template <class T, class Member>
std::size_t keep_most(std::vector<T>& all, std::size_t top, Member by) {
  std::ranges::stable_sort(all, std::ranges::greater{}, by);
  const std::size_t cut = all.size() > top ? all.size() - top : 0;
  all.resize(all.size() - cut);
  return cut;
}

}  // namespace

std::vector<LinkId> watched_links(const Fabric& fabric, const Scenario& scenario,
                                  Diagnostics& out) {
  const std::optional<ObserveLinks>& wanted = scenario.observe.links;
  if (!wanted) return {};
  if (scenario.fidelity == Fidelity::analytic) {
    out.error(wanted->place, wanted->pointer,
              "the analytic level knows when flows end, not what links do meanwhile",
              "use \"fidelity\": \"fluid\" or \"packet\"");
  }
  return select_links(fabric, *wanted, out);
}

void watch_flows(const JobBuilder& builder, const Scenario& scenario, NetworkModel& network,
                 Diagnostics& out) {
  const std::optional<ObserveFlows>& wanted = scenario.observe.flows;
  if (!wanted) return;
  if (scenario.fidelity != Fidelity::packet) {
    return out.error(wanted->place, wanted->pointer,
                     "the rates of single flows over time are of the packet level",
                     "use \"fidelity\": \"packet\"; \"links\" records links at fluid level too");
  }
  std::vector<const FlowPlan*> chosen;
  for (const JobPlan& job : builder.jobs()) {
    for (const FlowPlan& flow : job.flows) {
      if (glob_match(wanted->select, flow.id)) chosen.push_back(&flow);
    }
  }
  if (chosen.empty()) {
    return out.error(wanted->place, wanted->pointer + "/select",
                     fmt::format("no flow is named \"{}\"", wanted->select),
                     "copies, flows and patterns have flows, named JOB/NUMBER");
  }
  keep_most(chosen, static_cast<std::size_t>(wanted->top),
            [](const FlowPlan* flow) { return flow->size; });
  for (const FlowPlan* flow : chosen) {
    for (std::uint32_t i = flow->first.v; i <= flow->last.v; ++i)
      network.watch_flow(i, wanted->every);
  }
}

Time LinkSampler::look(Time now) {
  take();
  last_ = now;
  if (bytes_.front().size() == kMost) {
    for (std::vector<double>& windows : bytes_) {
      for (std::size_t i = 0; i < kMost / 2; ++i) windows[i] = windows[2 * i] + windows[2 * i + 1];
      windows.resize(kMost / 2);
    }
    every_ = 2 * every_;
  }
  return now + every_;
}

void LinkSampler::take() {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const double carried = network_.carried_bytes(builder_.representative(links_[i].v));
    bytes_[i].push_back(carried - before_[i]);
    before_[i] = carried;
  }
}

std::map<std::uint32_t, LinkSeries> LinkSampler::finish(Time end) {
  if (end > last_) take();
  std::map<std::uint32_t, LinkSeries> out;
  for (std::size_t i = 0; i < links_.size(); ++i)
    out[links_[i].v] = {every_, std::move(bytes_[i]), {}, {}, {}};
  return out;
}

double Observer::ideal_s(const FlowPlan& flow) const {
  const Workload& workload = builder_.workload();
  const bool together = workload.operations[flow.last].kind == Operation::Kind::barrier;
  std::map<std::uint32_t, double> load;  // seconds, by resource
  double latency = 0, serial = 0, capped = 0;
  for (std::uint32_t i = flow.first.v; i <= flow.last.v; ++i) {
    const Operation& operation = workload.operations[OpId{i}];
    if (operation.kind != Operation::Kind::flow) continue;
    const Way& way = workload.ways[operation.way];
    const double bytes = operation.size.value(), fixed = (way.latency + operation.time).seconds();
    double moving = way.cap.bps > 0 ? bytes / way.cap.bytes_per_s() : 0;
    capped = std::max(capped, moving);
    for (const Share& share : workload.shares_of(operation.way)) {
      const double took = share.weight * bytes / fabric_.capacity(share.resource).bytes_per_s();
      if (together) load[share.resource] += took;
      moving = std::max(moving, took);
    }
    latency = std::max(latency, fixed);
    serial += fixed + moving;
  }
  if (!together) return serial;
  double most = capped;
  for (const auto& [resource, took] : load) most = std::max(most, took);
  return latency + most;
}

FlowObserved Observer::seen_of(const FlowPlan& flow) const {
  FlowObserved sum;
  for (std::uint32_t i = flow.first.v; i <= flow.last.v; ++i) {
    const auto found = seen_.flows.find(i);
    if (found == seen_.flows.end()) continue;
    sum.retransmitted += found->second.retransmitted;
    sum.dropped += found->second.dropped;
    sum.marks += found->second.marks;
    if (found->second.paused <= sum.paused) continue;
    sum.paused = found->second.paused;
    sum.paused_at = found->second.paused_at;
  }
  return sum;
}

bool Observer::crosses(const FlowPlan& flow, std::uint32_t link) const {
  const Workload& workload = builder_.workload();
  for (std::uint32_t i = flow.first.v; i <= flow.last.v; ++i) {
    const Operation& operation = workload.operations[OpId{i}];
    if (operation.kind == Operation::Kind::flow &&
        std::ranges::find(workload.shares_of(operation.way), link, &Share::resource) !=
            workload.shares_of(operation.way).end())
      return true;
  }
  return false;
}

// The flow of a job, or an operation of a collective.
std::string Observer::name_of(std::uint64_t tag) const {
  for (const JobPlan& job : builder_.jobs()) {
    if (tag < job.run.first_op || tag >= job.run.end_op) continue;
    const auto after = std::ranges::upper_bound(
        job.flows, tag, {}, [](const FlowPlan& flow) { return std::uint64_t{flow.first.v}; });
    if (after != job.flows.begin()) return std::prev(after)->id;
    return fmt::format("{}#{}", job.spec->name, tag);
  }
  return fmt::format("#{}", tag);
}

// Several operations may have one name: queue pairs.
std::vector<NamedShare> Observer::names_of(std::uint32_t cause) const {
  std::vector<NamedShare> out;
  const auto found = seen_.culprits.find(cause);
  if (found == seen_.culprits.end()) return out;
  for (const QueueShare& share : found->second) {
    const std::string name = name_of(share.tag);
    const auto known = std::ranges::find(out, name, &NamedShare::name);
    if (known == out.end()) {
      out.push_back({name, share.share});
    } else {
      known->share += share.share;
    }
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &NamedShare::share);
  return out;
}

// The parts of a flow together.
void Observer::add_flow_series(ObservedReport& out) const {
  for (const JobPlan& job : builder_.jobs()) {
    for (const FlowPlan& flow : job.flows) {
      FlowSeries sum;
      const auto last = seen_.flow_series.upper_bound(flow.last.v);
      for (auto at = seen_.flow_series.lower_bound(flow.first.v); at != last; ++at)
        sum.merge(at->second);
      if (!sum.bytes.empty()) out.flow_series.push_back({flow.id, std::move(sum)});
    }
  }
}

ObservedReport Observer::report(std::size_t top) const {
  ObservedReport out;
  if (!seen_.flow_series.empty()) add_flow_series(out);
  for (const auto& [link, series] : seen_.series)
    out.series.push_back({fabric_.name(LinkId{link}), series});
  const auto far_end = [&](std::uint32_t link) {
    return fabric_.name(fabric_.link(LinkId{link}).to);
  };
  std::vector<PauseEdge> edges = seen_.pauses;
  out.pauses_cut = keep_most(edges, top, &PauseEdge::time);
  for (const PauseEdge& edge : edges) {
    out.pauses.push_back({fabric_.name(LinkId{edge.paused}), far_end(edge.paused),
                          fabric_.name(LinkId{edge.cause}), edge.pauses, edge.time.seconds(),
                          names_of(edge.cause)});
  }
  if (seen_.pauses.empty()) return out;
  for (const JobPlan& job : builder_.jobs()) {
    for (const FlowPlan& flow : job.flows) {
      const FlowObserved seen = seen_of(flow);
      const double took = seconds_between(executor_.times(flow.first), executor_.times(flow.last));
      if (seen.paused.ps == 0 || took <= 0 || seen.paused.seconds() < kLeastVictimShare * took)
        continue;
      const std::uint32_t root = tree_.root_of(seen.paused_at);
      if (crosses(flow, root)) continue;  // its own load is part of it
      out.victims.push_back({flow.id, seen.paused.seconds() / took,
                             fabric_.name(LinkId{seen.paused_at}), far_end(seen.paused_at),
                             fabric_.name(LinkId{root}), names_of(root)});
    }
  }
  out.victims_cut = keep_most(out.victims, top, &VictimReport::share);
  return out;
}

}  // namespace weft
