// SPDX-License-Identifier: Apache-2.0
// Groups that move in lockstep, folded into one: the same time and the same bytes on every link as when each is on its own.
#include "sim/run/lockstep.hpp"

#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/catalog.hpp"
#include "sim/run/collective_timer.hpp"
#include "sim/run/executor.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

struct Outcome {
  Time time{0};
  std::vector<double> carried;  // by link
  std::size_t operations = 0, shares = 0;
};

CollectivePlanner rings(const Fabric& fabric) {
  static const Scenario kPlain;
  static const CollectiveLibrary kNone;
  return collective_planner(fabric, kPlain, collective_algorithms(), kNone);
}

Outcome run(const Fabric& fabric, CollectiveKind kind, Bytes size,
            const std::vector<std::vector<Lockstep::Group>>& together) {
  Routes routes(fabric);
  Workload workload;
  Lockstep lockstep(routes, workload, rings(fabric), false);
  std::vector<std::uint32_t> patterns;
  for (const auto& groups : together) patterns.push_back(lockstep.collective(kind, size, groups));
  const std::vector<Bandwidth> capacities = fabric.capacities();
  lockstep.fold(capacities, {});
  const OpId start = workload.add_barrier();
  for (const std::uint32_t pattern : patterns) lockstep.append(pattern, start, 0);
  const auto network = make_network(Fidelity::fluid, capacities, {});
  Executor executor(workload, *network);
  executor.run({{.first_op = 0, .end_op = static_cast<std::uint32_t>(workload.operations.size())}},
               {});
  Outcome out{executor.makespan(), {}, workload.operations.size(), workload.shares.size()};
  for (std::uint32_t l = 0; l < fabric.link_count(); ++l)
    out.carried.push_back(network->carried_bytes(lockstep.representative(l)));
  return out;
}

// Groups of `size` GPUs, `stride` apart.
std::vector<Lockstep::Group> groups_of(const Fabric& fabric, std::size_t size, std::size_t stride) {
  const auto gpus = fabric.gpus();
  std::vector<Lockstep::Group> out;
  for (std::size_t block = 0; block < gpus.size(); block += size * stride) {
    for (std::size_t offset = 0; offset < stride; ++offset) {
      Lockstep::Group& group = out.emplace_back();
      for (std::size_t k = 0; k < size; ++k) group.push_back(gpus[block + offset + k * stride]);
    }
  }
  return out;
}

void expect_same(const Fabric& fabric, CollectiveKind kind,
                 const std::vector<Lockstep::Group>& groups) {
  std::vector<std::vector<Lockstep::Group>> alone;
  for (const auto& group : groups) alone.push_back({group});
  const Outcome folded = run(fabric, kind, 64_MiB, {groups}),
                single = run(fabric, kind, 64_MiB, alone);
  EXPECT_NEAR(static_cast<double>(folded.time.ps), static_cast<double>(single.time.ps), 2);
  EXPECT_LT(folded.operations, single.operations);
  for (std::size_t l = 0; l < folded.carried.size(); ++l) {
    EXPECT_NEAR(folded.carried[l], single.carried[l], 1 + 1e-9 * single.carried[l])
        << fabric.name(LinkId{l});
  }
}

TEST(Lockstep, GroupsInsideServersFoldToOne) {
  const Fabric fabric =
      test::catalogue_fabric(R"({"use": "hgx-h100+ib-ndr", "set": {"/servers": 4}})");
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                          CollectiveKind::reduce_scatter, CollectiveKind::all_to_all})
    expect_same(fabric, kind, groups_of(fabric, 8, 1));
}

TEST(Lockstep, GroupsAcrossServersShareTheNetwork) {
  const Fabric fabric = test::catalogue_fabric(
      R"({"use": "hgx-h100+ib-ndr", "set": {"/servers": 4, "/network/routing": "spray"}})");
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter})
    expect_same(fabric, kind, groups_of(fabric, 4, 8));
}

TEST(Lockstep, APatternIsFoundOnce) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100");
  Routes routes(fabric);
  Workload workload;
  Lockstep lockstep(routes, workload, rings(fabric), false);
  const auto groups = groups_of(fabric, 4, 1);
  const auto first = lockstep.collective(CollectiveKind::all_gather, 1_MiB, groups);
  EXPECT_EQ(lockstep.collective(CollectiveKind::all_gather, 1_MiB, groups), first);
  EXPECT_NE(lockstep.collective(CollectiveKind::all_gather, 2_MiB, groups), first);
}

TEST(Lockstep, OneRankAloneAndNoBytesDoNothing) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100");
  EXPECT_EQ(run(fabric, CollectiveKind::all_reduce, 1_MiB, {groups_of(fabric, 1, 1)}).time.ps, 0);
  EXPECT_EQ(run(fabric, CollectiveKind::all_reduce, Bytes{0}, {groups_of(fabric, 8, 1)}).time.ps,
            0);
}

// A message goes one way; eight at once over one server's NVSwitches.
TEST(Lockstep, SendsGoOneWay) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100");
  Routes routes(fabric);
  Workload workload;
  Lockstep lockstep(routes, workload, rings(fabric), false);
  const auto gpus = fabric.gpus();
  const auto send = lockstep.sends(64_MiB, {{gpus[0], gpus[1]}, {gpus[2], gpus[3]}});
  const std::vector<Bandwidth> capacities = fabric.capacities();
  lockstep.fold(capacities, {});
  lockstep.append(send, workload.add_barrier(), 0);
  const auto network = make_network(Fidelity::fluid, capacities, {});
  Executor executor(workload, *network);
  executor.run({{.first_op = 0, .end_op = static_cast<std::uint32_t>(workload.operations.size())}},
               {});
  double out = 0, in = 0;
  for (const LinkId l : fabric.out_links(gpus[0])) {
    out += network->carried_bytes(lockstep.representative(l.v));
    in += network->carried_bytes(lockstep.representative(fabric.link(l).reverse.v));
  }
  EXPECT_NEAR(out, static_cast<double>((64_MiB).count), 8);
  EXPECT_EQ(in, 0);
}

}  // namespace
}  // namespace weft
