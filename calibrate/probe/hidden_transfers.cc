// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/hidden_transfers.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "models/catalog.hpp"
#include "sim/core/check.hpp"

namespace weft {
namespace {

constexpr Bytes kPage{64 << 10}, kPagesUpTo{64 << 20};
constexpr Time kPageTime{1200}, kLargeStart{300'000}, kKernelStart{4'200'000};
constexpr double kKernelShare = 0.93, kPageableShare = 0.4;
constexpr Time kPageableStart{3'500'000};

// Pages of a copy, and the other way it starts from a page on.
Time small_terms(Bytes bytes) {
  const std::int64_t pages = std::min(bytes, kPagesUpTo).count / kPage.count;
  return Time{pages * kPageTime.ps + (bytes >= kPage ? kLargeStart.ps : 0)};
}

Time part(Time time, double share) {
  return Time{static_cast<std::int64_t>(static_cast<double>(time.ps) * share)};
}

}  // namespace

std::optional<Route> HiddenTransfers::shortest(NodeId from, NodeId to) {
  std::vector<LinkId> reached_by(fabric_.node_count());
  std::deque<NodeId> queue{from};
  std::vector<bool> seen(fabric_.node_count(), false);
  seen[from.v] = true;
  while (!queue.empty() && !seen[to.v]) {
    const NodeId at = queue.front();
    queue.pop_front();
    for (const LinkId id : fabric_.out_links(at)) {
      const Link& link = fabric_.link(id);
      const NodeKind kind = fabric_.node(link.to).kind;
      const bool passes = kind != NodeKind::gpu && kind != NodeKind::nvswitch;
      if (seen[link.to.v] || (!passes && link.to != to)) continue;
      seen[link.to.v] = true;
      reached_by[link.to.v] = id;
      queue.push_back(link.to);
    }
  }
  if (!seen[to.v] || from == to) return std::nullopt;
  Route route;
  for (NodeId at = to; at != from; at = fabric_.link(reached_by[at.v]).from)
    route.hops.push_back(reached_by[at.v]);
  std::ranges::reverse(route.hops);
  for (const LinkId hop : route.hops) {
    const Link& link = fabric_.link(hop);
    route.add(hop.v, 1);
    route.latency.ps += link.delay.ps;
    if (link.to != to) route.latency.ps += fabric_.node(link.to).latency.ps;
  }
  return route;
}

Time HiddenTransfers::start_of(NodeId gpu, CopyMethod method) const {
  if (method == CopyMethod::sm) return kKernelStart;
  const Time call = fabric_.type_of(fabric_.node(gpu).server).spec.copy.latency;
  return method == CopyMethod::pageable ? Time{call.ps + kPageableStart.ps} : call;
}

std::optional<HiddenTransfers::Moving> HiddenTransfers::moving(const HiddenTransfer& transfer) {
  const bool from_gpu = fabric_.node(transfer.from).kind == NodeKind::gpu;
  const bool to_gpu = fabric_.node(transfer.to).kind == NodeKind::gpu;
  Moving out;
  out.bytes = transfer.bytes;
  out.extra = small_terms(transfer.bytes);
  const bool call = from_gpu && to_gpu && transfer.method == CopyMethod::copy_engine;
  if (!call) out.extra.ps += start_of(from_gpu ? transfer.from : transfer.to, transfer.method).ps;
  if (from_gpu && to_gpu) {
    auto way = routes_.transfer(transfer.from, transfer.to,
                                {.copy_call = call, .routing = fabric_.routing()});
    if (!way) return std::nullopt;
    out.way = std::move(*way);
  } else {
    auto route = shortest(transfer.from, transfer.to);
    if (!route) return std::nullopt;
    out.way.legs.push_back({.route = std::move(*route)});
  }
  Leg& leg = out.way.legs.front();
  const Bandwidth rate = leg.route.rate(fabric_);
  const auto capped = [&](double share) {
    leg.cap = Bandwidth{static_cast<std::int64_t>(static_cast<double>(rate.bps) * share)};
  };
  if (transfer.method == CopyMethod::sm) capped(kKernelShare);
  if (transfer.method == CopyMethod::pageable) capped(kPageableShare);
  return out;
}

std::vector<Time> HiddenTransfers::simulate(std::span<const Moving> all, double share,
                                            Fidelity fidelity) const {
  const std::vector<Bandwidth> capacities = fabric_.capacities();
  NetworkOptions options;
  options.fabric = &fabric_;
  options.packet = &packet_;
  const auto network = make_network(fidelity, capacities, options);
  std::vector<std::size_t> leg(all.size(), 0);
  std::vector<Time> finished(all.size());
  const auto start = [&](std::size_t i, Time now) {
    const Leg& next = all[i].way.legs[leg[i]];
    FlowRequest request;
    request.shares = next.route.shares;
    request.size = Bytes{std::max<std::int64_t>(
        1, static_cast<std::int64_t>(static_cast<double>(all[i].bytes.count) * share))};
    request.latency = Time{next.route.latency.ps + next.startup.ps};
    request.wire = next.route.latency;
    request.cap = next.cap;
    request.tag = i;
    request.way = static_cast<std::uint32_t>(i * 8 + leg[i]);
    network->start(request, now);
  };
  for (std::size_t i = 0; i < all.size(); ++i) start(i, Time{0});
  std::vector<FlowDone> done;
  for (std::size_t running = all.size(); running > 0;) {
    const Time now = network->next_event();
    WEFT_CHECK(now < Time::never(), running);
    network->advance(now, done);
    for (const FlowDone& end : done) {
      const std::size_t i = end.tag;
      if (++leg[i] < all[i].way.legs.size()) {
        start(i, now);
        continue;
      }
      finished[i] = end.when;
      --running;
    }
    done.clear();
  }
  return finished;
}

std::vector<Time> HiddenTransfers::run(std::span<const HiddenTransfer> transfers) {
  std::vector<Moving> all;
  bool packets = true;
  Bytes largest{0};
  for (const HiddenTransfer& transfer : transfers) {
    auto one = moving(transfer);
    if (!one) return {};
    packets = packets && one->way.legs.size() == 1 && one->way.via != Via::host &&
              one->way.legs.front().cap.bps == 0;
    largest = std::max(largest, one->bytes);
    all.push_back(std::move(*one));
  }
  std::vector<Time> times;
  if (!packets) {
    times = simulate(all, 1, Fidelity::fluid);
  } else if (largest <= kWindow) {
    times = simulate(all, 1, Fidelity::packet);
  } else {
    const double window = kWindow.value() / largest.value();
    const std::vector<Time> half = simulate(all, window / 2, Fidelity::packet);
    times = simulate(all, window, Fidelity::packet);
    for (std::size_t i = 0; i < times.size(); ++i)
      times[i].ps += part(Time{times[i].ps - half[i].ps}, (1 - window) / (window / 2)).ps;
  }
  for (std::size_t i = 0; i < times.size(); ++i) times[i].ps += all[i].extra.ps;
  return times;
}

std::optional<Time> HiddenTransfers::latency(NodeId from, NodeId to) {
  const auto way = routes_.transfer(from, to, {.routing = fabric_.routing()});
  if (!way) return std::nullopt;
  return way->latency();
}

}  // namespace weft
