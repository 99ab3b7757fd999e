// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/nccl_inspector.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "calibrate/measurement.hpp"

namespace weft {
namespace {

struct Row {
  std::string collective = "AllReduce";
  int call = 1, rank = 0, ranks = 8;
  std::int64_t size = 1 << 20;
  double us = 100;
  double scale = 1;  // of the printed bandwidths
  std::string clock = "kernel_gpu";
};

// As the plug-in prints it: one line, integers for times, six decimals for rates.
std::string line(const Row& row) {
  const bool parts = row.collective == "AllGather" || row.collective == "ReduceScatter";
  const double n = row.ranks;
  const double algbw = row.scale * row.size * (parts ? n : 1) / row.us * 1e-3;
  const double busbw = algbw * (row.collective == "AllReduce" ? 2 * (n - 1) / n : (n - 1) / n);
  return fmt::format(
             R"({{"header":{{"id":"0xabc","rank":{},"n_ranks":{},"nnodes":1}},)"
             R"("metadata":{{"inspector_output_format_version":"v4.0","hostname":"node{}","pid":7}},)"
             R"("coll_perf":{{"coll":"{}","coll_sn":{},"coll_msg_size_bytes":{},"coll_exec_time_us":{},)"
             R"("coll_timing_source":"{}","coll_algobw_gbs":{:.6f},"coll_busbw_gbs":{:.6f}}}}})",
             row.rank, row.ranks, row.rank / 8, row.collective, row.call, row.size, row.us,
             row.clock, algbw, busbw) +
         "\n";
}

struct Read {
  Imported imported;
  Diagnostics out;
  Measurement measurement;
};
Read import(const std::string& text) {
  Read read;
  read.imported = kNcclInspectorImporter.read(text, "inspector.log", {}, read.out);
  if (read.out.ok()) {
    read.measurement = read_measurement(read.imported.measurement, read.out);
    EXPECT_TRUE(read.out.ok()) << read.out.text();
  }
  return read;
}

bool noted(const Read& read, ImportNote::Kind kind, const std::string& part) {
  for (const ImportNote& note : read.imported.notes) {
    if (note.kind == kind && note.text.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(NcclInspector, PartsOfReduceScatterAreCountedTogether) {
  const Read read = import(line({.collective = "ReduceScatter", .size = 2147483648, .us = 41057}));
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  const MeasuredRun& run = read.measurement.runs.at(0);
  EXPECT_EQ(run.collective, "reduce_scatter");
  EXPECT_EQ(run.ranks, 8);
  EXPECT_EQ(run.samples[0].bytes, 16_GiB);
  EXPECT_NEAR(run.samples[0].algbw.gbytes_per_s(), 418.44, 0.01);
  EXPECT_NEAR(run.samples[0].busbw.gbytes_per_s(), 366.13, 0.01);
}

TEST(NcclInspector, ShortestRankOfACallAndMedianOfTheCalls) {
  std::string text;
  for (int call = 1; call <= 5; ++call) {
    for (int rank = 0; rank < 8; ++rank)
      text += line({.call = call, .rank = rank, .us = 100.0 * call + 37 * ((rank + call) % 8)});
  }
  const Read read = import(text);
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  const CollectiveSample& sample = read.measurement.runs.at(0).samples.at(0);
  EXPECT_EQ(sample.time, 300_us);
  EXPECT_EQ(sample.repeated.repeats, 5);
  EXPECT_EQ(sample.repeated.fastest, 100_us);
  EXPECT_TRUE(read.measurement.problems.empty());
  EXPECT_EQ(read.measurement.devices.size(), 8U);
}

TEST(NcclInspector, OneRankAloneIsDoubtful) {
  const Read read = import(line({}));
  EXPECT_TRUE(noted(read, ImportNote::Kind::warning, "not all ranks"));
  EXPECT_EQ(read.measurement.problems.size(), 1U);
}

TEST(NcclInspector, RecordsThatContradictThemselvesAreNotUsed) {
  const Read read = import(line({.call = 1}) + line({.call = 2, .scale = 1.5}) +
                           line({.collective = "Barrier", .call = 3}) + line({.call = 4, .us = 0}) +
                           line({.call = 5, .rank = 9}));
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  EXPECT_EQ(read.measurement.runs.at(0).samples.at(0).repeated.repeats, 0);  // one call is left
  EXPECT_TRUE(noted(read, ImportNote::Kind::ignored, "algbw"));
}

TEST(NcclInspector, BestClockOnly) {
  const Read read = import(line({.call = 1, .us = 500, .clock = "collective_cpu"}) +
                           line({.call = 2, .us = 100}));
  EXPECT_EQ(read.measurement.runs.at(0).samples.at(0).time, 100_us);
  EXPECT_EQ(read.measurement.setup.at("timing"), "kernel_gpu");
  EXPECT_TRUE(noted(read, ImportNote::Kind::ignored, "collective_cpu"));
  EXPECT_TRUE(noted(import(line({.clock = "collective_cpu"})), ImportNote::Kind::warning, "CPU"));
}

TEST(NcclInspector, PrettyPrintedAndInterruptedFilesAreRead) {
  std::string text = line({.call = 1}) + line({.call = 2}) + line({.call = 3});
  const std::string cut = text.substr(0, text.size() - 30);
  EXPECT_EQ(import(cut).measurement.runs.at(0).samples.at(0).repeated.repeats, 2);
  const std::string first = line({.call = 1});
  EXPECT_EQ(import(first.substr(0, 100) + "\n" + text)
                .measurement.runs.at(0)
                .samples.at(0)
                .repeated.repeats,
            3);
  for (std::size_t at = 0; (at = text.find(',', at)) != std::string::npos; at += 2)
    text.insert(at + 1, "\n");
  EXPECT_EQ(import("started\n" + text).measurement.runs.at(0).samples.at(0).repeated.repeats, 3);
}

// Every line that is lost is told, with its number and why.
TEST(NcclInspector, DamagedLinesAreTold) {
  const std::string good = line({.call = 1}), cut = line({.call = 2}).substr(0, 90) + "\n";
  const auto told = [](const Read& read, std::uint32_t at, std::string_view why) {
    for (const ImportNote& note : read.imported.notes)
      if (note.kind == ImportNote::Kind::ignored && note.place.line == at &&
          note.text.find(why) != std::string::npos)
        return true;
    return false;
  };
  const Read read = import("started\n" + good + cut + line({.call = 3}) + "oops: {1, 2}\n" + cut);
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  EXPECT_EQ(read.imported.facts.find("records")->integer, 2);
  EXPECT_TRUE(told(read, 1, "outside"));
  EXPECT_TRUE(told(read, 3, "cut off"));
  EXPECT_TRUE(told(read, 5, "outside"));
  EXPECT_TRUE(told(read, 5, "not JSON"));
  EXPECT_TRUE(told(read, 6, "cut off"));
  EXPECT_FALSE(told(read, 2, ""));
  EXPECT_FALSE(told(read, 4, ""));
  // A list is a form of the file, no damage.
  const Read list = import("[" + good.substr(0, good.size() - 1) + ",\n" + good + "]\n");
  EXPECT_FALSE(noted(list, ImportNote::Kind::ignored, ""));
}

TEST(NcclInspector, SizesAndGroupsAreRunsOfTheirOwn) {
  const Read read =
      import(line({}) + line({.call = 2, .size = 4 << 20, .us = 150}) +
             line({.call = 3, .ranks = 4}) + line({.collective = "AllGather", .call = 4}));
  ASSERT_EQ(read.measurement.runs.size(), 3U);
  EXPECT_EQ(read.imported.facts.find("collectives")->items.size(), 3U);
  EXPECT_EQ(read.imported.facts.find("records")->integer, 4);
}

TEST(NcclInspector, OtherFilesAreRefused) {
  for (const char* text : {"", "{}", "{\"header\": {}}", "# nccl-tests", "{\"coll_perf\": 3}",
                           "{\"coll_perf\": {\"coll\": \"AllReduce\"}}"})
    EXPECT_FALSE(import(text).out.ok()) << text;
}

}  // namespace
}  // namespace weft
