// SPDX-License-Identifier: Apache-2.0
// Offloaded optimizers and checkpoints cross the links between GPUs and host memory as those are in the run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/llm/estimated.test.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using test::number;

// 16 layers of 2048 x (2 x 2048 + 2 x 1024) + 3 x 2048 x 5632, their norms, embedding and output, the last norm.
constexpr double kParameters =
    16 * (2048 * (2 * 2048 + 2 * 1024.0) + 3 * 2048 * 5632.0 + 2 * 2048) + 2 * 32000 * 2048.0 +
    2048;
constexpr const char* kModel =
    R"({"weft": {"schema": 1}, "kind": "llm", "name": "small", "layers": 16, "hidden": 2048, "heads": 16, "kv_heads": 8,
        "vocabulary": 32000, "intermediate": 5632})";
constexpr const char* kSlowPath =
    R"(, "faults": [{"target": "server1/plx2:server1/cpu0", "do": "degrade", "factor": 0.1}])";
constexpr const char* kSlowMemory =
    R"(, "faults": [{"target": "server1/dram0:server1/cpu0", "do": "degrade", "factor": 0.1}])";

std::string scenario(const std::string& plan, const std::string& job = {},
                     const std::string& more = {}) {
  return fmt::format(
      R"({{"fabric": {{"use": "hgx-h100+ib-ndr", "set": {{"/servers": 2}}}},
           "jobs": [{{"name": "t", "kind": "training", "gpus": 16, "model": {}, "seq": 2048, "global_batch": 64,
                      "plan": {}{}}}]{}}})",
      kModel, plan, job, more);
}
Report train(const std::string& plan, const std::string& job = {}, const std::string& more = {}) {
  return test::run(scenario(plan, job, more));
}

struct Rates {
  double link = 0, memory = 0;  // of a GPU, bytes per second
};
Rates rates() {
  const Fabric fabric = test::catalogue_fabric("hgx-h100");
  const auto rate = [&](const char* name) {
    return fabric.link(test::link(fabric, name)).rate.bytes_per_s();
  };
  return {rate("gpu0:plx0"), rate("dram0:cpu0") / 4};
}

// 6 bytes per parameter over the link, 34 read and written in the host, one after the other; nothing of it is computing.
TEST(Offload, TakesTheTimeOfItsBytes) {
  const char* plan = R"({"zero": 1, "offload": true, "overlap": {"grad_reduce": false}})";
  const Report host = train(plan);
  const double own = kParameters / 16;
  EXPECT_NEAR(number(host, "comm_bytes", "host"), 6 * own, 16);
  const double wanted = 6 * own / rates().link + 34 * own / rates().memory;
  EXPECT_NEAR(number(host, "exposed_comm_s", "host") / wanted, 1, 0.01);
  const Report gpu = train(R"({"zero": 1, "overlap": {"grad_reduce": false}})");
  EXPECT_LT(number(host, "compute_s"), number(gpu, "compute_s"));
  EXPECT_EQ(number(gpu, "exposed_comm_s", "host"), 0);
}

TEST(Offload, GradientsLeaveBesideTheBackwardPass) {
  const Report behind = train(R"({"zero": 1, "offload": true, "overlap": {"grad_reduce": false}})");
  const Report beside = train(R"({"zero": 1, "offload": true})");
  EXPECT_NEAR(number(behind, "comm_bytes", "host"), number(beside, "comm_bytes", "host"), 64);
  const double hidden =
      number(behind, "exposed_comm_s", "host") - number(beside, "exposed_comm_s", "host");
  const double down = 4 * kParameters / 16 / rates().link;
  EXPECT_GT(hidden, 0.6 * down);
  EXPECT_LT(hidden, down);
}

TEST(Offload, AFaultOnTheWayToOneHostHoldsAllUp) {
  const char* plan = R"({"zero": 1, "offload": true, "overlap": {"grad_reduce": false}})";
  const Report sound = train(plan), slow = train(plan, "", kSlowPath),
               memory = train(plan, "", kSlowMemory);
  const double own = kParameters / 16;
  const auto lost = [&](const Report& report) { return report.time_s - sound.time_s; };
  EXPECT_NEAR(lost(slow) / (9 * 6 * own / rates().link), 1, 0.02);
  // Copies there and back stay faster than a tenth of the memory only as long as four GPUs do not share it.
  EXPECT_GT(lost(memory), 0.98 * 9 * 34 * own / rates().memory);
  EXPECT_NEAR(number(slow, "compute_s"), number(sound, "compute_s"), 1e-9);
}

TEST(Offload, OfAdaptersMovesTheirStateAlone) {
  const double adapters = 16 * 8 * (2048 + 4096 + 2048 + 2048 + 2048 + 3 * 5632 + 2048.0);
  const Report report = train(R"({"zero": 1, "offload": true})", R"(, "lora_rank": 8)");
  EXPECT_NEAR(number(report, "comm_bytes", "host"), 6 * adapters / 16, 64);
}

TEST(Offload, SearchesAndSimulatedStepsAgree) {
  for (const char* plan : {R"({"zero": 1, "offload": true})", R"({"fsdp": {}, "offload": true})",
                           R"({"zero": 1, "offload": true, "overlap": {"grad_reduce": false}})",
                           R"({"tp": 2, "sp": true, "pp": 2, "zero": 1, "offload": true})"}) {
    const std::string text = scenario(plan);
    EXPECT_NEAR(test::estimated_step_s(text) / test::run(text).time_s, 1, 0.05) << plan;
  }
}

TEST(Checkpoint, CrossesTheLinksToTheHost) {
  const auto written = [](const char* target, const std::string& faults = {}) {
    return number(train(R"({"zero": 1})", fmt::format(R"(, "checkpoint": {})", target), faults),
                  "checkpoint", "s_per_step");
  };
  const double own = 14 * kParameters / 16;
  const char* host = R"({"every_steps": 2})";
  EXPECT_NEAR(written(host) / (own / rates().link / 2), 1, 0.01);
  EXPECT_NEAR(written(host, kSlowPath) / (own / (0.1 * rates().link) / 2), 1, 0.01);
  // Storage that is faster than the slow way waits for it, and sets the pace where it is slower.
  const char* storage = R"({"every_steps": 2, "target": "storage", "rate": "400 GB/s"})";
  EXPECT_NEAR(written(storage) / (own * 16 / 400e9 / 2), 1, 0.01);
  EXPECT_NEAR(written(storage, kSlowPath) / (own / (0.1 * rates().link) / 2), 1, 0.01);
}

}  // namespace
}  // namespace weft
