// SPDX-License-Identifier: Apache-2.0
// Laws 1, 2 and 4 of scenarios on random clusters: a lone flow is its closed form packet by packet, traffic without collisions of
// hashes takes as long as at fluid level, and every level moves the same bytes over the same links.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/properties/random_machines.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

// Each case is a run at two levels or three.
[[maybe_unused]] const int kFewerCases = setenv("RC_PARAMS", "max_success=40", 0);

using properties::any_of;
using properties::between;

struct Machine {
  const char *nic, *cable, *chassis;
};

// Hosts with one GPU on a network of real parts.
std::string random_cluster(int servers, const std::string& network) {
  const auto machine = any_of<Machine>({{"cx5-roce-100g", "roce-100g", "sn4700"},
                                        {"cx6-roce-200g", "roce-200g", "sn4700"},
                                        {"cx7-roce-400g", "roce-400g", "sn5600"},
                                        {"cx5-edr", "ib-edr", "sb7800"},
                                        {"cx6-hdr", "ib-hdr", "qm8700"},
                                        {"cx7-ndr", "ib-ndr", "qm9700"}});
  return fmt::format(
      R"({{"servers": {}, "server": {{"use": "h100-1gpu", "set": {{"/nodes/4/model": "{}"}}}},
          "network": {{{}, "switch": "{}", "link": "{}"}}}})",
      servers, machine.nic, network, machine.chassis, machine.cable);
}

std::string random_network(int servers) {
  if (servers < 4 || between(0, 2) == 0) return R"("generator": "single-switch")";
  const int per_leaf = between(1, std::min(4, servers / 2));
  return fmt::format(
      R"("generator": "leaf-spine", "hosts_per_leaf": {}, "spines": {}, "routing": "ecmp")",
      per_leaf, between(1, per_leaf));
}

std::string at(std::string_view level, const std::string& jobs, const std::string& packet = {}) {
  return fmt::format(
      R"("fidelity": "{}", "models": {{"packet": {{{}}}}}, "observe": {{"top": 100000}}, "jobs": [{}])",
      level, packet, jobs);
}

// ---- the closed form of a lone flow

// The links of a way in order, from the node where it begins.
std::vector<LinkId> in_order(const Fabric& fabric, const std::vector<Share>& shares, NodeId src) {
  std::map<NodeId, LinkId> next;
  for (const Share& share : shares) {
    if (share.resource < fabric.link_count())
      next[fabric.link(LinkId{share.resource}).from] = LinkId{share.resource};
  }
  std::vector<LinkId> out;
  for (NodeId node = src; next.contains(node); node = fabric.link(out.back()).to)
    out.push_back(next.at(node));
  return out;
}

// Wire bits per second, headers included.
Bandwidth raw_rate(const Fabric& fabric, const Link& link) {
  const LinkLaw& law = fabric.laws()[link.law];
  if (law.payload.count == 0) return link.rate;
  const double raw = static_cast<double>(link.rate.bps) *
                     static_cast<double>(law.payload.count + law.overhead.count) /
                     law.payload.value();
  return Bandwidth{static_cast<std::int64_t>(raw + 0.5)};
}

Time on_wire(const Fabric& fabric, const Link& link, std::int64_t bytes) {
  const LinkLaw& law = fabric.laws()[link.law];
  const std::int64_t packets =
      law.payload.count == 0 ? 0 : (bytes + law.payload.count - 1) / law.payload.count;
  return transfer_time(Bytes{bytes + packets * law.overhead.count}, raw_rate(fabric, link));
}

Time header(const Fabric& fabric, const Link& link) {
  constexpr std::int64_t kHeader = 64;
  return transfer_time(Bytes{kHeader}, raw_rate(fabric, link));
}

// A packet leaves a port when it may and the one before it has left. It may when it has arrived (behind the header where the
// node cuts through, but so that the wire never runs out of bits) and the node has looked at it.
Time closed_form(const Fabric& fabric, const std::vector<LinkId>& way, std::int64_t bytes,
                 std::int64_t grain, bool cut_through) {
  std::vector<Time> free_at(way.size(), Time{0});
  Time last{0};
  for (std::int64_t sent = 0; sent < bytes; sent += grain) {
    const std::int64_t size = std::min(grain, bytes - sent);
    Time may{0};
    for (std::size_t i = 0; i < way.size(); ++i) {
      const Link& link = fabric.link(way[i]);
      const bool end = i + 1 == way.size();
      const Time whole = on_wire(fabric, link, size);
      const Time start = std::max(may, free_at[i]);
      free_at[i] = start + whole;
      const Time behind = cut_through && !end ? std::min(header(fabric, link), whole) : whole;
      may = start + behind + link.delay;
      if (end) break;
      may += fabric.node(link.to).latency;
      const Time next = on_wire(fabric, fabric.link(way[i + 1]), size);
      may = std::max(may, may + (whole - behind) - next);
    }
    last = may;
  }
  return last;
}

RC_GTEST_PROP(LoneFlow, IsItsClosedFormOnRandomClusters, ()) {
  const int servers = between(2, 12);
  const Fabric fabric = test::catalogue_fabric(random_cluster(servers, random_network(servers)));
  const int src = between(0, servers - 1), dst = (src + between(1, servers - 1)) % servers;
  const std::int64_t bytes = any_of<std::int64_t>({1, 4095, 4096, 4097, 100'000, 1'000'003});
  const std::int64_t grain = any_of<std::int64_t>({1024, 4096, 65536});
  const bool cut_through = between(0, 1) == 1;
  test::Traffic traffic;
  const Report report = test::run(
      fabric,
      at("packet",
         fmt::format(
             R"({{"flows": [{{"src": "server{}/gpu0", "dst": "server{}/gpu0", "size": "{} B"}}]}})",
             src, dst, bytes),
         fmt::format(
             R"("congestion_control": "none", "grain": "{} B", "cut_through": {}, "ack_every": {})",
             grain, cut_through, any_of({0, 1, 7}))),
      &traffic);
  const std::vector<LinkId> way = in_order(fabric, traffic.messages.at(0).shares,
                                           test::node(fabric, fmt::format("server{}/gpu0", src)));
  RC_ASSERT(fabric.name(fabric.link(way.back()).to) == fmt::format("server{}/gpu0", dst));
  Time beyond = traffic.messages[0].latency;  // what links and nodes do not cause: software
  for (std::size_t i = 0; i < way.size(); ++i) {
    beyond -= fabric.link(way[i]).delay;
    if (i + 1 < way.size()) beyond -= fabric.node(fabric.link(way[i]).to).latency;
  }
  RC_ASSERT(beyond.ps >= 0);
  RC_ASSERT(test::time_of(report).ps ==
            (beyond + closed_form(fabric, way, bytes, grain, cut_through)).ps);
}

// ---- against the fluid level
//
// What remains is the wire that acknowledgements take from the other direction (64 B per packet of 4 KiB: 1.5 %), which only this
// level has, and the time until the first packet has come through.

double ratio(const Fabric& fabric, const std::string& job, const std::string& packet = {}) {
  return test::run(fabric, at("packet", job, packet)).time_s /
         test::run(fabric, at("fluid", job)).time_s;
}

// One switch: no hashes to collide.
Fabric one_switch(int servers) {
  return test::catalogue_fabric(random_cluster(servers, R"("generator": "single-switch")"));
}

RC_GTEST_PROP(Permutation, TakesAsLongAsAtFluidLevel, ()) {
  const Fabric fabric = one_switch(between(2, 16));
  RC_ASSERT(std::abs(ratio(fabric, R"({"pattern": "permutation", "size": "16 MiB"})") - 1) < 0.03);
}

RC_GTEST_PROP(RingAllReduce, TakesAsLongAsAtFluidLevel, ()) {
  const int servers = between(2, 8);
  const Fabric fabric = one_switch(servers);
  const std::string job = fmt::format(
      R"({{"collective": "all_reduce", "algorithm": "ring", "expand": true, "size": "{} MiB"}})",
      16 * servers);
  RC_ASSERT(std::abs(ratio(fabric, job) - 1) < 0.02);
}

RC_GTEST_PROP(AllToAll, TakesAsLongAsAtFluidLevel, ()) {
  const int servers = between(2, 8);
  const Fabric fabric = one_switch(servers);
  RC_ASSERT(std::abs(ratio(fabric, R"({"pattern": "all_to_all", "size": "16 MiB"})") - 1) < 0.05);
}

// ---- the same bytes everywhere

std::map<std::string, double> payload(const Fabric& fabric, std::string_view level,
                                      const std::string& jobs) {
  std::map<std::string, double> out;
  for (const LinkReport& link : test::run(fabric, at(level, jobs)).links) out[link.id] = link.bytes;
  return out;
}

RC_GTEST_PROP(Payload, PerLinkIsTheSameAtAllLevels, ()) {
  const int servers = between(2, 12);
  const Fabric fabric = test::catalogue_fabric(random_cluster(servers, random_network(servers)));
  std::string jobs;
  for (int i = between(1, std::min(3, servers)); i > 0; --i) {
    jobs += fmt::format(
        R"({}{{"name": "job{}", "gpus": {}, "size": "{} B", "start": "{} us", {}}})",
        jobs.empty() ? "" : ", ", i, std::max(1, servers / 3), any_of({1, 4097, 1'000'003}),
        between(0, 50),
        any_of<std::string>({R"("pattern": "permutation")", R"("pattern": "all_to_all")",
                             R"("pattern": "random", "queue_pairs": 3)", R"("pattern": "incast")",
                             R"("collective": "all_reduce", "algorithm": "ring", "expand": true)",
                             R"("collective": "all_to_all", "expand": true)",
                             R"("collective": "broadcast", "expand": true)"}));
  }
  const auto packet = payload(fabric, "packet", jobs);
  for (const char* level : {"analytic", "fluid"}) {
    const auto other = payload(fabric, level, jobs);
    RC_ASSERT(other.size() == packet.size());
    for (const auto& [link, bytes] : packet) {
      RC_ASSERT(other.contains(link));
      RC_ASSERT(std::abs(other.at(link) - bytes) <= 1e-9 * bytes);
    }
  }
}

}  // namespace
}  // namespace weft
