// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measurement_merge.hpp"

#include <gtest/gtest.h>

#include "calibrate/measurement_inspect.hpp"

namespace weft {
namespace {

MeasuredHost host_of(int gpus, const std::string& product = "H100") {
  MeasuredHost host;
  host.host = "node17";
  host.driver = "550.54";
  host.topology = R"(<system host_hash="0xabc"><gpu dev="0"/><net guid="0x5"/></system>)";
  for (int i = 0; i < gpus; ++i)
    host.gpus.push_back({.device = i, .product = product, .uuid = "GPU-" + std::to_string(i)});
  return host;
}

CopySample copy_of(std::string from, std::string to, Time time, int together = 0) {
  return {.from = std::move(from),
          .to = std::move(to),
          .bytes = 64_MiB,
          .time = time,
          .together = together,
          .pattern = together == 0 ? "" : "both-ways"};
}

Measurement part(std::vector<CopySample> copies) {
  Measurement m = new_measurement("part", "weft-probe", "a machine");
  m.hosts.push_back(host_of(2));
  m.copies = std::move(copies);
  return m;
}

MeasuredRun run_of(std::vector<std::pair<Bytes, Time>> rows, int ranks = 8) {
  MeasuredRun run;
  run.collective = "all_reduce";
  run.ranks = ranks;
  for (const auto& [bytes, time] : rows) {
    CollectiveSample& sample = run.samples.emplace_back();
    sample.bytes = bytes;
    sample.time = time;
    sample.algbw = rate_over(bytes, time);
    sample.busbw = sample.algbw;
  }
  return run;
}

Measurement merged(const std::vector<Measurement>& parts) {
  Diagnostics out;
  Measurement all = merge_measurements(parts, "all", out);
  EXPECT_TRUE(out.ok()) << out.text();
  return all;
}

TEST(MeasurementMerge, UnionKeepsTheSameSampleOnce) {
  const Measurement a = part({copy_of("gpu0", "gpu1", 500_us), copy_of("gpu1", "gpu0", 510_us)});
  const Measurement b = part({copy_of("gpu1", "gpu0", 510_us), copy_of("cpu0", "gpu0", 900_us)});
  const Measurement all = merged({a, b});
  ASSERT_EQ(all.copies.size(), 3U);
  EXPECT_EQ(all.copies[2].from, "cpu0");
  EXPECT_EQ(all.hosts.size(), 1U);
  EXPECT_EQ(all.name, "all");
  EXPECT_EQ(to_text(write_measurement(merged({all, a, b}))), to_text(write_measurement(all)));
}

TEST(MeasurementMerge, AnotherNumberForTheSameThingIsKeptBesideTheFirst) {
  const Measurement all =
      merged({part({copy_of("gpu0", "gpu1", 500_us)}), part({copy_of("gpu0", "gpu1", 501_us)})});
  EXPECT_EQ(all.copies.size(), 2U);
}

TEST(MeasurementMerge, GroupsStayTogetherAndGetNumbersOfTheirOwn) {
  const auto pair = [](Time one, Time other, int number) {
    return std::vector{copy_of("gpu0", "gpu1", one, number),
                       copy_of("gpu1", "gpu0", other, number)};
  };
  const Measurement a = part(pair(500_us, 510_us, 1)), b = part(pair(600_us, 610_us, 1));
  const Measurement all = merged({a, b, part(pair(500_us, 510_us, 7))});
  ASSERT_EQ(all.copies.size(), 4U);
  EXPECT_EQ(all.copies[0].together, all.copies[1].together);
  EXPECT_EQ(all.copies[2].together, all.copies[3].together);
  EXPECT_NE(all.copies[0].together, all.copies[2].together);
}

TEST(MeasurementMerge, OrderIsKept) {
  const Measurement a =
      part({copy_of("gpu0", "gpu1", 500_us, 1), copy_of("gpu1", "gpu0", 510_us, 1),
            copy_of("cpu0", "gpu0", 900_us), copy_of("gpu0", "gpu1", 600_us, 2),
            copy_of("cpu0", "gpu1", 910_us), copy_of("gpu1", "gpu0", 610_us, 2)});
  const Measurement all = merged({a, a});
  ASSERT_EQ(all.copies.size(), 6U);
  EXPECT_EQ(all.copies[0].together, 1);
  EXPECT_EQ(all.copies[2].from, "cpu0");
  EXPECT_EQ(all.copies[3].together, 2);
  EXPECT_EQ(all.copies[4].together, 2);
  EXPECT_EQ(all.copies[5].to, "gpu1");
}

TEST(MeasurementMerge, SizesJoinTheRunOfTheSameHeaderAndRepeatsDoNot) {
  Measurement a = part({}), b = part({}), c = part({});
  a.runs = {run_of({{1_MiB, 50_us}, {2_MiB, 70_us}})};
  b.runs = {run_of({{2_MiB, 70_us}, {4_MiB, 100_us}})};
  c.runs = {run_of({{2_MiB, 90_us}}), run_of({{2_MiB, 70_us}}, 4)};
  const Measurement all = merged({a, b, c});
  ASSERT_EQ(all.runs.size(), 3U);
  EXPECT_EQ(all.runs[0].samples.size(), 3U);
  EXPECT_EQ(all.runs[1].samples.size(), 1U);
  EXPECT_EQ(all.runs[2].ranks, 4);
}

TEST(MeasurementMerge, OtherMachineIsRefusedAndOtherVersionsWarned) {
  Measurement a = part({copy_of("gpu0", "gpu1", 500_us)}), b = a, c = a, d = a;
  b.hosts = {host_of(2, "A100")};
  c.hosts = {host_of(4)};
  d.hosts[0].driver = "560.1";
  for (const Measurement& other : {b, c}) {
    Diagnostics out;
    merge_measurements(std::vector{a, other}, "all", out);
    EXPECT_FALSE(out.ok());
    EXPECT_NE(out.text().find("another machine"), std::string::npos);
  }
  Diagnostics out;
  merge_measurements(std::vector{a, d}, "all", out);
  EXPECT_TRUE(out.ok());
  EXPECT_EQ(out.problems().size(), 1U);
}

TEST(MeasurementMerge, DoneTestReplacesOneThatFailed) {
  Measurement a = part({}), b = part({});
  a.tests = {{"copy x", "timed out", TestState::failed}, {"copy y", "", TestState::done}};
  b.tests = {{"copy x", "", TestState::done}, {"copy y", "busy", TestState::failed}};
  const Measurement all = merged({a, b});
  ASSERT_EQ(all.tests.size(), 2U);
  EXPECT_EQ(all.tests[0].state, TestState::done);
  EXPECT_EQ(all.tests[1].state, TestState::done);
}

TEST(MeasurementMerge, ToolsAndSourcesAreListed) {
  Measurement a = part({}), b = new_measurement("log", "nccl-tests", "node.log");
  a.runs = {run_of({{1_MiB, 50_us}})};
  b.runs = {run_of({{2_MiB, 60_us}})};
  const Measurement all = merged({a, b});
  EXPECT_EQ(all.tool, "weft-probe, nccl-tests");
  EXPECT_EQ(all.sources.at(""),
            "measured: weft-probe, read from a machine; nccl-tests, read from node.log");
}

TEST(MeasurementMerge, AnonymousFileTellsNoNames) {
  Measurement m = part({copy_of("gpu0", "gpu1", 500_us)});
  m.setup["command"] = "mpirun -H node17 all_reduce_perf";
  m.devices.push_back({.rank = 0, .device = 0, .host = "node17"});
  m.devices.push_back({.rank = 1, .device = 0, .host = "node18"});
  m.problems = {"node17 was slow"};
  m.tests = {{"copy x", "node17 did not answer", TestState::failed}};
  const std::size_t numbers = m.copies.size();
  anonymise(m);
  const std::string text = to_text(write_measurement(m));
  for (const char* word : {"node17", "node18", "GPU-0", "0xabc", "0x5"})
    EXPECT_EQ(text.find(word), std::string::npos) << word;
  EXPECT_EQ(m.devices[0].host, m.hosts[0].host);
  EXPECT_NE(m.devices[1].host, m.hosts[0].host);
  EXPECT_EQ(m.copies.size(), numbers);
  EXPECT_EQ(m.anonymised, true);
  EXPECT_EQ(m.hosts[0].gpus[0].product, "H100");
  Measurement again = m;
  anonymise(again);
  EXPECT_EQ(to_text(write_measurement(again)), text);
}

bool has(const std::vector<MeasurementContents::Line>& lines, const std::string& what,
         const std::string& detail) {
  for (const auto& line : lines) {
    if (line.what == what && line.detail.find(detail) != std::string::npos) return true;
  }
  return false;
}

TEST(MeasurementInspect, SaysWhatIsThereAndWhatIsMissing) {
  Measurement m = part({copy_of("gpu0", "gpu1", 500_us), copy_of("cpu0", "gpu0", 900_us)});
  m.runs = {run_of({{1_MiB, 50_us}, {2_MiB, 60_us}})};
  m.tests = {{"matmul fp8", "no FP8 on this GPU", TestState::impossible},
             {"copy x", "timed out", TestState::failed},
             {"copy y", "", TestState::not_run}};
  m.copies[0].repeated.unsettled = true;
  m.copies[0].repeated.repeats = 20;
  m.copies[0].repeated.outliers = {900_us};
  const MeasurementContents contents = inspect_measurement(m);
  EXPECT_TRUE(has(contents.holds, "server0", "2 x H100, driver 550.54"));
  EXPECT_TRUE(has(contents.holds, "copies between GPUs, copy-engine", "1 pair alone, 64 MiB"));
  EXPECT_TRUE(has(contents.holds, "all_reduce", "2 sizes from 1 MiB to 2 MiB, 8 ranks"));
  EXPECT_TRUE(has(contents.missing, "copies between GPUs", "1 of 2 ordered pairs"));
  EXPECT_TRUE(has(contents.missing, "host copies", "none to the host"));
  EXPECT_TRUE(has(contents.missing, "contention", "start together"));
  EXPECT_TRUE(has(contents.missing, "matmul fp8", "no FP8"));
  EXPECT_TRUE(has(contents.missing, "plan", "1 test not run"));
  EXPECT_TRUE(has(contents.doubtful, "copy x", "timed out"));
  EXPECT_TRUE(has(contents.doubtful, "copy gpu0 to gpu1, 64 MiB", "do not agree"));
  EXPECT_TRUE(has(contents.doubtful, "outliers", "1 of 20"));
}

TEST(MeasurementInspect, OneGpuIsNotAskedForPeers) {
  Measurement m = new_measurement("one", "weft-probe", "a machine");
  m.hosts.push_back(host_of(1));
  const MeasurementContents contents = inspect_measurement(m);
  EXPECT_FALSE(has(contents.missing, "copies between GPUs", ""));
  EXPECT_FALSE(has(contents.missing, "collectives", ""));
  EXPECT_TRUE(has(contents.missing, "host copies", "the way to its memory"));
}

}  // namespace
}  // namespace weft
