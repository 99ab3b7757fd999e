// SPDX-License-Identifier: Apache-2.0
#include "sim/run/collective_ops.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/core/hash.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostDirectFlows =
    70'000;  // more edges of a direct channel move as one coupled flow
constexpr std::size_t kMostSprayedFlows =
    2'048;  // the same where every flow crosses hundreds of links

Bandwidth smaller_cap(Bandwidth a, Bandwidth b) {
  if (a.bps <= 0) return b;
  return b.bps <= 0 ? a : std::min(a, b);
}

[[noreturn]] void refuse(const Fabric& fabric, NodeId src, NodeId dst) {
  throw InputError(
      fmt::format("error: {} cannot reach {}: no link, no peer access, no host memory and no "
                  "network between them\n",
                  fabric.name(src), fabric.name(dst)));
}

}  // namespace

CollectiveBuilder::CollectiveBuilder(Routes& routes, Workload& workload)
    : routes_(routes), workload_(workload), load_(routes.fabric().resource_count(), 0) {}

OpId CollectiveBuilder::append(const Schedule& schedule, std::span<const NodeId> gpus,
                               const CollectiveOptions& options, OpId after) {
  OpId last = after;
  if (options.costs.launch.ps > 0) {
    const OpId launch = workload_.add_delay(options.costs.launch);
    workload_.operations[launch].label = options.label;
    workload_.depend(last, launch);
    last = launch;
  }
  if (schedule.ranks < 2) return last;
  OpId issued;
  if (options.issue.ps > 0) {
    issued = workload_.add_delay(options.issue);
    workload_.operations[issued].label = options.label;
    workload_.depend(after, issued);
  }
  std::size_t first_server = 0;  // GPUs of the group in it
  while (first_server < gpus.size() && routes_.fabric().node(gpus[first_server]).server ==
                                           routes_.fabric().node(gpus[0]).server) {
    ++first_server;
  }
  owners_ = static_cast<std::uint32_t>(nic_owners(routes_, gpus.first(first_server)).size());
  group_ = mix64(options.hash);
  for (const NodeId gpu : gpus) group_ = mix64(group_ ^ gpu.v);
  request_ = &schedule.request;
  join_network(schedule, gpus, options);
  if (options.packets && in_switches(schedule)) {
    const Phase& phase = schedule.phases.front();
    WEFT_CHECK(schedule.phases.size() == 1 && phase.channels.size() == 1, phase.channels.size());
    return append_trees(schedule, phase.channels.front(), gpus, options, last);
  }
  if (options.packets && !options.expand) {
    last = append_channels(schedule, gpus, options, last);
    if (issued.valid()) workload_.depend(issued, last);
    return last;
  }
  if (!tree_ && (options.expand || schedule.phases.empty()))
    return append_steps(schedule, gpus, options, last);
  for (const Phase& phase : schedule.phases) last = append_phase(phase, gpus, options, last);
  if (issued.valid()) workload_.depend(issued, last);
  return last;
}

TransferOptions CollectiveBuilder::transfer_options(const Edge& edge, std::uint32_t channel,
                                                    const CollectiveOptions& options) const {
  TransferOptions way;
  way.channel = dealt_ ? edge.src + edge.dst : channel / owners_;
  way.routing = options.routing;
  way.peer_access = options.peer_access;
  way.gpudirect = options.gpudirect;
  way.hash = mix64(options.hash ^ (std::uint64_t{edge.src} << 32 | edge.dst));
  way.src_nic = edge.src_nic;
  way.dst_nic = edge.dst_nic;
  return way;
}

CollectiveBuilder::Hop CollectiveBuilder::route_edge(const Edge& edge, std::span<const NodeId> gpus,
                                                     std::uint32_t channel,
                                                     const CollectiveOptions& options) {
  Hop hop;
  route_.clear();
  if (edge.src == kSwitch || edge.dst == kSwitch) {
    const bool up = edge.dst == kSwitch;
    if (tree_) {
      const SwitchTree::Member& member = tree_->members[up ? edge.src : edge.dst];
      for (const LinkId link : up ? member.up : member.down) {
        route_.add(link.v, 1);
        route_.hops.push_back(link);
      }
      hop.alpha = member.latency + tree_->switches[member.at].height + options.costs.network_step;
      hop.rate = route_.rate(routes_.fabric());
      return hop;
    }
    WEFT_CHECK(routes_.append_to_switches(gpus[up ? edge.src : edge.dst], up, route_), edge.src,
               edge.dst);
    hop.alpha = route_.latency + Time{options.costs.step.ps / 2};
    hop.rate = route_.rate(routes_.fabric());
    return hop;
  }
  const NodeId src = gpus[edge.src], dst = gpus[edge.dst];
  std::optional<Transfer> transfer =
      routes_.transfer(src, dst, transfer_options(edge, channel, options));
  if (!transfer) refuse(routes_.fabric(), src, dst);
  route_ = std::move(transfer->legs.front().route);
  hop.cap = transfer->legs.front().cap;
  hop.rate = smaller_cap(route_.rate(routes_.fabric()), hop.cap);
  hop.alpha = route_.latency +
              (transfer->via == Via::network ? options.costs.network_step : options.costs.step);
  return hop;
}

std::uint32_t CollectiveBuilder::half(NodeId gpu, std::uint32_t rank, const Routes::Door& door) {
  const bool named = door.nic != Edge::kNearNic;
  const std::size_t slot = 2 * std::size_t{rank} + (door.outward ? 1 : 0);
  if (stamp_[slot] != now_) {
    stamp_[slot] = now_;
    half_of_[slot] = kNoHalf;
  }
  const auto nic_of = [&](const Routes::Attachment& attachment) {
    return named ? static_cast<std::uint32_t>(door.nic) : door.channel % attachment.nics;
  };
  for (std::uint32_t h = half_of_[slot]; h != kNoHalf; h = halves_[h].next) {
    const Half& known = halves_[h];
    if (known.named == named && known.nic == nic_of(known.attachment) &&
        known.port == door.port % known.attachment.ports)
      return h;
  }
  auto attachment = routes_.attach(gpu, door);
  if (!attachment) refuse(routes_.fabric(), gpu, gpu);
  Half& made = halves_.emplace_back();
  made.rate = attachment->route.rate(routes_.fabric());
  made.named = named;
  made.nic = nic_of(*attachment);
  made.port = static_cast<std::uint32_t>(door.port % attachment->ports);
  made.attachment = std::move(*attachment);
  made.next = half_of_[slot];
  return half_of_[slot] = static_cast<std::uint32_t>(halves_.size() - 1);
}

CollectiveBuilder::Hop CollectiveBuilder::load_edge(const Edge& edge, std::span<const NodeId> gpus,
                                                    std::uint32_t channel,
                                                    const CollectiveOptions& options) {
  const Fabric& fabric = routes_.fabric();
  const bool in_switch = edge.src == kSwitch || edge.dst == kSwitch;
  if (in_switch || fabric.node(gpus[edge.src]).server == fabric.node(gpus[edge.dst]).server) {
    const Hop hop = route_edge(edge, gpus, channel, options);
    accumulate(route_, edge.weight);
    return hop;
  }
  const TransferOptions way = transfer_options(edge, channel, options);
  const std::uint64_t port = way.channel + way.hash;
  Routes::Door door{.channel = way.channel, .port = port, .gpudirect = options.gpudirect};
  door.nic = edge.src_nic;
  const std::uint32_t out = half(gpus[edge.src], edge.src, door);
  door.nic = edge.dst_nic;
  door.outward = false;
  const std::uint32_t in = half(gpus[edge.dst], edge.dst, door);
  halves_[out].load += edge.weight;
  halves_[in].load += edge.weight;
  const Half &first = halves_[out], &last = halves_[in];
  Hop hop;
  hop.cap = smaller_cap(first.attachment.cap, last.attachment.cap);
  hop.rate = smaller_cap(std::min(first.rate, last.rate), hop.cap);
  hop.alpha =
      first.attachment.route.latency + last.attachment.route.latency + options.costs.network_step;
  const NodeId from = first.attachment.leaf, to = last.attachment.leaf;
  if (spreads(options.routing)) {
    const Time between = routes_.network().latency(from, to);
    if (between == Time::never()) refuse(fabric, gpus[edge.src], gpus[edge.dst]);
    hop.alpha += between;
    if (from == to) return hop;
    demand_towards(to)[fabric.node(from).index] += edge.weight;
    return hop;
  }
  route_.clear();
  const std::uint64_t label = way.hash ^ way.channel;
  if (!routes_.network().append(from, to, routes_.nic_position(last.attachment.nic), label,
                                options.routing, route_)) {
    refuse(fabric, gpus[edge.src], gpus[edge.dst]);
  }
  accumulate(route_, edge.weight);
  hop.alpha += route_.latency;
  hop.rate = std::min(hop.rate, route_.rate(fabric));
  return hop;
}

void CollectiveBuilder::start_channel(std::size_t ranks) {
  if (stamp_.size() < 2 * ranks) {
    stamp_.assign(2 * ranks, now_);
    half_of_.assign(2 * ranks, 0);
  }
  ++now_;
  halves_.clear();
}

void CollectiveBuilder::accumulate(const Route& route, double weight) {
  for (const Share& share : route.shares) accumulate(share.resource, share.weight * weight);
}

void CollectiveBuilder::accumulate(std::uint32_t resource, double weight) {
  if (load_[resource] == 0) touched_.push_back(resource);
  load_[resource] += weight;
}

std::vector<double>& CollectiveBuilder::demand_towards(NodeId leaf) {
  std::vector<double>& demand = demand_[leaf.v];
  if (demand.empty()) demand.assign(routes_.fabric().switches().size(), 0);
  return demand;
}

void CollectiveBuilder::note_journeys(std::uint32_t leaf, const std::vector<double>& demand) {
  const auto links = static_cast<std::uint32_t>(routes_.fabric().resource_count());
  for (std::uint32_t from = 0; from < demand.size(); ++from) {
    if (demand[from] <= 0) continue;
    const auto next = static_cast<std::uint32_t>(journeys_.size());
    const auto [known, fresh] = journey_ids_.try_emplace({from, leaf}, next);
    if (fresh) {
      journeys_.push_back({from, leaf});
      load_.push_back(0);
    }
    accumulate(links + known->second, demand[from]);
  }
}

void CollectiveBuilder::expand_journeys(std::vector<Share>& shares) {
  const std::size_t links = routes_.fabric().resource_count();
  halves_.clear();
  for (const Share& share : shares) {
    if (share.resource >= links) {
      const Journey& journey = journeys_[share.resource - links];
      demand_towards(NodeId{journey.leaf})[journey.from] += share.weight;
    } else {
      accumulate(share.resource, share.weight);
    }
  }
  const bool kept = std::exchange(keeps_journeys_, false);
  shares = take_shares();
  keeps_journeys_ = kept;
}

std::vector<Share> CollectiveBuilder::take_shares() {
  for (const Half& half : halves_) accumulate(half.attachment.route, half.load);
  for (auto& [leaf, demand] : demand_) {
    if (keeps_journeys_)
      note_journeys(leaf, demand);
    else
      routes_.network().spread_all(NodeId{leaf}, demand, load_, touched_);
  }
  demand_.clear();
  std::ranges::sort(touched_);
  std::vector<Share> shares;
  shares.reserve(touched_.size());
  for (const std::uint32_t resource : touched_) {
    shares.push_back({resource, load_[resource]});
    load_[resource] = 0;
  }
  touched_.clear();
  return shares;
}

CollectiveBuilder::Paced CollectiveBuilder::pace(const Channel& channel,
                                                 std::span<const NodeId> gpus, std::uint32_t c,
                                                 const CollectiveOptions& options) {
  const Fabric& fabric = routes_.fabric();
  CollectiveOptions bare = options;
  bare.costs = {};
  Paced paced;
  paced.cap = {0};
  std::int64_t local_hops = 0, network_hops = 0;
  start_channel(gpus.size());
  channel.for_each_edge([&](const Edge& edge) {
    const Hop hop = load_edge(edge, gpus, c, bare);
    const bool local = edge.src == kSwitch || edge.dst == kSwitch ||
                       fabric.node(gpus[edge.src]).server == fabric.node(gpus[edge.dst]).server;
    if (hop.cap.bps > 0) {
      const Bandwidth rate = scaled(hop.cap, 1 / edge.weight);
      if (local)
        paced.staged.push_back({{edge.src, edge.dst}, rate});
      else
        paced.cap = smaller_cap(paced.cap, rate);
    }
    (local ? paced.local : paced.network) += hop.alpha;
    ++(local ? local_hops : network_hops);
  });
  if (local_hops > 0) paced.local = Time{paced.local.ps / local_hops};
  if (network_hops > 0) paced.network = Time{paced.network.ps / network_hops};
  paced.shares = take_shares();
  return paced;
}

void CollectiveBuilder::append_paced(const Channel& channel, const Paced& paced, Bandwidth cap,
                                     const CollectiveOptions& options, OpId after, OpId done) {
  const auto times = [](Time hop, double steps) {
    return Time{static_cast<std::int64_t>(static_cast<double>(hop.ps) * steps + 0.5)};
  };
  const Time fill = channel.lead + times(paced.local + options.costs.step, channel.local_steps) +
                    times(paced.network + options.costs.network_step, channel.network_steps);
  const std::uint32_t way = workload_.add_way(paced.shares, {0}, smaller_cap(channel.cap, cap));
  const OpId op = workload_.add_flow(way, channel.bytes, fill);
  workload_.operations[op].label = options.label;
  workload_.depend(after, op);
  workload_.depend(op, done);
}

void CollectiveBuilder::append_all_paced(const Phase& phase, std::span<const NodeId> gpus,
                                         const CollectiveOptions& options, OpId after, OpId done) {
  dealt_ = false;
  std::deque<Paced> own;
  std::vector<std::pair<const Channel*, const Paced*>> all;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> crossing;
  for (std::uint32_t c = 0; c < phase.channels.size(); ++c) {
    const Channel& channel = phase.channels[c];
    if (channel.form != Channel::Form::paced) continue;
    const Paced* paced = nullptr;
    if (channel.same_as == 0) {
      paced = &own.emplace_back(pace(channel, gpus, c, options));
    } else {
      const std::pair key{channel.same_as, group_};
      auto known = paced_.find(key);
      if (known == paced_.end()) known = paced_.emplace(key, pace(channel, gpus, c, options)).first;
      paced = &known->second;
    }
    for (const StagedEdge& edge : paced->staged) ++crossing[edge.ranks];
    all.emplace_back(&channel, paced);
  }
  for (const auto& [channel, paced] : all) {
    Bandwidth cap = paced->cap;
    for (const StagedEdge& edge : paced->staged)
      cap = smaller_cap(cap, scaled(edge.rate, 1.0 / static_cast<double>(crossing[edge.ranks])));
    append_paced(*channel, *paced, cap, options, after, done);
  }
}

OpId CollectiveBuilder::append_phase(const Phase& phase, std::span<const NodeId> gpus,
                                     const CollectiveOptions& options, OpId after) {
  const OpId done = workload_.add_barrier();
  const auto add = [&](std::uint32_t way, Bytes size, Time latency) {
    const OpId op = workload_.add_flow(way, size, latency);
    workload_.operations[op].label = options.label;
    workload_.depend(after, op);
    workload_.depend(op, done);
  };
  const Fabric& fabric = routes_.fabric();
  const bool one_server = std::ranges::all_of(gpus, [&](NodeId gpu) {
    return fabric.node(gpu).server == fabric.node(gpus.front()).server;
  });
  const std::size_t most_flows =
      spreads(options.routing) && !one_server ? kMostSprayedFlows : kMostDirectFlows;
  struct Chain {
    Bytes bytes, piece;
    std::vector<Hop> hops;
    std::vector<Edge> edges;
    std::vector<Share> shares;
    Bandwidth cap;
  };
  std::vector<Chain> chains;
  append_all_paced(phase, gpus, options, after, done);
  for (std::uint32_t c = 0; c < phase.channels.size(); ++c) {
    const Channel& channel = phase.channels[c];
    dealt_ = channel.form == Channel::Form::direct;
    if (channel.form == Channel::Form::paced) continue;  // all at once, above
    if (channel.form == Channel::Form::direct && !channel.generate &&
        channel.edges.size() <= most_flows) {
      for (const Edge& edge : channel.edges) {
        const Hop hop = route_edge(edge, gpus, c, options);
        const auto size = static_cast<std::int64_t>(channel.bytes.value() * edge.weight + 0.5);
        add(workload_.add_way(route_.shares, hop.alpha, smaller_cap(hop.cap, channel.cap)), {size},
            {});
      }
      continue;
    }
    Time alpha_sum{0}, alpha_max{0};
    double slice_seconds = 0;  // sum over hops of slice / r_hop, in picoseconds
    Bandwidth cap = channel.cap, slowest{0};
    std::size_t edges = 0;
    start_channel(gpus.size());
    Bytes chunk = channel.chunk, slice = channel.slice;
    std::vector<Hop> hops;
    std::vector<Edge> crossed;
    channel.for_each_edge([&](const Edge& edge) {
      const Hop hop = load_edge(edge, gpus, c, options);
      if (hop.cap.bps > 0) cap = smaller_cap(cap, scaled(hop.cap, 1 / edge.weight));
      slowest = smaller_cap(slowest, hop.rate);
      alpha_sum += hop.alpha;
      alpha_max = std::max(alpha_max, hop.alpha);
      ++edges;
      if (channel.form == Channel::Form::ring || channel.form == Channel::Form::chain)
        hops.push_back(hop);
      if (channel.form == Channel::Form::chain) crossed.push_back(edge);
    });
    if (edges == 0) continue;
    if (tree_ && channel.form == Channel::Form::in_switch) load_network(channel, *request_);
    Time fill{0};
    switch (channel.form) {
      case Channel::Form::ring: {
        // What one rotation moves over an edge, in all `bytes` cross it in steps / N rotations.
        const double rotation_chunk =
            channel.steps > 0 ? channel.bytes.value() / channel.steps : channel.bytes.value();
        const double c_bytes =
            chunk.count > 0 ? std::min(chunk.value(), rotation_chunk) : rotation_chunk;
        const double s_bytes = slice.count > 0 ? std::min(slice.value(), c_bytes) : c_bytes;
        for (const Hop& hop : hops) slice_seconds += s_bytes / hop.rate.bytes_per_ps();
        const double rotation_ps = static_cast<double>(alpha_sum.ps) + slice_seconds;
        const double bits_per_second =
            rotation_ps > 0 ? static_cast<double>(hops.size()) * c_bytes * 8e12 / rotation_ps : 0;
        if (bits_per_second > 0 && bits_per_second < 9e18) {
          cap = smaller_cap(
              cap, {std::max<std::int64_t>(1, static_cast<std::int64_t>(bits_per_second))});
        }
        break;
      }
      case Channel::Form::chain:
        chains.push_back({channel.bytes,
                          chunk.count > 0 ? std::min(chunk, channel.bytes) : channel.bytes,
                          std::move(hops), std::move(crossed), take_shares(), cap});
        continue;
      case Channel::Form::tree: {
        const Bytes piece = chunk.count > 0 ? std::min(chunk, channel.bytes) : channel.bytes;
        const std::int64_t hops_before = std::max<std::int64_t>(0, std::int64_t{channel.steps} - 1);
        fill =
            alpha_max * std::int64_t{channel.steps} + transfer_time(piece, slowest) * hops_before;
        break;
      }
      case Channel::Form::direct:
        fill = alpha_max;
        break;
      case Channel::Form::in_switch:
        fill = alpha_max * std::int64_t{channel.steps};
        break;
      case Channel::Form::paced:
        break;
    }
    add(workload_.add_way(take_shares(), {0}, cap), channel.bytes, fill);
  }
  // The first piece passes every hop before the bytes count on the slowest. Chains with the same hop at the same place pass it
  // at the same time and share its rate.
  std::map<std::tuple<std::size_t, std::uint32_t, std::uint32_t>, std::int64_t> together;
  for (const Chain& chain : chains) {
    for (std::size_t h = 0; h < chain.edges.size(); ++h)
      ++together[{h, chain.edges[h].src, chain.edges[h].dst}];
  }
  for (const Chain& chain : chains) {
    Time fill{0}, longest{0};
    for (std::size_t h = 0; h < chain.hops.size(); ++h) {
      const Time time = transfer_time(
          chain.piece * together[{h, chain.edges[h].src, chain.edges[h].dst}], chain.hops[h].rate);
      fill += chain.hops[h].alpha + time;
      longest = std::max(longest, time);
    }
    add(workload_.add_way(chain.shares, {0}, chain.cap), chain.bytes, fill - longest);
  }
  if (workload_.operations[done].waits_for == 0) workload_.depend(after, done);
  return done;
}

}  // namespace weft
