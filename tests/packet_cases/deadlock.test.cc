// SPDX-License-Identifier: Apache-2.0
// A ring of switches where everybody sends two switches on, by links with credits: each link waits for the buffer that the next one
// holds. The run ends with the cycle named; with routes that do not close the ring the same traffic ends well.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/check.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr int kSwitches = 5, kHosts = 2;

Report around(int senders) {
  std::string switches, cables, flows;
  for (int s = 0; s < kSwitches; ++s) {
    switches += fmt::format(R"({}"s{}")", s > 0 ? ", " : "", s);
    cables += fmt::format(R"({{"a": "s{}", "b": "s{}"}}, )", s, (s + 1) % kSwitches);
    for (int h = 0; h < kHosts; ++h) {
      const int host = s * kHosts + h, far = (s + 2) % kSwitches * kHosts + h;
      cables += fmt::format(R"({{"a": "server{}/nic0", "b": "s{}"}}, )", host, s);
      if (s >= senders) continue;
      flows +=
          fmt::format(R"({}{{"src": "server{}/gpu0", "dst": "server{}/gpu0", "size": "16 MiB"}})",
                      flows.empty() ? "" : ", ", host, far);
    }
  }
  cables.resize(cables.size() - 2);
  return test::run(
      test::catalogue_fabric(fmt::format(
          R"({{"servers": {}, "server": {{"use": "h100-1gpu", "set": {{"/nodes/4/model": "cx7-ndr"}}}},
              "network": {{"generator": "explicit", "switch": "qm9700", "link": "ib-ndr", "switches": [{}], "cables": [{}]}}}})",
          kSwitches * kHosts, switches, cables)),
      fmt::format(R"("fidelity": "packet", "jobs": [{{"flows": [{}]}}])", flows));
}

TEST(Deadlock, OfARingOfSwitchesEndsTheRunAndNamesTheCycle) {
  try {
    around(kSwitches);
    FAIL() << "no deadlock";
  } catch (const LimitReached& stuck) {
    const std::string text = stuck.what();
    EXPECT_THAT(text, HasSubstr("deadlock"));
    for (int s = 0; s < kSwitches; ++s)
      EXPECT_THAT(text, HasSubstr(fmt::format("s{}:s{}", s, (s + 1) % kSwitches)));
  }
}

TEST(Deadlock, NeedsTheWholeRing) { EXPECT_GT(around(kSwitches - 2).time_s, 0); }

}  // namespace
}  // namespace weft
