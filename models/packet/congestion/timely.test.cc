// SPDX-License-Identifier: Apache-2.0
// What is known of TIMELY: it holds the queue, and nothing makes its senders equal. It reacts to how delays change, which is the
// same for all, so any division of the link is a fixed point (Zhu, Ghobadi, Misra and Padhye, "ECN or delay: lessons learnt from
// analysis of DCQCN and TIMELY", CoNEXT 2016).
#include <algorithm>

#include <gtest/gtest.h>

#include "models/packet/congestion/incast.test.hpp"

namespace weft::packet {
namespace {

TEST(Timely, SixteenSendersFillTheLinkAndStayUnequal) {
  IncastSpec spec;
  spec.scheme = CongestionScheme::timely;
  spec.senders = 16;
  spec.stagger = 60_us;
  Incast run(spec);
  run.run(60_ms);
  double all = 0, least = 1, most = 0;
  for (std::uint32_t i = 0; i < spec.senders; ++i) {
    const double share = run.mean_share(i, 30, 60);
    all += share;
    least = std::min(least, share);
    most = std::max(most, share);
  }
  EXPECT_GT(all, 0.95);
  EXPECT_EQ(run.engine().counters().dropped, 0);
  EXPECT_LT(run.mean_jain(30, 60), 0.6);  // DCQCN: 0.98
  EXPECT_GT(most / least, 4);
  ::testing::Test::RecordProperty("jain", std::to_string(run.mean_jain(30, 60)));
}

}  // namespace
}  // namespace weft::packet
