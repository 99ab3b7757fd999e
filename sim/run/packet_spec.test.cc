// SPDX-License-Identifier: Apache-2.0
#include "sim/run/packet_spec.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

std::string problems(const std::string& text) {
  Diagnostics out;
  const Json json = parse_json(text, "p.json", out);
  PacketSpec spec;
  read_config(json, "/models/packet", spec, out);
  check_packet(spec, json, "/models/packet", out);
  return out.text();
}

TEST(PacketSpec, ParametersOfAnotherSchemeAreRefusedAtTheirPlace) {
  const std::string text =
      problems("{\"congestion_control\": \"dcqcn\",\n \"hpcc\": {\"stages\": 3}}");
  EXPECT_NE(text.find("p.json:2:"), std::string::npos) << text;
  EXPECT_NE(text.find("does not read \"hpcc\""), std::string::npos) << text;
  EXPECT_NE(problems(R"({"swift": {}})"), "");  // never chosen by itself
  EXPECT_EQ(problems(R"({"dcqcn": {"g": 0.01}})"), "");
  EXPECT_EQ(problems(R"({"congestion_control": "hpcc", "hpcc": {"stages": 3}})"), "");
}

TEST(PacketSpec, SchemesThatHearAcknowledgementsNeedThem) {
  EXPECT_NE(problems(R"({"congestion_control": "swift", "ack_every": 0})"), "");
  EXPECT_EQ(problems(R"({"congestion_control": "dcqcn", "ack_every": 0})"), "");
}

TEST(PacketSpec, ReceiversPullSinglePackets) {
  EXPECT_NE(problems(R"({"congestion_control": "receiver", "recovery": "go-back-n"})"), "");
  EXPECT_EQ(problems(R"({"congestion_control": "receiver", "recovery": "selective"})"), "");
}

TEST(PacketSpec, TimersAndNamesThatCannotBeAreRefused) {
  EXPECT_NE(problems(R"({"dcqcn": {"rate_timer": "1 ps"}})").find("rate_timer"), std::string::npos);
  EXPECT_NE(problems(R"({"timeout": "1 ps"})").find("/models/packet/timeout"), std::string::npos);
  EXPECT_EQ(problems(R"({"timeout": "100 ns"})"), "");
  EXPECT_NE(problems(R"({"dcqcn": {"alpha_timer": "0 s"}})"), "");
  EXPECT_NE(problems(R"({"dcqcn": {"byte_counter": "1 B"}})"), "");
  EXPECT_NE(problems(R"({"dcqcn": {"g": 1.5}})"), "");
  EXPECT_NE(problems(R"({"congestion_control": "dqcn"})").find("dcqcn"), std::string::npos);
}

}  // namespace
}  // namespace weft
