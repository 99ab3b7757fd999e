// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/communicator.hpp"

#include <map>
#include <memory>

#include "models/nccl/nccl.test.hpp"

namespace weft::nccl::testing {
namespace {

using enum CollectiveKind;

constexpr NcclVersion kRelease{2, 27, 7};

NcclSetup setup_of(std::string algorithm = {}, std::string protocol = {}) {
  NcclSetup out;
  out.version = kRelease;
  out.harness = NcclHarness::process_per_gpu;
  out.algorithm = std::move(algorithm);
  out.protocol = std::move(protocol);
  return out;
}

std::vector<NcclRow> predict(const Fabric& fabric, CollectiveKind kind,
                             const std::vector<Bytes>& sizes, const NcclSetup& setup = setup_of()) {
  return predict_nccl(fabric, gpus_of(fabric), kind, sizes, setup);
}

TEST(NcclCommunicator, ChannelsAndThreadsShrinkWithTheSize) {
  const Fabric fabric = servers("hgx-h100");
  for (const char* protocol : {"ll", "ll128", "simple"}) {
    const NcclCommunicator communicator(fabric, gpus_of(fabric), setup_of("ring", protocol));
    NcclPlan before{.channels = 0, .threads = 0};
    for (Bytes bytes = 8_B; bytes <= 1_GiB; bytes = bytes * 4) {
      const NcclPlan plan = communicator.plan(all_reduce, bytes);
      EXPECT_GE(plan.channels, before.channels) << to_text(bytes);
      EXPECT_GE(plan.threads, before.threads) << to_text(bytes);
      before = plan;
    }
    EXPECT_EQ(communicator.plan(all_reduce, 8_B).channels, 1U);
    EXPECT_EQ(before.channels, communicator.topology().connections.rings.size());
  }
}

// 16 channels x 8 heads: 64 KiB chunks below 64 rounds of 16 MiB, 32 KiB below 8, 16 KiB below 2 (src/enqueue.cc). A round is
// counted in chunks of the size before, so the limits are 1 GiB, 64 MiB and 8 MiB.
TEST(NcclCommunicator, ChunksOfTheSwitchShrinkWithTheSize) {
  const Fabric fabric = servers("hgx-h100");
  const NcclCommunicator communicator(fabric, gpus_of(fabric), setup_of("nvls"));
  ASSERT_EQ(communicator.topology().nvls_channels, 16U);
  const auto chunk = [&](Bytes bytes) { return communicator.plan(all_reduce, bytes).chunk; };
  EXPECT_EQ(chunk(1_GiB), 128_KiB);
  EXPECT_EQ(chunk({(1_GiB).count - 1}), 64_KiB);
  EXPECT_EQ(chunk(64_MiB), 64_KiB);
  EXPECT_EQ(chunk({(64_MiB).count - 1}), 32_KiB);
  EXPECT_EQ(chunk(8_MiB), 32_KiB);
  EXPECT_EQ(chunk({(8_MiB).count - 1}), 16_KiB);
}

// Bytes that leave and enter a rank, over all channels of a schedule.
std::map<std::uint32_t, std::array<double, 2>> moved(const Schedule& schedule) {
  std::map<std::uint32_t, std::array<double, 2>> out;
  for (const Phase& phase : schedule.phases) {
    for (const Channel& channel : phase.channels) {
      channel.for_each_edge([&](const Edge& edge) {
        out[edge.src][0] += edge.weight * channel.bytes.value();
        out[edge.dst][1] += edge.weight * channel.bytes.value();
      });
    }
  }
  return out;
}

TEST(NcclCommunicator, ARingMovesTwiceTheDataLessOnePart) {
  for (const auto& [name, count] : {std::pair{"hgx-h100", 1}, {"hgx-h100", 3}, {"dgx1-v100", 1}}) {
    const Fabric fabric = servers(name, count);
    const NcclCommunicator communicator(fabric, gpus_of(fabric), setup_of("ring", "simple"));
    const double n = static_cast<double>(fabric.gpus().size()), size = (1_GiB).value();
    for (const auto& [kind, steps] :
         {std::pair{all_reduce, 2 * (n - 1)}, {all_gather, n - 1}, {reduce_scatter, n - 1}}) {
      const NcclPlan plan = communicator.plan(kind, 1_GiB);
      const Schedule schedule = communicator.schedule(plan, kind, 1_GiB);
      double data = 0;
      for (const Channel& channel : schedule.phases.front().channels) {
        EXPECT_EQ(channel.edges.size(), fabric.gpus().size());
        data += channel.bytes.value();
      }
      EXPECT_NEAR(data / (size * steps / n), 1, 1e-6);
      // On the wire no less than that, and as much in as out.
      for (const auto& [rank, bytes] : moved(schedule)) {
        EXPECT_GE(bytes[0], data * (1 - 1e-9));
        EXPECT_LE(bytes[0], data / 0.8);
        EXPECT_GE(bytes[1], data * (1 - 1e-9));
      }
    }
  }
}

TEST(NcclCommunicator, AScheduleOfSendsOutlivesItsCommunicator) {
  const Fabric fabric = servers("hgx-h100", 2);
  auto communicator = std::make_unique<NcclCommunicator>(fabric, gpus_of(fabric), setup_of());
  const Schedule schedule =
      communicator->schedule(communicator->plan(all_to_all, 1_GiB), all_to_all, 1_GiB);
  const auto before = moved(schedule);
  communicator.reset();
  EXPECT_EQ(moved(schedule), before);
  EXPECT_EQ(before.size(), 16U);
  for (const auto& [rank, bytes] : before) EXPECT_GE(bytes[0], (1_GiB).value() * 15 / 16);
}

TEST(NcclCommunicator, GatherAndScatterHangOnTheRoot) {
  const Fabric fabric = servers("hgx-h100");
  const NcclCommunicator communicator(fabric, gpus_of(fabric), setup_of());
  const auto in = moved(communicator.schedule(communicator.plan(gather, 8_MiB), gather, 8_MiB, 3));
  const auto out =
      moved(communicator.schedule(communicator.plan(scatter, 8_MiB), scatter, 8_MiB, 3));
  EXPECT_EQ(in.at(3)[0], 0);
  EXPECT_GE(in.at(3)[1], 7.0 * 1024 * 1024);
  EXPECT_EQ(out.at(3)[1], 0);
  EXPECT_GE(out.at(3)[0], 7.0 * 1024 * 1024);
}

TEST(NcclPredict, TimeNeverFallsWithTheSizeOfOneChoiceAndDoublesWithLargeSizes) {
  for (const auto& [name, count] : {std::pair{"hgx-h100", 1}, {"hgx-h100", 2}, {"dgx-a100", 4}}) {
    const Fabric fabric = servers(name, count);
    for (const CollectiveKind kind : {all_reduce, all_gather, reduce_scatter, all_to_all}) {
      std::vector<Bytes> sizes;
      for (Bytes bytes = 1_KiB; bytes <= 8_GiB; bytes = bytes * 2) sizes.push_back(bytes);
      const auto rows = predict(fabric, kind, sizes);
      for (std::size_t i = 1; i < rows.size(); ++i) {
        const NcclRow &less = rows[i - 1], &more = rows[i];
        SCOPED_TRACE(fmt::format("{} x{} {}", name, count, to_text(more.bytes)));
        if (less.algorithm != more.algorithm || less.protocol != more.protocol) continue;
        if (less.channels == more.channels) {
          EXPECT_GE(more.time, less.time);
        }
        // At 1 GiB the switch's chunks double (less per byte); elsewhere a start of some per cent is left.
        if (less.bytes < 256_MiB) continue;
        const double ratio = more.time.seconds() / less.time.seconds();
        EXPECT_GT(ratio, less.bytes < 1_GiB ? 1.75 : 1.9);
        EXPECT_LT(ratio, 2.1);
      }
    }
  }
}

TEST(NcclPredict, AFasterFabricIsNeverSlower) {
  const Fabric fabric = servers("hgx-h100", 2);
  Fabric faster = fabric;
  faster.speed_up(Tier::access, LinkClass::infiniband, 2);
  for (const char* algorithm : {"ring", "tree", "nvls_tree"}) {
    for (const Bytes bytes : {8_B, 64_KiB, 4_MiB, 1_GiB}) {
      const NcclSetup setup = setup_of(algorithm, "simple");
      const Time slow = predict(fabric, all_reduce, {bytes}, setup).front().time;
      const Time fast = predict(faster, all_reduce, {bytes}, setup).front().time;
      EXPECT_LE(fast, slow) << algorithm << " " << to_text(bytes);
    }
  }
}

TEST(NcclPredict, OneGpuAndEmptyOperationsEnd) {
  const Fabric fabric = servers("hgx-h100");
  const std::vector<Bytes> sizes{{0}, 8_B};
  for (const NcclRow& row :
       predict_nccl(fabric, gpus_of(fabric, {0}), all_reduce, sizes, setup_of()))
    EXPECT_GE(row.time.ps, 0);
  EXPECT_GT(predict(fabric, all_reduce, {{0}}).front().time.ps, 0);
}

TEST(NcclPredict, WhatNcclDoesNotOfferIsRefused) {
  const Fabric fabric = servers("hgx-h100");
  EXPECT_THROW(predict(fabric, all_reduce, {1_MiB}, setup_of("pat")), InputError);
  EXPECT_THROW(predict(fabric, broadcast, {1_MiB}, setup_of("tree")), InputError);
  EXPECT_THROW(predict(fabric, all_reduce, {1_MiB}, setup_of("circle")), InputError);
}

}  // namespace
}  // namespace weft::nccl::testing
