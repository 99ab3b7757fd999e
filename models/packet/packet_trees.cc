// SPDX-License-Identifier: Apache-2.0
// Collectives in switches of a fabric: NVSwitches, or a tree of network switches.
#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "models/packet/packet_network.hpp"
#include "sim/core/check.hpp"
#include "sim/core/diagnostics.hpp"
#include "sim/workload/switch_tree.hpp"

namespace weft {
namespace {

using packet::Store;
using packet::SumTo;

// What switches do for a kind. Who reads and stores (NVLink) gets the sum of its own part and multicasts it itself.
std::pair<SumTo, Store> work_of(const SwitchTree& tree) {
  switch (tree.kind) {
    case CollectiveKind::all_reduce:
      return tree.reads_and_stores ? std::pair{SumTo::in_turn, Store::sums}
                                   : std::pair{SumTo::all, Store::nothing};
    case CollectiveKind::reduce_scatter:
      return {SumTo::in_turn, Store::nothing};
    case CollectiveKind::all_gather:
      return {SumTo::nobody, Store::own};
    case CollectiveKind::broadcast:
      return {SumTo::nobody, Store::root};
    case CollectiveKind::reduce:
      return {SumTo::root, Store::nothing};
    default:
      break;
  }
  WEFT_CHECK(false, static_cast<int>(tree.kind));
  return {SumTo::nobody, Store::nothing};
}

std::vector<std::uint32_t> numbers(const std::vector<LinkId>& links) {
  std::vector<std::uint32_t> out;
  for (const LinkId link : links) out.push_back(link.v);
  return out;
}

}  // namespace

PacketNetwork::KnownTree PacketNetwork::make_tree(const FlowRequest& request) {
  const SwitchTree& tree = *request.tree;
  packet::TreeSpec made;
  for (const SwitchTree::Switch& each : tree.switches) {
    packet::TreeSpec::Switch& added = made.switches.emplace_back();
    if (each.parent != SwitchTree::kRoot) added = {each.parent, each.up.v, each.down.v};
  }
  Time round_trip{0};
  double rate = request.cap.bps > 0 ? request.cap.bytes_per_ps() : 1e300;
  const auto cross = [&](std::uint32_t p, Time& way) {
    const packet::PortSpec& port = engine_.spec(p);
    if (port.guard == packet::Guard::drop) {
      throw LimitReached(
          fmt::format("{} may lose packets, and a sum in switches cannot do without one: turn PFC "
                      "on",
                      fabric_.name(LinkId{p})));
    }
    const Bandwidth payload = fabric_.link(LinkId{p}).rate;
    rate = std::min(rate, payload.bytes_per_ps());
    way += port.delay + port.processing + transfer_time(Bytes{grain_}, payload);
  };
  for (const SwitchTree::Member& member : tree.members) {
    packet::TreeSpec::Member& added = made.members.emplace_back();
    added = {member.at, numbers(member.up), numbers(member.down)};
    for (const LinkId link : member.up) {
      if (!crosses_network(link)) continue;
      if (lanes_ > 1) {
        added.lane =
            static_cast<std::uint8_t>(request.traffic_class + lane_of(link) * traffic_classes_);
      }
      break;
    }
    Time way{0};
    for (const std::uint32_t p : added.up) cross(p, way);
    for (const std::uint32_t p : added.down) cross(p, way);
    for (std::uint32_t s = member.at; s != 0; s = tree.switches[s].parent) {
      cross(tree.switches[s].up.v, way);
      cross(tree.switches[s].down.v, way);
    }
    round_trip = std::max(round_trip, way);
  }
  const std::int64_t packet = grain_ + header_;
  const std::int64_t buffer =
      tree.buffer
          ? tree.buffer->count
          : static_cast<std::int64_t>(2 * rate * static_cast<double>(round_trip.ps)) + 4 * packet;
  if (buffer < packet) {
    throw LimitReached(fmt::format("a buffer of {} for partial sums does not hold one packet of {}",
                                   to_text(Bytes{buffer}), to_text(Bytes{packet})));
  }
  setting("partial sums of a reduction in a switch", to_text(Bytes{buffer}),
          tree.buffer ? "given" : "two round trips of its tree and four packets");
  KnownTree known;
  known.id = engine_.add_tree(std::move(made));
  known.window = static_cast<std::uint32_t>(
      std::min<std::int64_t>(buffer / packet, std::int64_t{packet::kNone} / 2));
  return known;
}

void PacketNetwork::start_tree(const FlowRequest& request, std::uint64_t tag, Time now) {
  if (cuts_) {
    throw LimitReached(
        "not yet: links that go down under a collective in switches; use another algorithm");
  }
  const auto [known, fresh] = trees_.try_emplace({request.tree, request.traffic_class});
  if (fresh) known->second = make_tree(request);
  packet::CollectiveSpec spec;
  spec.tree = known->second.id;
  spec.window = known->second.window;
  spec.bytes = request.size.count;
  std::tie(spec.sum, spec.store) = work_of(*request.tree);
  spec.root = request.tree->root_rank;
  // Senders are paced by bytes with their headers.
  spec.cap =
      scaled(request.cap, static_cast<double>(grain_ + header_) / static_cast<double>(grain_));
  spec.traffic_class = request.traffic_class;
  spec.tag = tag;
  spec.account = request.tag;
  engine_.start_collective(std::move(spec), now);
}

}  // namespace weft
