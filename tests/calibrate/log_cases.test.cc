// SPDX-License-Identifier: Apache-2.0
// More logs as people post them, by the cases they stand for: what a fit may make of them, and what it must say.
#include <map>

#include <gmock/gmock.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::document;
using cli_test::Folder;
using cli_test::import_log;
using cli_test::Outcome;
using cli_test::weft_cli;
using ::testing::HasSubstr;

Outcome fit(const std::string& name, const std::string& fabric,
            const std::vector<std::string>& more = {}) {
  std::vector<std::string> args{"calibrate", "fit", import_log(name), "--fabric", fabric};
  args.insert(args.end(), more.begin(), more.end());
  return weft_cli(args);
}
Json fitted(const std::string& name, const std::string& fabric,
            std::vector<std::string> more = {}) {
  more.emplace_back("--json");
  const Outcome outcome = fit(name, fabric, more);
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  if (outcome.code == kOk) return document(outcome);
  Diagnostics none;
  return parse_json(R"({"calibration": {"residuals": [], "parameters": []}})", "none", none);
}
const std::vector<Json>& rows(const Json& patch) {
  return patch.find("calibration")->find("residuals")->items;
}
bool notes(const Json& patch, const std::string& words) {
  const Json* all = patch.find("calibration")->find("notes");
  return all != nullptr && std::ranges::any_of(all->items, [&](const Json& note) {
           return note.text.find(words) != std::string::npos;
         });
}
std::size_t determined(const Json& patch) {
  return static_cast<std::size_t>(
      std::ranges::count_if(patch.find("calibration")->find("parameters")->items,
                            [](const Json& p) { return p.find("state")->text == "determined"; }));
}
double number(const Json& row, const char* key) { return row.find(key)->number; }

TEST(CalibrateLogs, N04RanksAreInferredAndSaidToBe) {
  const Outcome outcome =
      fit("v100-16rank-validation-off-old.log", "dgx1-v100+ib-edr", {"--collective", "all_reduce"});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;  // N/A is "not validated", no error
  EXPECT_THAT(outcome.out, HasSubstr("12 rows"));
  EXPECT_THAT(outcome.out, HasSubstr("16 ranks: inferred from busbw over algbw"));
}

TEST(CalibrateLogs, N04WhatSmallSizesDoNotTellIsAskedForAllAtOnce) {
  const Outcome asked = fit("a100-2rank-old-error-column-interleaved.log", "hgx-a100");
  EXPECT_EQ(asked.code, kBadInput);
  EXPECT_THAT(asked.err, HasSubstr("--collective"));
  EXPECT_THAT(asked.err, HasSubstr("--ranks"));
  const Json answered = fitted("a100-2rank-old-error-column-interleaved.log", "hgx-a100",
                               {"--collective", "all_reduce", "--ranks", "2"});
  EXPECT_EQ(rows(answered).size(), 7U);
}

// 33.5 GB/s of each GPU leave the server: 25 GB/s of a 200 Gb/s NIC cannot be what it ran over, 50 GB/s can.
TEST(CalibrateLogs, N06ASlowerNicIsRefutedAndAFasterIsNot) {
  const std::vector<std::string> two{"--gpus-per-node", "2"};
  const Json narrow = fitted("vm-2x2-alltoall-interleaved-info.log", "hgx-a100+roce-200g", two),
             wide = fitted("vm-2x2-alltoall-interleaved-info.log", "hgx-h100+ib-ndr", two);
  EXPECT_EQ(rows(narrow).size(), 13U);
  EXPECT_EQ(rows(wide).size(), 13U);
  EXPECT_TRUE(notes(narrow, "faster than this fabric can be"));
  EXPECT_FALSE(notes(wide, "faster than this fabric can be"));
  EXPECT_EQ(determined(narrow), 0U);
}

TEST(CalibrateLogs, N07AllRowsAreReadAndABoxOnItsOwnLineIsAsItShouldBe) {
  EXPECT_EQ(rows(fitted("h100-2x8-allgather-tcpx-no-hash-prefix.log", "gcp-a3-mega")).size(), 11U);
  const Json gb10 = fitted("gb10-2node-allgather.log", "oci-a100+roce-2x100g",
                           {"--other-gpus", "--gpus-per-node", "1"});
  ASSERT_EQ(rows(gb10).size(), 3U);
  // 88 to 90 % of 200 Gb/s, and of what weft expects of it 93 %: 4 GiB, half of which cross.
  const double line_us = 2147483648 / 25e3, measured = number(rows(gb10).back(), "measured");
  EXPECT_NEAR(line_us / measured, 0.89, 0.01);
  EXPECT_NEAR(number(rows(gb10).back(), "predicted") / measured, 1, 0.1);
}

TEST(CalibrateLogs, N08SlowRowsAreNotFittedThroughAndBusbwAboveTheNicsIsAccepted) {
  const Json vm = fitted("h200-2x8-allreduce-vm-flat-topology.log", "hgx-h200+ib-ndr");
  ASSERT_EQ(rows(vm).size(), 6U);
  EXPECT_TRUE(notes(vm, "96 MiB is not fitted: 96 MiB out-of-place takes"));
  for (const Json& row : rows(vm)) {
    const bool slow = row.find("id")->text.find("@96 MiB") != std::string::npos ||
                      row.find("id")->text.find("@288 MiB") != std::string::npos;
    EXPECT_EQ(row.find("fitted")->boolean, !slow) << row.find("id")->text;
  }
  EXPECT_TRUE(notes(vm, "It is another machine, other settings, or a fault"));
  // 489 GB/s over 8 x 50 GB/s of NICs: two servers can.
  const Json metal = fitted("h200-2x8-allreduce-baremetal.log", "hgx-h200+ib-ndr");
  for (const Json& row : rows(metal)) {
    EXPECT_TRUE(row.find("fitted")->boolean);
    EXPECT_NEAR(number(row, "predicted") / number(row, "measured"), 1, 0.1);
  }
  EXPECT_FALSE(notes(metal, "faster than this fabric can be"));
}

// 47.4 of 56.25 GB/s and 116 of 300 GB/s.
TEST(CalibrateLogs, N10NoLinkSpeedIsInvented) {
  const std::vector<std::string> bridge{
      "--set", "/links/4/count=4",        "--set", R"(/links/4/link/rate="14.0625 GB/s")",
      "--set", "/nodes/0/model=rtx-3090", "--set", "/peer_access/nvlink=true"};
  const Json pair = fitted("pair-nvlink-bridge-47gbs.log", "nvlink-bridge-pairs", bridge);
  for (const Json& row : rows(pair))
    EXPECT_NEAR(number(row, "predicted") / number(row, "measured"), 1, 0.2);
  const Json low = fitted("h100pcie-2gpu-bridge-allreduce.log", "nvlink-bridge-pairs",
                          {"--set", "/nodes/0/model=h100-pcie"});
  EXPECT_TRUE(notes(low, "no values within their bounds explain this"));
  for (const Json* patch : {&pair, &low}) {
    for (const Json& p : patch->find("calibration")->find("parameters")->items) {
      if (p.find("name")->text.find("efficiency of link") == std::string::npos) continue;
      EXPECT_GT(number(p, "value"), 0.75) << p.find("name")->text;
      EXPECT_LE(number(p, "high"), 1);
    }
  }
}

TEST(CalibrateLogs, N11NothingUsableAndOneRow) {
  const Outcome crashed = fit("rtx5090-alltoall-crash-no-rows.log", "pcie-rtx4090x8");
  EXPECT_EQ(crashed.code, kBadInput);
  EXPECT_THAT(crashed.err, HasSubstr("no measurements; run failed with: illegal memory access"));
  const std::string groups =
      std::string(WEFT_SOURCE_DIR) + "/tests/explain_log/data/h200-nvl-2x4.json";
  const Json one = fitted("h200nvl-8gpu-single-table.log", groups, {"--other-gpus"});
  ASSERT_EQ(rows(one).size(), 1U);
  // 68.7 GB/s over two groups of four bridged cards say nothing about a bridge.
  for (const Json& p : one.find("calibration")->find("parameters")->items)
    EXPECT_EQ(p.find("name")->text.find("link nvlink"), std::string::npos) << p.find("name")->text;
}

// Peer access on: below one switch is faster. Off, both ways: across the sockets is.
TEST(CalibrateLogs, O02TheOrderOfBothModes) {
  const Json patch = fitted("p2p-8gpu-pcie-two-socket.txt", "pcie-a100x8");
  std::map<std::pair<std::string, bool>, std::vector<double>> predicted;
  for (const Json& row : rows(patch)) {
    const std::string& id = row.find("id")->text;
    const std::size_t pair = id.rfind("gpu", id.rfind("gpu") - 1);
    const int from = id.at(pair + 3) - '0', to = id.back() - '0';
    predicted[{id.substr(0, id.find(" Bandwidth")), from / 4 == to / 4}].push_back(
        number(row, "predicted"));
  }
  const auto mean = [&](const char* mode, bool same) {
    const std::vector<double>& all = predicted.at({mode, same});
    double sum = 0;
    for (const double value : all) sum += value;
    return sum / static_cast<double>(all.size());
  };
  EXPECT_GT(mean("Unidirectional P2P=Enabled", true),
            1.1 * mean("Unidirectional P2P=Enabled", false));
  EXPECT_GT(mean("Bidirectional P2P=Enabled", true),
            1.1 * mean("Bidirectional P2P=Enabled", false));
  EXPECT_GT(mean("Bidirectional P2P=Disabled", false),
            1.1 * mean("Bidirectional P2P=Disabled", true));
  // What forwards between the sockets is named, no cable of one side.
  EXPECT_TRUE(notes(patch, "slow-link: cpu0:cpu1"));
}

TEST(CalibrateLogs, O04BothWaysAreOneDirectionsRateAndOtherToolsAreToldApart) {
  std::vector<std::string> two_links;
  for (const char* link : {"5", "6", "10"}) {
    two_links.emplace_back("--set");
    two_links.push_back(std::string("/links/") + link + "/count=2");
  }
  const Json mesh = fitted("p2p-4gpu-v100-nv2-mesh.txt", "dgx1-v100", two_links);
  std::size_t rates = 0;
  for (const Json& row : rows(mesh)) {
    if (row.find("id")->text.find("Bandwidth") == std::string::npos) continue;
    ++rates;
    EXPECT_NEAR(number(row, "measured"), 48.4, 0.5) << row.find("id")->text;
    EXPECT_NEAR(number(row, "predicted") / number(row, "measured"), 1, 0.05);
  }
  EXPECT_GT(rates, 0U);
  for (const char* perftest :
       {"ib_write_bw-bidirectional-4qp-400g.txt", "ib_write_bw-duration-mode-zero-peak.txt",
        "ib_write_bw-scheduler-prefixed.txt", "ib_write_lat-ib-cpu-freq-noise.txt"}) {
    const Outcome outcome = fit(perftest, "hgx-h100+ib-ndr");
    EXPECT_EQ(outcome.code, kBadInput) << perftest;
    EXPECT_THAT(outcome.err, HasSubstr("messages between NICs: nothing of a fit depends on them"));
  }
  const Outcome experts = fit("moe-dispatch-2node-vs-4node.txt", "hgx-h200+ib-ndr");
  EXPECT_EQ(experts.code, kBadInput);
  EXPECT_THAT(experts.err, HasSubstr("dispatch and combine of experts"));
  const Outcome hosts = fit("nvbandwidth-0.5-single-gpu.txt", "h100-1gpu", {"--other-gpus"});
  ASSERT_EQ(hosts.code, kOk) << hosts.err;
  EXPECT_THAT(hosts.out, HasSubstr("host_to_device_memcpy_sm: 1 pairs with a host are left out"));
}

}  // namespace
}  // namespace weft
