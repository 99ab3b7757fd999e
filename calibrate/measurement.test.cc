// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measurement.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace weft {
namespace {

Measurement small() {
  Measurement m = new_measurement("one", "nccl-tests", "node.log");
  MeasuredRun run;
  run.collective = "all_reduce";
  run.ranks = 8;
  CollectiveSample sample;
  sample.bytes = 1_GiB;
  sample.time = time_from_us(4027.3);
  sample.algbw = *bandwidth_from_gbytes(266.61);
  sample.busbw = *bandwidth_from_gbytes(466.57);
  sample.wrong = 0;
  run.samples.push_back(sample);
  m.runs.push_back(run);
  return m;
}

TEST(Measurement, IsReadBackAsItWasWritten) {
  const std::string text = to_text(write_measurement(small()));
  Diagnostics out;
  const Measurement again = read_measurement(parse_json(text, "m.json", out), out);
  ASSERT_TRUE(out.ok()) << out.text();
  EXPECT_EQ(to_text(write_measurement(again)), text);
  EXPECT_EQ(again.runs[0].samples[0].time->ps, 4'027'300'000);
  EXPECT_EQ(again.runs[0].samples[0].busbw.bps, 3'732'560'000'000);
  EXPECT_EQ(again.sources.at(""), "measured: nccl-tests, read from node.log");
}

// One of everything that the probe writes.
Measurement probed() {
  Measurement m = new_measurement("box", "weft-probe", "this machine");
  m.date = "2025-01-31T12:00:00Z";
  MeasuredHost host;
  host.host = "node";
  host.paths["gpu0-gpu1"] = "NV18";
  host.topology = "<system version=\"1\">\n</system>";
  host.gpus.push_back({.device = 0, .product = "H100", .sms = 132, .memory = 80_GiB});
  host.nics.push_back({.name = "mlx5_0", .rate = 400_Gbps});
  m.hosts.push_back(host);
  SampleRepeats repeated{.spread = 4_us, .fastest = 2500_us, .slowest = 2900_us, .repeats = 20};
  repeated.outliers = {2900_us};
  repeated.clock = Frequency{1.98e9};
  m.copies.push_back({.from = "gpu0",
                      .to = "gpu1",
                      .bytes = 64_MiB,
                      .method = CopyMethod::pageable,
                      .peer_access = true,
                      .time = 2510_us,
                      .repeated = repeated,
                      .together = 3,
                      .pattern = "both-ways"});
  m.latencies.push_back({.from = "gpu0",
                         .to = "gpu1",
                         .method = PingMethod::copy,
                         .bytes = 4_B,
                         .time = 900_ns,
                         .repeated = repeated});
  m.kernels.push_back({.gpu = "gpu0",
                       .type = "bf16",
                       .test = KernelTest::matmul,
                       .m = 8192,
                       .n = 8192,
                       .k = 4096,
                       .time = 900_us,
                       .repeated = repeated});
  m.overlaps.push_back({.gpu = "gpu0",
                        .type = "bf16",
                        .collective = "all_reduce",
                        .m = 8192,
                        .n = 8192,
                        .k = 4096,
                        .ranks = 2,
                        .bytes = 64_MiB,
                        .kernel_alone = 900_us,
                        .collective_alone = 400_us,
                        .kernel = 950_us,
                        .collective_time = 500_us,
                        .repeated = repeated});
  MeasuredRun run = small().runs[0];
  run.algorithm = "ring";
  run.protocol = "simple";
  run.gpus = {"gpu0", "gpu1"};
  run.samples[0].repeated = repeated;
  m.runs.push_back(run);
  m.tests.push_back({"copy gpu0 gpu1 64 MiB", "out of memory", TestState::failed});
  return m;
}

TEST(Measurement, WhatTheProbeWritesIsReadBack) {
  const std::string text = to_text(write_measurement(probed()));
  Diagnostics out;
  const Measurement again = read_measurement(parse_json(text, "m.json", out), out);
  ASSERT_TRUE(out.ok()) << out.text();
  EXPECT_EQ(to_text(write_measurement(again)), text);
  EXPECT_EQ(again.copies[0].repeated.outliers, std::vector<Time>{2900_us});
  EXPECT_EQ(again.copies[0].together, 3);
  EXPECT_EQ(again.runs[0].samples[0].repeated.spread, 4_us);
  EXPECT_EQ(again.hosts[0].gpus[0].memory, 80_GiB);
  EXPECT_EQ(again.tests[0].state, TestState::failed);
}

TEST(Measurement, RunThatHasJustBegunCanBeRead) {
  Measurement m = new_measurement("box", "weft-probe", "this machine");
  m.hosts.emplace_back();
  Diagnostics out;
  read_measurement(parse_json(to_text(write_measurement(m)), "m.json", out), out);
  EXPECT_TRUE(out.ok()) << out.text();
}

TEST(Measurement, SampleWithoutTimeOrEndsIsRefused) {
  const std::string text = to_text(write_measurement(probed()));
  for (const char* key : {"\"from\"", "\"to\"", "\"time\"", "\"kernel_alone\"", "\"gpu\""}) {
    std::string changed = text;
    changed.insert(changed.find(key, changed.find("\"copies\"")) + 1, "x");
    Diagnostics out;
    read_measurement(parse_json(changed, "m.json", out), out);
    EXPECT_FALSE(out.ok()) << key;
  }
}

TEST(Measurement, OtherKindsAndEmptyOnesAreRefused) {
  for (const char* text :
       {R"({"weft": {"schema": 1}, "kind": "server", "name": "x"})", R"({"kind": 3})", "[]", "{}",
        R"({"weft": {"schema": 1}, "kind": "measurement", "tool": "nccl-tests"})",
        R"({"weft": {"schema": 1}, "kind": "measurement", "tool": "nccl-tests", "runs": []})",
        R"({"weft": {"schema": 1}, "kind": "measurement", "runs": [{"samples": []}]})"}) {
    Diagnostics out;
    read_measurement(parse_json(text, "m.json", out), out);
    EXPECT_FALSE(out.ok()) << text;
  }
}

TEST(Measurement, NegativeAndUnitlessValuesAreRefused) {
  const std::string text = to_text(write_measurement(small()));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    Diagnostics out;
    read_measurement(parse_json(changed, "m.json", out), out);
    return out.ok();
  };
  EXPECT_TRUE(with("4027300000 ps", "4027300001 ps"));
  EXPECT_FALSE(with("\"4027300000 ps\"", "4027"));
  EXPECT_FALSE(with("4027300000 ps", "-4027300000 ps"));
  EXPECT_FALSE(with("\"wrong\": 0", "\"wrong\": -1"));
  EXPECT_FALSE(with("\"busbw\"", "\"busbv\""));
}

TEST(Measurement, QuantitiesOfPrintedNumbersAreExact) {
  EXPECT_EQ(time_from_us(18.46)->ps, 18'460'000);
  EXPECT_EQ(bandwidth_from_gbytes(0.08)->bps, 640'000'000);
  EXPECT_EQ(us_of(*time_from_us(1.79)), 1.79);
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e300}) {
    EXPECT_FALSE(time_from_us(bad));
    EXPECT_FALSE(bandwidth_from_gbytes(bad));
  }
}

}  // namespace
}  // namespace weft
