// SPDX-License-Identifier: Apache-2.0
#include "models/link/given_rate.hpp"

#include <set>

#include "models/catalog.hpp"
#include "models/link/law.test.hpp"

namespace weft {
namespace {

TEST(GivenRateLaw, ClassesDeliverTheirShare) {
  EXPECT_NEAR(test_link(kXgmiLink, R"("class": "xgmi", "rate": "64 GB/s")").gbytes(), 48.64, 0.001);
  EXPECT_NEAR(test_link(kSocketLink, R"("class": "socket", "rate": "38.4 GB/s")").gbytes(), 31.40,
              0.01);
  EXPECT_NEAR(test_link(kMemoryLink, R"("class": "memory", "rate": "100 GB/s")").gbytes(), 85.0,
              0.001);
  EXPECT_NEAR(test_link(kUalinkLink, R"("class": "ualink", "rate": "100 GB/s")").gbytes(), 92.35,
              0.01);
}

TEST(GivenRateLaw, TheRateMustBeGiven) {
  const TestedLink link = test_link(kC2cLink, R"("class": "c2c")");
  ASSERT_EQ(link.problems.size(), 1u);
  EXPECT_EQ(link.problem(), R"(the link's "rate" is missing)");
}

TEST(GivenRateLaw, AMeasuredLinkStatesItsOwnEfficiency) {
  EXPECT_EQ(test_link(kMemoryLink, R"("class": "memory", "rate": "100 GB/s", "efficiency": 1)")
                .payload_rate(),
            100_GBps);
}

TEST(LinkCatalog, HoldsEveryClassOnceWithItsReference) {
  std::set<LinkClass> seen;
  for (const LinkClassEntry* entry : link_classes()) {
    EXPECT_TRUE(seen.insert(entry->link_class).second);
    EXPECT_FALSE(entry->summary.empty());
    EXPECT_FALSE(entry->reference.empty());
  }
  EXPECT_EQ(seen.size(), enum_names(LinkClass{}).size());
}

TEST(LinkLaw, AClassWithoutLawIsAnError) {
  Diagnostics out;
  LinkSpec spec;
  spec.link_class = LinkClass::hccs;
  const LinkLaw law = link_law(spec, {}, out);
  EXPECT_EQ(law.raw.bps, 0);
  ASSERT_EQ(out.problems().size(), 1u);
  EXPECT_EQ(out.problems()[0].fact, "no law for links of class \"hccs\"");
}

}  // namespace
}  // namespace weft
