// SPDX-License-Identifier: Apache-2.0
#include "sim/run/p2p.hpp"

#include <gtest/gtest.h>

#include "models/catalog.hpp"
#include "tests/support/fabric_text.hpp"

namespace weft {
namespace {

using testing::fabric_from;

// gpu0 - gpu1 - gpu2 in a row, 100 Gb/s and 500 ns each, 9 us for a copy call.
Fabric row_of_three() {
  return fabric_from(R"({"kind": "server", "name": "row", "copy": {"latency": "9 us"},
      "nodes": [{"id": "gpu[0-2]", "kind": "gpu", "model": {}}],
      "links": [{"a": "gpu0", "b": "gpu1", "link": {"class": "nvlink", "delay": "500 ns"}},
                {"a": "gpu1", "b": "gpu2", "link": {"class": "nvlink", "delay": "500 ns"}}]})");
}

std::optional<CopyAnswer> copy(const Fabric& fabric, const char* src, const char* dst,
                               CopyQuestion question) {
  Routes routes(fabric);
  return time_copy(routes, *fabric.find_node(src), *fabric.find_node(dst), question,
                   [](std::span<const Bandwidth> capacities) {
                     return make_network(Fidelity::fluid, capacities, {});
                   });
}

// 12.5 MB over 100 Gb/s take 1 ms.
constexpr Bytes kMillisecond{12'500'000};

TEST(Copy, TakesItsStartUpItsLatencyAndSizeOverRate) {
  CopyQuestion question{.size = kMillisecond};
  question.transfer.copy_call = true;
  const auto answer = copy(row_of_three(), "gpu0", "gpu1", question);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->via, Via::direct);
  EXPECT_EQ(answer->path, "gpu0 gpu1");
  EXPECT_EQ(answer->latency, 9'500_ns);
  EXPECT_EQ(answer->time, 1'009'500_ns);
  EXPECT_NEAR(answer->bandwidth_gbs, 12.5 / 1.0095, 1e-9);
}

TEST(Copy, BothWaysOfADuplexLinkDoubleTheSum) {
  const CopyQuestion one{.size = kMillisecond}, both{.size = kMillisecond, .bidirectional = true};
  const Fabric fabric = row_of_three();
  EXPECT_NEAR(copy(fabric, "gpu0", "gpu1", both)->bandwidth_gbs,
              2 * copy(fabric, "gpu0", "gpu1", one)->bandwidth_gbs, 1e-9);
}

TEST(Copy, ARelayReceivesTheWholeBeforeItSends) {
  CopyQuestion question{.size = kMillisecond};
  question.transfer.via = Via::relay;
  const auto answer = copy(row_of_three(), "gpu0", "gpu2", question);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->path, "gpu0 gpu1 gpu2");
  EXPECT_EQ(answer->time, 2'001'000_ns);
}

TEST(Copy, WithoutSuchAWayThereIsNoAnswer) {
  CopyQuestion question{.size = kMillisecond};
  question.transfer.via = Via::relay;
  EXPECT_FALSE(copy(row_of_three(), "gpu0", "gpu1", question));
}

}  // namespace
}  // namespace weft
