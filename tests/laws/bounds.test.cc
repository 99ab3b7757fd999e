// SPDX-License-Identifier: Apache-2.0
// Laws 3 and 4, for every algorithm and kind on machines of every make: nothing beats the bound, what is injected is carried,
// no link runs above its capacity, and both levels put the same bytes on the same links.
#include "models/analytic/bounds.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/workload/placement.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using enum CollectiveKind;

// What each GPU must at least send and receive, the larger of both.
double endpoint_bytes(CollectiveKind kind, double size, double n) {
  switch (kind) {
    case all_reduce:
      return size;
    case all_gather:
    case reduce_scatter:
    case all_to_all:
    case gather:
    case scatter:
      return size * (n - 1) / n;
    case broadcast:
    case reduce:
    case send_recv:
      return size;
  }
  return 0;
}

// The fastest that any GPU can take data in or give it away.
double fastest_gpu(const Fabric& fabric) {
  double best = 0;
  for (const NodeId gpu : fabric.gpus()) {
    double sum = 0;
    for (const LinkId l : fabric.out_links(gpu)) sum += fabric.link(l).raw.bytes_per_s();
    best = std::max(best, sum);
  }
  return best;
}

void expect_laws(const Fabric& fabric, const Report& report, const test::Traffic& traffic,
                 const std::string& what) {
  const double tiny = 1e-9;
  EXPECT_EQ(traffic.finished, traffic.messages.size()) << what;
  EXPECT_GE(report.time_s * (1 + tiny), report.bound_s) << what;
  std::vector<Bandwidth> raw = fabric.capacities();
  for (std::uint32_t l = 0; l < fabric.link_count(); ++l) {
    EXPECT_LE(raw[l], fabric.link(LinkId{l}).raw)
        << "payload above the wire: " << fabric.name(LinkId{l});
    raw[l] = fabric.link(LinkId{l}).raw;
  }
  std::vector<BoundMessage> messages;
  for (const auto& m : traffic.messages) messages.push_back({m.shares, m.size, m.latency});
  const Bound bound = lower_bound(raw, messages);
  EXPECT_GE(test::time_of(report), bound.time)
      << what << ": bound by "
      << (bound.resource == Bound::kNoResource ? "latency" : fabric.resource_name(bound.resource));
  for (std::uint32_t r = 0; r < traffic.injected.size(); ++r) {
    if (traffic.injected[r] == 0 && traffic.carried[r] == 0) continue;
    EXPECT_NEAR(traffic.carried[r], traffic.injected[r], tiny * traffic.injected[r] + 1e-3)
        << what << " " << fabric.resource_name(r);
    EXPECT_LE(traffic.busy[r].seconds(), report.time_s * (1 + tiny))
        << what << " " << fabric.resource_name(r);
    EXPECT_LE(traffic.carried[r],
              fabric.capacity(r).bytes_per_s() * traffic.busy[r].seconds() * (1 + tiny) + 1)
        << what << " " << fabric.resource_name(r);
  }
}

class Laws : public ::testing::TestWithParam<const char*> {};

TEST_P(Laws, HoldForEveryAlgorithmAndKind) {
  const Fabric fabric = test::catalogue_fabric(GetParam());
  Routes routes(fabric);
  const GroupShape shape = group_shape(routes, fabric.gpus());
  const double n = static_cast<double>(fabric.gpus().size());
  const double gpu_rate = fastest_gpu(fabric);
  const RunContext context = test::context();
  for (const AlgorithmEntry* algorithm : context.algorithms) {
    for (const auto& kind : enum_names(CollectiveKind{})) {
      if (!algorithm->supports(kind.value, shape)) continue;
      std::vector<std::vector<double>> carried;
      for (const char* level : {"analytic", "fluid"}) {
        const std::string what =
            fmt::format("{}: {} {} {}", GetParam(), algorithm->name, kind.name, level);
        test::Traffic traffic;
        const double size = 3'000'007;
        const Report report =
            test::run(fabric,
                      fmt::format(R"("fidelity": "{}", "workload": {{"collective": "{}",
            "algorithm": "{}", "size": "3000007 B"}})",
                                  level, kind.name, algorithm->name),
                      &traffic);
        expect_laws(fabric, report, traffic, what);
        EXPECT_GE(report.time_s, (endpoint_bytes(kind.value, size, n) - n) / gpu_rate) << what;
        EXPECT_GE(report.jobs[0].busbw_gbs, 0) << what;
        carried.push_back(traffic.carried);
      }
      for (std::size_t r = 0; r < carried[0].size(); ++r) {
        EXPECT_NEAR(carried[0][r], carried[1][r], 1e-9 * carried[1][r] + 1e-3)
            << algorithm->name << kind.name << " " << fabric.resource_name(r);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Catalogue, Laws,
    ::testing::Values("dgx1-p100", "dgx1-v100", "dgx2", "hgx-h100", "pcie-l40sx8", "pcie-rtx4090x8",
                      "mi300x", "summitdev",
                      R"({"use": "hgx-h100+ib-ndr", "set": {"/servers": 2}})",
                      R"({"use": "dgx-a100+ib-hdr", "set": {"/servers": 3}})",
                      R"({"use": "dgx1-v100+roce-100g", "set": {"/servers": 2}})",
                      R"({"use": "polaris", "set": {"/servers": 6}})"));

TEST(LawsOfPatterns, HoldWithCollisionsStaggeredStartsAndFaults) {
  const Fabric fabric = test::fabric_from(
      "gpu g[0-1] -- 400 Gb/s, 100 ns -- pcie_switch p; nic n -- 400 Gb/s, 100 ns -- p",
      {.servers = 8, .network = test::leaf_spine(4, 2, "ecmp")});
  for (const char* level : {"analytic", "fluid"}) {
    for (const char* pattern : {"permutation", "incast", "all_to_all", "random", "ring"}) {
      for (int seed = 1; seed < 4; ++seed) {
        test::Traffic traffic;
        const Report report = test::run(fabric,
                                        fmt::format(R"("fidelity": "{}", "seed": {}, "jobs": [
            {{"name": "early", "gpus": 7, "pattern": "{}", "size": "1000003 B"}},
            {{"name": "late", "start": "50 us", "gpus": 9, "placement": {{"policy": "random"}}, "pattern": "{}", "size": "2 MB", "repeat": 2}}],
            "faults": [{{"target": "leaf0:spine1", "do": "degrade", "factor": 0.3, "at": "100 us", "until": "200 us"}}])",
                                                    level, seed, pattern, pattern),
                                        &traffic);
        expect_laws(fabric, report, traffic, fmt::format("{} {} {}", level, pattern, seed));
      }
    }
  }
}

}  // namespace
}  // namespace weft
