// SPDX-License-Identifier: Apache-2.0
// Hand calculation against the builder, on one switch whose every hop is the same: two links of 400 Gb/s and 100 ns and a
// switch of 50 ns, so alpha = 250 ns and r = 0.05 B/ps.
#include "sim/run/collective_ops.hpp"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/run/executor.hpp"
#include "sim/workload/placement.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using ::testing::ElementsAre;

constexpr Time kAlpha = 250_ns;
constexpr Bandwidth kRate = 400_Gbps;

const Fabric& star() {
  static const Fabric fabric =
      test::fabric_from("gpu g[0-3] -- 400 Gb/s, 100 ns -- nvswitch s 50 ns");
  return fabric;
}

const AlgorithmEntry& algorithm(std::string_view name) {
  for (const AlgorithmEntry* entry : test::context().algorithms) {
    if (entry->name == name) return *entry;
  }
  throw std::invalid_argument(std::string(name));
}

// One collective over all GPUs of a fabric, built and run at fluid level.
struct Built {
  Routes routes;
  Workload workload;
  OpId first, last;
  Time time{0};

  Built(const Fabric& fabric, std::string_view name, CollectiveRequest request,
        CollectiveOptions options = {}, GroupShape shape = {})
      : routes(fabric) {
    if (shape.ranks == 1) {
      shape = group_shape(routes, fabric.gpus());
      shape.switch_reduces = name == "in_switch";
    }
    CollectiveBuilder builder(routes, workload);
    first = workload.add_barrier();
    last = builder.append(algorithm(name).build(request, shape), fabric.gpus(), options, first);
    const auto network = test::context().make_network(Fidelity::fluid, fabric.capacities(), {});
    Executor executor(workload, *network);
    executor.run({{.end_op = static_cast<std::uint32_t>(workload.operations.size())}}, {});
    time = executor.times(last).finished;
  }

  std::vector<OpId> flows() const {
    std::vector<OpId> out;
    for (std::uint32_t i = 0; i < workload.operations.size(); ++i) {
      if (workload.operations[OpId{i}].kind == Operation::Kind::flow) out.push_back(OpId{i});
    }
    return out;
  }
  // Bytes over each link.
  std::map<std::uint32_t, double> bytes() const {
    std::map<std::uint32_t, double> out;
    for (const OpId op : flows()) {
      const Operation& flow = workload.operations[op];
      for (const Share& share : workload.shares_of(flow.way))
        out[share.resource] += share.weight * flow.size.value();
    }
    return out;
  }
};

CollectiveRequest all_reduce(Bytes size, Bytes chunk = {}) {
  return {.size = size, .chunk = chunk};
}

void expect_time(Time is, Time expected) {
  EXPECT_NEAR(static_cast<double>(is.ps), static_cast<double>(expected.ps), 10);
}

// ---- coupled

TEST(CollectiveOps, AShortRingIsSerialHops) {
  // 2 (N - 1) hops of alpha and a quarter of the data each.
  const Built ring(star(), "ring", all_reduce(64_KiB));
  expect_time(ring.time, 6 * (kAlpha + transfer_time(16_KiB, kRate)));
  EXPECT_EQ(ring.flows().size(), 1U) << "coupled";
}

TEST(CollectiveOps, ALongRingMovesNChunksARotation) {
  // 2 (N-1)/N of 64 MiB cross a hop, in chunks of 256 KiB that each take alpha + c / r; all hops move at once.
  const Built ring(star(), "ring", all_reduce(64_MiB, 256_KiB));
  expect_time(ring.time, 6 * 64 * (kAlpha + transfer_time(256_KiB, kRate)));
}

TEST(CollectiveOps, ARingUsesEveryLinkOfItsOrderOnce) {
  const Built ring(star(), "ring", all_reduce(64_MiB));
  for (const auto& [resource, bytes] : ring.bytes())
    EXPECT_EQ(bytes, 96.0 * (1 << 20)) << star().resource_name(resource);
  EXPECT_EQ(ring.bytes().size(), 8U);
}

TEST(CollectiveOps, RingsSideBySideHideEachOthersLatency) {
  CollectiveRequest request = all_reduce(64_MiB);
  request.channels = 8;
  const Built rings(star(), "ring", request);
  // 96 MiB over the link; at most a few roundings of the parts more.
  const Time wire = transfer_time(96_MiB, kRate);
  EXPECT_GE(rings.time, wire);
  EXPECT_LE(rings.time, wire + 10_ns);
}

TEST(CollectiveOps, AllGatherAndReduceScatterAreHalfAnAllReduce) {
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    const Built half(star(), "ring", {.kind = kind, .size = 64_KiB});
    expect_time(half.time, 3 * (kAlpha + transfer_time(16_KiB, kRate)));
  }
}

TEST(CollectiveOps, AChainFillsThenStreams) {
  // 3 hops of alpha, 2 pieces before the last hop starts, then all the data.
  const Built chain(star(), "ring",
                    {.kind = CollectiveKind::broadcast, .size = 4_MiB, .chunk = 256_KiB});
  expect_time(chain.time,
              3 * kAlpha + 2 * transfer_time(256_KiB, kRate) + transfer_time(4_MiB, kRate));
}

TEST(CollectiveOps, ATreeFillsItsDepthBothWays) {
  // Four ranks: depth 2. Both trees have 3 edges both ways, half the data each: a rank's link carries at most 2 x half of it.
  const Built tree(star(), "double_binary_tree", all_reduce(4_MiB, 64_KiB));
  double most = 0;
  for (const auto& [resource, bytes] : tree.bytes()) most = std::max(most, bytes);
  ASSERT_EQ(tree.flows().size(), 2U);
  const Time fill = 4 * kAlpha + 3 * transfer_time(64_KiB, kRate);
  // Both trees load the busiest links alike; each gets its share until both are done.
  EXPECT_GE(tree.time, fill + transfer_time({static_cast<std::int64_t>(most)}, kRate));
  EXPECT_LE(tree.time, fill + transfer_time({static_cast<std::int64_t>(most * 1.34)}, kRate));
}

TEST(CollectiveOps, DirectIsOneHopPerPair) {
  const Built direct(star(), "direct", {.kind = CollectiveKind::all_to_all, .size = 16_MiB});
  // Each GPU sends three quarters.
  expect_time(direct.time, kAlpha + transfer_time(12_MiB, kRate));
  EXPECT_EQ(direct.flows().size(), 12U);
  const Built twice(star(), "direct", all_reduce(16_MiB));
  expect_time(twice.time, 2 * (kAlpha + transfer_time(12_MiB, kRate)));
  const Built gather(star(), "direct", {.kind = CollectiveKind::gather, .size = 16_MiB, .root = 2});
  expect_time(gather.time, kAlpha + transfer_time(12_MiB, kRate));
  const Built broadcast(star(), "direct", {.kind = CollectiveKind::broadcast, .size = 16_MiB});
  expect_time(broadcast.time, kAlpha + transfer_time(48_MiB, kRate));
}

TEST(CollectiveOps, InSwitchMovesOneAndAPartOfTheData) {
  // S (1 + 1/n) each way; four half paths: two ups of 150 ns and two downs of 100 ns at the slower 150.
  const Built nvls(star(), "in_switch", all_reduce(16_MiB));
  expect_time(nvls.time, 4 * 150_ns + transfer_time(20_MiB, kRate));
}

TEST(CollectiveOps, SoftwareCostsAddToHopsAndStarts) {
  CollectiveOptions options;
  options.costs = {.launch = 5_us, .step = 1_us, .network_step = 7_us};
  const Built ring(star(), "ring", all_reduce(64_KiB), options);
  expect_time(ring.time, 5_us + 6 * (kAlpha + 1_us + transfer_time(16_KiB, kRate)));
  const Fabric cluster = test::fabric_from(
      "gpu g -- 400 Gb/s, 0 ns -- nic n",
      {.servers = 4, .network = test::single_switch(), .nic = "400 Gb/s, 125 ns"});
  const Built across(cluster, "ring", all_reduce(64_KiB), options);
  expect_time(across.time, 5_us + 6 * (kAlpha + 7_us + transfer_time(16_KiB, kRate)));
}

TEST(CollectiveOps, UnequalHopsAddUpInARotation) {
  // Two servers of two GPUs: two hops inside, two across. One rotation of a short ring is the sum of all four.
  const Fabric fabric = test::fabric_from(
      "gpu a -- 400 Gb/s, 100 ns -- gpu b; a -- 100 Gb/s, 0 ns -- nic n; b -- 100 Gb/s, 0 ns -- "
      "nic m",
      {.servers = 2, .network = test::single_switch()});
  const Built ring(fabric, "ring", all_reduce(64_KiB));
  const Time inside = 100_ns + transfer_time(16_KiB, 400_Gbps),
             across = 1_us + transfer_time(16_KiB, 100_Gbps);
  // 6 steps of 4 chunks make 6 / 4 rotations.
  EXPECT_NEAR(ring.time.us(), 1.5 * (2 * inside + 2 * across).us(), 1e-3);
}

TEST(CollectiveOps, AGroupOfOneCostsItsLaunch) {
  const Fabric fabric = test::fabric_from("gpu a -- 400 Gb/s, 100 ns -- gpu b");
  Routes routes(fabric);
  Workload workload;
  CollectiveBuilder builder(routes, workload);
  const OpId first = workload.add_barrier();
  GroupShape shape;
  const auto alone = fabric.gpus().subspan(0, 1);
  const Schedule schedule = algorithm("ring").build(all_reduce(1_MiB), shape);
  EXPECT_EQ(builder.append(schedule, alone, {}, first), first);
  CollectiveOptions options;
  options.costs.launch = 3_us;
  const OpId launch = builder.append(schedule, alone, options, first);
  EXPECT_EQ(workload.operations[launch].time, 3_us);
}

TEST(CollectiveOps, NothingMovesInAnEmptyCollective) {
  for (const bool expand : {false, true}) {
    CollectiveOptions options;
    options.expand = expand;
    for (const char* name : {"ring", "double_binary_tree", "direct", "halving_doubling"}) {
      const Built none(star(), name, all_reduce(0_B), options);
      EXPECT_LT(none.time, 20 * kAlpha) << name;
      for (const auto& [resource, bytes] : none.bytes()) EXPECT_EQ(bytes, 0) << name;
    }
  }
}

TEST(CollectiveOps, RanksThatCannotReachEachOtherAreAnInputError) {
  const Fabric fabric =
      test::fabric_from("gpu a -- 400 Gb/s, 100 ns -- gpu b; b -- 400 Gb/s, 100 ns -- gpu c");
  for (const bool expand : {false, true}) {
    CollectiveOptions options;
    options.expand = expand;
    EXPECT_THROW(
        Built(fabric, "direct", {.kind = CollectiveKind::all_to_all, .size = 1_MiB}, options),
        InputError);
  }
}

// One pair has one pipeline through host memory: what four channels move over it takes as long as what one does.
TEST(CollectiveOps, PacedChannelsShareThePipelineOfAStagedPair) {
  const Fabric fabric = test::fabric_from(
      "gpu a -- 400 Gb/s, 100 ns -- cpu c; gpu b -- 400 Gb/s, 100 ns -- c; c -- 400 Gb/s, 0 ns -- "
      "dram d",
      {.server = R"("peer_access": {"pcie": "none"}, "staging": {"rate": "20 Gb/s"})"});
  const auto time_of = [&](std::size_t count) {
    Routes routes(fabric);
    Workload workload;
    CollectiveBuilder builder(routes, workload);
    Schedule schedule;
    schedule.ranks = 2;
    for (std::vector<Channel>& channels = schedule.phases.emplace_back().channels;
         channels.size() < count;) {
      Channel& channel = channels.emplace_back();
      channel.form = Channel::Form::paced;
      channel.bytes = Bytes{Bytes{64_MiB}.count / static_cast<std::int64_t>(count)};
      channel.edges = {{.src = 0, .dst = 1}};
    }
    const OpId last = builder.append(schedule, fabric.gpus(), {}, workload.add_barrier());
    const auto network = test::context().make_network(Fidelity::fluid, fabric.capacities(), {});
    Executor executor(workload, *network);
    executor.run({{.end_op = static_cast<std::uint32_t>(workload.operations.size())}}, {});
    return executor.times(last).finished;
  };
  expect_time(time_of(1), transfer_time(64_MiB, 20_Gbps));
  expect_time(time_of(4), time_of(1));
}

TEST(CollectiveOps, TheLabelReachesEveryFlow) {
  for (const bool expand : {false, true}) {
    CollectiveOptions options;
    options.label = 0;
    options.expand = expand;
    const Built ring(star(), "ring", all_reduce(1_MiB), options);
    for (const OpId op : ring.flows()) EXPECT_EQ(ring.workload.operations[op].label, 0U);
  }
}

// ---- expanded

CollectiveOptions expanded() {
  CollectiveOptions options;
  options.expand = true;
  return options;
}

TEST(CollectiveOps, AnExpandedRingIsItsStepsOneAfterTheOther) {
  const Built ring(star(), "ring", all_reduce(16_MiB), expanded());
  EXPECT_EQ(ring.flows().size(), 2U * 3 * 4);
  expect_time(ring.time, 6 * (kAlpha + transfer_time(4_MiB, kRate)));
}

TEST(CollectiveOps, ATransferWaitsForTheDataItForwardsAndForTheSendsBefore) {
  const Built ring(star(), "ring", all_reduce(16_MiB), expanded());
  std::map<OpId, std::set<OpId>> before;
  const Workload& w = ring.workload;
  for (std::uint32_t i = 0; i < w.operations.size(); ++i) {
    for (std::uint32_t e = w.operations[OpId{i}].first_edge; e != Operation::kNoEdge;
         e = w.edges[e].next) {
      before[OpId{w.edges[e].to}].insert(OpId{i});
    }
  }
  const auto flows = ring.flows();
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const std::size_t round = f / 4, rank = f % 4;
    if (round == 0) {
      EXPECT_EQ(before[flows[f]], std::set<OpId>{ring.first});
      continue;
    }
    // The flow that ended at this rank a round ago, and this rank's own flow of that round.
    const OpId received = flows[(round - 1) * 4 + (rank + 3) % 4],
               sent = flows[(round - 1) * 4 + rank];
    EXPECT_TRUE(before[flows[f]].contains(sent)) << f;
    bool waits = before[flows[f]].contains(received);
    for (const OpId gate : before[flows[f]])
      waits = waits || before[gate].contains(received);  // through a barrier of writes
    EXPECT_TRUE(waits) << f;
  }
}

TEST(CollectiveOps, RoundsOfHalvingDoublingFollowEachOther) {
  // Halves, quarters, back: 2 rounds down of S/2 and S/4, 2 up.
  const Built hd(star(), "halving_doubling", all_reduce(16_MiB), expanded());
  expect_time(hd.time,
              4 * kAlpha + 2 * (transfer_time(8_MiB, kRate) + transfer_time(4_MiB, kRate)));
}

TEST(CollectiveOps, PairwiseRoundsWaitForTheSendBefore) {
  const Built pairwise(star(), "pairwise", {.kind = CollectiveKind::all_to_all, .size = 16_MiB});
  expect_time(pairwise.time, 3 * (kAlpha + transfer_time(4_MiB, kRate)));
}

TEST(CollectiveOps, ATransferOfManyUnitsWaitsForAllOfThem) {
  // Binomial scatter and Bruck move runs of units that came in several transfers.
  const Built bruck(star(), "bruck", {.kind = CollectiveKind::all_gather, .size = 16_MiB});
  // 1, 2 and one more piece of a quarter: log2(4) = 2 rounds of 1 and 2 pieces.
  expect_time(bruck.time, 2 * kAlpha + transfer_time(4_MiB, kRate) + transfer_time(8_MiB, kRate));
}

TEST(CollectiveOps, CoupledAndExpandedMoveTheSameBytesOverEveryLink) {
  // 64 GPUs behind sprayed NICs: enough pairs for the merged form of a direct channel.
  for (const char* reference :
       {R"({"use": "hgx-h100+ib-ndr", "set": {"/servers": 8}})", "dgx2", "dgx1-v100"}) {
    const Fabric fabric = test::catalogue_fabric(reference);
    CollectiveOptions options;
    options.routing = fabric.routing();
    CollectiveOptions steps = options;
    steps.expand = true;
    for (const auto& [name, kind] : {std::pair{"direct", CollectiveKind::all_to_all},
                                     std::pair{"ring", CollectiveKind::all_reduce}}) {
      const Bytes size = 64_MiB;
      const auto coupled = Built(fabric, name, {.kind = kind, .size = size}, options).bytes();
      const auto expanded = Built(fabric, name, {.kind = kind, .size = size}, steps).bytes();
      ASSERT_EQ(coupled.size(), expanded.size()) << reference << " " << name;
      for (const auto& [resource, bytes] : expanded) {
        EXPECT_NEAR(coupled.at(resource), bytes, 1e-6 * bytes + 64)
            << reference << " " << name << " " << fabric.resource_name(resource);
      }
    }
  }
}

}  // namespace
}  // namespace weft
