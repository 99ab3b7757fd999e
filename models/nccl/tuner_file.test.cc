// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/tuner_file.hpp"

#include <algorithm>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

#include "sim/core/diagnostics.hpp"

namespace weft {
namespace {

struct Line {
  std::string collective;
  std::int64_t from = 0, to = 0;
  std::string algorithm, protocol;
  std::uint32_t channels = 0;
  std::string rest;
};

std::vector<Line> parse(const std::string& csv) {
  std::vector<Line> out;
  std::istringstream text(csv);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    Line& row = out.emplace_back();
    std::string from, to, channels;
    std::getline(fields, row.collective, ',');
    std::getline(fields, from, ',');
    std::getline(fields, to, ',');
    std::getline(fields, row.algorithm, ',');
    std::getline(fields, row.protocol, ',');
    std::getline(fields, channels, ',');
    std::getline(fields, row.rest);
    row.from = std::stoll(from);
    row.to = std::stoll(to);
    row.channels = static_cast<std::uint32_t>(std::stoul(channels));
  }
  return out;
}

NcclRow row(Bytes bytes, std::string algorithm, std::string protocol, std::uint32_t channels) {
  NcclRow out;
  out.bytes = bytes;
  out.algorithm = std::move(algorithm);
  out.protocol = std::move(protocol);
  out.channels = channels;
  return out;
}

const std::vector<NcclRow> kRows = {row(1_KiB, "ring", "ll", 1), row(2_KiB, "ring", "ll", 1),
                                    row(4_KiB, "ring", "ll", 2), row(8_KiB, "tree", "ll128", 2),
                                    row(16_KiB, "ring", "simple", 16)};

TEST(NcclTunerFile, LinesCoverEverySizeOnceAndMeetWithoutOverlap) {
  const std::vector<Line> lines = parse(tuner_csv(CollectiveKind::all_reduce, kRows, 2, 16));
  ASSERT_EQ(lines.size(), 4U) << "equal neighbours become one line";
  EXPECT_EQ(lines.front().from, 0);
  EXPECT_EQ(lines.back().to, std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = 1; i < lines.size(); ++i) EXPECT_EQ(lines[i].from, lines[i - 1].to + 1);
  for (const Line& line : lines) {
    EXPECT_EQ(line.collective, "allreduce");
    EXPECT_LE(line.from, line.to);
    EXPECT_EQ(line.rest, "2,16,-1,-1");
  }
}

TEST(NcclTunerFile, TheFirstLineThatFitsIsTheRowsChoice) {
  const std::vector<Line> lines = parse(tuner_csv(CollectiveKind::all_gather, kRows, 1, 8));
  for (const NcclRow& wanted : kRows) {
    const auto found = std::ranges::find_if(lines, [&](const Line& line) {
      return line.from <= wanted.bytes.count && wanted.bytes.count <= line.to;
    });
    ASSERT_NE(found, lines.end());
    EXPECT_EQ(found->algorithm, wanted.algorithm);
    EXPECT_EQ(found->protocol, wanted.protocol);
    EXPECT_EQ(found->channels, wanted.channels);
  }
}

TEST(NcclTunerFile, SendsAreNotTuned) {
  for (const CollectiveKind kind : {CollectiveKind::all_to_all, CollectiveKind::send_recv,
                                    CollectiveKind::gather, CollectiveKind::scatter})
    EXPECT_THROW(tuner_csv(kind, kRows, 1, 8), InputError);
  EXPECT_TRUE(parse(tuner_csv(CollectiveKind::reduce, {}, 1, 8)).empty());
}

}  // namespace
}  // namespace weft
