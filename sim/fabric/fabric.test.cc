// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/fabric.hpp"

#include <set>

#include <gtest/gtest.h>

#include "tests/support/fabric_text.hpp"

namespace weft {
namespace {

using testing::cluster;
using testing::fabric_from;
using testing::server;

Fabric two_leaves() {
  return fabric_from(
      cluster(4, server(2),
              R"("generator": "leaf-spine", "switch": {"ports": 8, "link": LINK}, "spines": 2)"));
}

TEST(Fabric, NamesAreUniqueAndFindTheirOwner) {
  const Fabric fabric = two_leaves();
  std::set<std::string> names;
  for (std::size_t i = 0; i < fabric.node_count(); ++i) {
    const std::string name = fabric.name(NodeId{i});
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(fabric.find_node(name), NodeId{i}) << name;
  }
  for (std::size_t i = 0; i < fabric.link_count(); ++i) {
    const std::string name = fabric.name(LinkId{i});
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(fabric.find_link(name), LinkId{i}) << name;
  }
}

TEST(Fabric, ALoneServerNeedsNoPrefix) {
  const Fabric fabric = fabric_from(server(2));
  EXPECT_EQ(fabric.name(fabric.gpus()[1]), "gpu1");
  EXPECT_EQ(fabric.find_node("gpu1"), fabric.gpus()[1]);
  EXPECT_EQ(fabric.find_node("server0/gpu1"), fabric.gpus()[1]);
  EXPECT_TRUE(fabric.find_link("gpu0:plx0").has_value());
}

TEST(Fabric, ParallelCablesAreNumbered) {
  const Fabric fabric = two_leaves();  // 4 uplinks of a leaf, 2 to each spine
  const auto first = fabric.find_link("leaf0:spine1#0"),
             second = fabric.find_link("leaf0:spine1#1");
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_FALSE(fabric.find_link("leaf0:spine1#2"));
  EXPECT_EQ(fabric.find_link("leaf0:spine1"), first);
}

TEST(Fabric, UplinksOfASwitchAreCounted) {
  const Fabric fabric = two_leaves();
  std::set<LinkId> uplinks;
  for (const char* name : {"leaf1/up0", "leaf1/up1", "leaf1/up2", "leaf1/up3"}) {
    const auto link = fabric.find_link(name);
    ASSERT_TRUE(link) << name;
    EXPECT_EQ(fabric.name(fabric.link(*link).from), "leaf1");
    EXPECT_EQ(fabric.node(fabric.link(*link).to).level, 2);
    uplinks.insert(*link);
  }
  EXPECT_EQ(uplinks.size(), 4u);
  EXPECT_FALSE(fabric.find_link("leaf1/up4"));
}

TEST(Fabric, UnknownNamesFindNothing) {
  const Fabric fabric = two_leaves();
  for (const char* name : {"", "gpu0", "server4/gpu0", "server0/gpu9", "serverx/gpu0", "leaf2",
                           "server/gpu0", "server-1/gpu0"}) {
    EXPECT_FALSE(fabric.find_node(name)) << name;
  }
  for (const char* name : {"", ":", "leaf0", "leaf0:leaf1", "leaf0:spine0#", "leaf0:spine0#x",
                           "leaf0/up", "leaf0/upx", "nope/up0"}) {
    EXPECT_FALSE(fabric.find_link(name)) << name;
  }
}

TEST(Fabric, ResourcesAreLinksFirst) {
  const Fabric fabric = two_leaves();
  const auto capacities = fabric.capacities();
  ASSERT_EQ(capacities.size(), fabric.resource_count());
  for (std::uint32_t r = 0; r < capacities.size(); ++r)
    EXPECT_EQ(capacities[r], fabric.capacity(r));
  EXPECT_EQ(fabric.resource_name(0), fabric.name(LinkId{0}));
}

}  // namespace
}  // namespace weft
