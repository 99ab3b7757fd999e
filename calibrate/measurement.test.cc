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
