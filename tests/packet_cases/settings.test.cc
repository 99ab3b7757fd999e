// SPDX-License-Identifier: Apache-2.0
// What is derived says so in the report, and follows the machine (cases P14 and S12).
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

Report pair(const std::string& nic, const std::string& cable, const std::string& packet = "{}") {
  return test::run(fmt::format(
      R"({{"fabric": {{"servers": 2, "server": {{"use": "h100-1gpu", "set": {{"/nodes/4/model": "{}"}}}},
           "network": {{"generator": "single-switch", "switch": "sn5600", "link": "{}"}}}},
          "fidelity": "packet", "models": {{"packet": {}}},
          "workload": {{"flows": [{{"src": "server0/gpu0", "dst": "server1/gpu0", "size": "1 MiB"}}]}}}})",
      nic, cable, packet));
}

const Setting& setting(const Report& report, const std::string& name) {
  const auto found = std::ranges::find(report.settings, name, &Setting::name);
  EXPECT_NE(found, report.settings.end()) << name;
  return *found;
}

TEST(Settings, MarkingThresholdsScaleWithTheSpeedAndSaySo) {
  const Report slow = pair("cx5-roce-100g", "roce-100g"), fast = pair("cx7-roce-400g", "roce-400g");
  EXPECT_EQ(setting(slow, "ECN Kmin, Kmax, Pmax").value, "400 KB, 1.6 MB, 0.2");
  EXPECT_EQ(setting(slow, "ECN Kmin, Kmax, Pmax").source, "scaled to 100 Gb/s");
  EXPECT_EQ(setting(fast, "ECN Kmin, Kmax, Pmax").value, "1.6 MB, 6.4 MB, 0.2");
  const Report given =
      pair("cx7-roce-400g", "roce-400g", R"({"ecn": {"kmin": "1 MB", "kmax": "2 MB"}})");
  EXPECT_EQ(setting(given, "ECN Kmin, Kmax, Pmax").source, "given");
}

// By hand: 4178 + (4178 + 64 + (2 x 50 ns + 550 ns + 1158.4 ns) x 50 GB/s), f = 1 for cells of a byte.
TEST(Settings, HeadroomFollowsTheLaw) {
  const Report report = pair("cx7-roce-400g", "roce-400g");
  EXPECT_EQ(setting(report, "PFC headroom").value, to_text(Bytes{4178 + 4242 + 90'420}));
  const Report cells = pair("cx7-roce-400g", "roce-400g", R"({"cell": "254 B"})");
  EXPECT_NE(setting(cells, "PFC headroom").value, setting(report, "PFC headroom").value);
}

// Seven peers each; iWARP keeps TCP's variables beside those of its queue pairs.
TEST(Settings, ConnectionsOfANicAreCounted) {
  const auto all_to_all = [](const char* nic, const char* cable) {
    return test::run(fmt::format(
        R"({{"fabric": {{"servers": 8, "server": {{"use": "h100-1gpu", "set": {{"/nodes/4/model": "{}"}}}},
             "network": {{"generator": "single-switch", "switch": "sn4600", "link": "{}"}}}},
            "fidelity": "packet", "workload": {{"pattern": "all_to_all", "size": "8 KiB"}}}})",
        nic, cable));
  };
  const Setting roce = setting(all_to_all("cx6-roce-100g", "roce-100g"), "connections of a NIC");
  EXPECT_EQ(roce.value, "7, " + to_text(Bytes{7 * 447}));
  EXPECT_EQ(roce.source, "447 B each, 375 of a queue pair, 72 of dcqcn");
  const Setting iwarp = setting(all_to_all("iwarp-100g", "iwarp-100g"), "connections of a NIC");
  EXPECT_EQ(iwarp.source, "513 B each, 375 of a queue pair, 66 of TCP, 72 of cubic");
}

}  // namespace
}  // namespace weft
