// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/lines.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

std::string cleaned(std::string_view text) {
  std::string out;
  for (const LogLine& line : clean_lines(text)) out += std::string(trimmed(line.text)) + "|";
  return out;
}

TEST(Lines, TagsOfLaunchersAreTakenOff) {
  for (const char* line :
       {"[1,0]<stdout>:42 x", "Thu Jul 18 15:41:05 2024<stdout>:42 x", "3: 42 x", "[0] 42 x",
        "[rank12]: 42 x", "2024-07-18T15:41:05Z 42 x", "2024-07-18 15:41:05.123 42 x",
        "[2024-07-18 15:41:05] 42 x", "worker-3 | 3: 42 x", "pod-1: 42 x",
        "(w, rank=1, pid=3) 42 x", "[pod/a/b] 42 x", "2024-07-18T15:41:05.123456789Z stdout F 42 x",
        "Nov 30 08:46:16 node01 python[1234]: 42 x", "Nov  3 08:46:16 node01 srun: 3: 42 x"})
    EXPECT_EQ(cleaned(line), "42 x|") << line;
}

TEST(Lines, WhatCouldBeContentStays) {
  for (const char* line :
       {"42 x", "1048576 262144 float", "[tuning] Best combine", "[rank 3] Dispatch bandwidth",
        "Device: 0, NVIDIA", "Device 0: NVIDIA A10", "GPU 3: Tesla", "Link 0: 25.781 GB/s",
        "NOTE: The reported", "10:20 x", "(B) (elements)", "[P2P (Peer-to-Peer) GPU Test]",
        "Driver Version: 1.2", "[CU_ERROR] x", "Nov 30 of 2026: x", "Nov 30 08:46:16 2026",
        "Nov 30 08:46:16 node01 42 x: y"})
    EXPECT_EQ(cleaned(line), std::string(line) + "|");
}

TEST(Lines, EscapeCodesGoAndBrokenOnesMarkTheLine) {
  const auto lines = clean_lines(
      "\x1b[1;31m42\x1b[0m x\n\x1b]0;title\x07"
      "42\n\x1b[4 2\n\x1b"
      "7\na\bc\n");
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0].text, "42 x");
  EXPECT_FALSE(lines[0].damaged);
  EXPECT_EQ(lines[1].text, "42");
  EXPECT_TRUE(lines[2].damaged);
  EXPECT_TRUE(lines[3].damaged);
  EXPECT_EQ(lines[3].text, "7") << "a digit is never part of a code without its end";
  EXPECT_TRUE(lines[4].damaged);
}

TEST(Lines, NumbersPlacesAndEnds) {
  const auto lines = clean_lines("a\r\n\r\n[0] bc\nlast");
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[2].number, 3U);
  EXPECT_EQ(place_in(lines[2], 7, lines[2].text.find('b')).column, 5U);
  EXPECT_TRUE(lines[2].finished);
  EXPECT_FALSE(lines[3].finished);
  EXPECT_TRUE(clean_lines("").empty());
}

TEST(Lines, InvalidUtf8IsReplacedAndMarked) {
  const auto lines = clean_lines("caf\xC3\xA9\n\xC3(\n");
  EXPECT_EQ(lines[0].text, "caf\xC3\xA9");
  EXPECT_FALSE(lines[0].damaged);
  EXPECT_EQ(lines[1].text, "?(");
  EXPECT_TRUE(lines[1].damaged);
}

TEST(Lines, GluedTagsLeaveTheCells) {
  std::string out;
  for (const Word& word : words_without_tags("-1[0]   1626.5 [12] 0[3] [0x54] [a]"))
    out += std::string(word.text) + "|";
  EXPECT_EQ(out, "-1|1626.5|0|[0x54]|[a]|");
}

TEST(PrintedNumbers, KnowTheirRounding) {
  EXPECT_DOUBLE_EQ(parse_printed("1119.8")->half_unit, 0.05);
  EXPECT_DOUBLE_EQ(parse_printed("5e-07")->half_unit, 5e-8);
  EXPECT_DOUBLE_EQ(parse_printed("1.2e+06")->value, 1.2e6);
  EXPECT_EQ(parse_printed("18.46")->decimals, 2);
  for (const char* bad : {"", "-", ".5", "5.", "1e", "1e+", "nan", "inf", "0x10", "1,5", "1.2.3",
                          "1e999", "12 ", "+1", "N/A"})
    EXPECT_FALSE(parse_printed(bad)) << bad;
  EXPECT_FALSE(parse_whole("1.0"));
  EXPECT_FALSE(parse_whole("99999999999999999999"));
  EXPECT_EQ(parse_whole("34359738368"), 34359738368);
}

}  // namespace
}  // namespace weft
