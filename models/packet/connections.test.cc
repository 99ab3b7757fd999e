// SPDX-License-Identifier: Apache-2.0
#include "models/packet/connections.hpp"

#include <gtest/gtest.h>

namespace weft::packet {
namespace {

TEST(Connections, ArePartsOfTheirTransport) {
  const ConnectionState roce = connection_state(Transport::roce, kDcqcn);
  EXPECT_EQ(roce.queue_pair, 375);
  EXPECT_EQ(roce.tcp, 0);
  EXPECT_EQ(roce.control, static_cast<std::int64_t>(kDcqcn.state_bytes));
  const ConnectionState iwarp = connection_state(Transport::iwarp, kCubic);
  EXPECT_EQ(iwarp.queue_pair, 375);
  EXPECT_EQ(iwarp.tcp, 66);
  EXPECT_EQ(connection_state(Transport::tcp, kCubic).total(), iwarp.total() - 375);
}

// What docs/packet.md says of 4,096 nodes.
TEST(Connections, AllToAllOf4096Nodes) {
  const auto megabytes = [](Transport transport, const CongestionEntry& entry, std::int64_t pairs) {
    return all_to_all_state(4096, pairs, connection_state(transport, entry)).value() * 1e-6;
  };
  EXPECT_NEAR(megabytes(Transport::roce, kDcqcn, 1), 1.83, 0.01);
  EXPECT_NEAR(megabytes(Transport::iwarp, kCubic, 1), 2.10, 0.01);
  EXPECT_NEAR(megabytes(Transport::roce, kDcqcn, 4), 7.32, 0.01);
  EXPECT_EQ(all_to_all_state(2, 1, {}), Bytes{0});
  EXPECT_EQ(all_to_all_state(1, 1, connection_state(Transport::roce, kDcqcn)), Bytes{0});
}

}  // namespace
}  // namespace weft::packet
