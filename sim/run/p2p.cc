// SPDX-License-Identifier: Apache-2.0
#include "sim/run/p2p.hpp"

#include <vector>

#include "sim/core/check.hpp"

namespace weft {
namespace {

std::string path_text(const Fabric& fabric, const Transfer& transfer) {
  std::string out;
  for (const Leg& leg : transfer.legs) {
    for (const LinkId link : leg.route.hops) {
      if (out.empty()) out = fabric.name(fabric.link(link).from);
      out += " " + fabric.name(fabric.link(link).to);
    }
  }
  return out;
}

FlowRequest request_for(const Leg& leg, Bytes size) {
  FlowRequest request;
  request.shares = leg.route.shares;
  request.size = size;
  request.latency = leg.route.latency + leg.startup;
  request.cap = leg.cap;
  return request;
}

}  // namespace

std::optional<CopyAnswer> time_copy(Routes& routes, NodeId src, NodeId dst,
                                    const CopyQuestion& question, const MakeNetwork& make_network) {
  const Fabric& fabric = routes.fabric();
  const auto there = routes.transfer(src, dst, question.transfer);
  const auto back =
      question.bidirectional ? routes.transfer(dst, src, question.transfer) : std::nullopt;
  if (!there || (question.bidirectional && !back)) return std::nullopt;
  const auto network = make_network(fabric.capacities());
  std::vector<FlowDone> done;
  Time now{0};
  for (std::size_t leg = 0; leg < there->legs.size(); ++leg) {
    int running = 0;
    for (const Transfer* transfer : {&*there, back ? &*back : nullptr}) {
      if (transfer == nullptr || leg >= transfer->legs.size()) continue;
      network->start(request_for(transfer->legs[leg], question.size), now);
      ++running;
    }
    while (running > 0) {
      now = network->next_event();
      WEFT_CHECK(now < Time::never(), src, dst);
      network->advance(now, done);
      running -= static_cast<int>(done.size());
      done.clear();
    }
  }
  const double ways = question.bidirectional ? 2 : 1;
  return CopyAnswer{there->via, path_text(fabric, *there),
                    ways * question.size.value() / now.seconds() * 1e-9, now, there->latency()};
}

}  // namespace weft
