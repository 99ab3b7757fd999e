// SPDX-License-Identifier: Apache-2.0
// Law 5: a channel that moves as one flow takes as long as its transfers one by one, from 16 MiB up, where no hash collides.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

struct Machine {
  const char* name;
  Fabric (*build)();
};

Fabric one_switch() {
  return test::fabric_from("gpu g -- 400 Gb/s, 100 ns -- nic n",
                           {.servers = 8, .network = test::single_switch()});
}
Fabric two_levels() {
  return test::fabric_from("gpu g -- 400 Gb/s, 100 ns -- nic n",
                           {.servers = 8, .network = test::leaf_spine(4, 4, "spray")});
}
Fabric dgx1() { return test::catalogue_fabric("dgx1-v100"); }
Fabric dgx2() { return test::catalogue_fabric("dgx2"); }
Fabric rails() {
  return test::catalogue_fabric(R"({"use": "hgx-h100+ib-ndr", "set": {"/servers": 2}})");
}

constexpr Machine kMachines[] = {{"one switch", one_switch},
                                 {"two levels", two_levels},
                                 {"DGX-1", dgx1},
                                 {"DGX-2", dgx2},
                                 {"H100 rails", rails}};

double time_of(const Fabric& fabric, std::string_view job, bool expand) {
  return test::run(fabric, fmt::format(R"("workload": {{{}, "expand": {}}})", job, expand)).time_s;
}

// Coupled over expanded lies within 1 - below .. 1 + above.
void expect_agreement(std::string_view job, double below, double above) {
  for (const Machine& machine : kMachines) {
    const Fabric fabric = machine.build();
    const double coupled = time_of(fabric, job, false), expanded = time_of(fabric, job, true);
    EXPECT_GE(coupled / expanded, 1 - below)
        << machine.name << " " << job << " " << coupled << " " << expanded;
    EXPECT_LE(coupled / expanded, 1 + above)
        << machine.name << " " << job << " " << coupled << " " << expanded;
  }
}

// Where one ring runs alone (one NIC a server) each chunk of 512 KiB waits for the one before to arrive: alpha / (c / r) more.
// Where eight rings share the links (DGX-2, H100) they hide each other's latency, which steps in lock-step do not.
TEST(CoupledIsExpanded, Rings) {
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter"}) {
    const std::string job = fmt::format(R"("algorithm": "ring", "collective": "{}")", kind);
    expect_agreement(job + R"(, "size": "16 MiB")", 0.05, 0.035);
    expect_agreement(job + R"(, "size": "256 MiB")", 0.02, 0.035);
    expect_agreement(job + R"(, "size": "256 MiB", "chunk": "4 MiB")", 0.02, 0.02);
  }
}

TEST(CoupledIsExpanded, Direct) {
  for (const char* kind :
       {"all_to_all", "all_reduce", "all_gather", "broadcast", "gather", "send_recv"}) {
    for (const char* size : {"16 MiB", "256 MiB"}) {
      expect_agreement(
          fmt::format(R"("algorithm": "direct", "collective": "{}", "size": "{}")", kind, size),
          0.05, 0.05);
    }
  }
}

// Chains that do not pass a hop at the same time may still meet later, which the fill does not see. The expanded form
// has at most 64 pieces, so at 256 MiB they are longer than a chunk.
TEST(CoupledIsExpanded, Chains) {
  expect_agreement(
      R"("algorithm": "ring", "collective": "broadcast", "size": "16 MiB", "channels": 1)", 0.05,
      0.05);
  expect_agreement(R"("algorithm": "ring", "collective": "broadcast", "size": "16 MiB")", 0.20,
                   0.05);
  expect_agreement(R"("algorithm": "ring", "collective": "broadcast", "size": "256 MiB")", 0.16,
                   0.05);
}

// The fill takes the slowest hop for all, too slow where most hops are inside a server, and the lone rate, too fast where
// trees share links.
TEST(CoupledIsExpanded, Trees) {
  expect_agreement(
      R"("algorithm": "double_binary_tree", "collective": "all_reduce", "size": "16 MiB")", 0.50,
      0.80);
  expect_agreement(
      R"("algorithm": "double_binary_tree", "collective": "all_reduce", "size": "256 MiB")", 0.25,
      0.25);
}

TEST(CoupledIsExpanded, Hierarchical) {
  for (const char* size : {"16 MiB", "256 MiB"}) {
    expect_agreement(
        fmt::format(R"("algorithm": "hierarchical", "collective": "all_reduce", "size": "{}")",
                    size),
        0.25, 0.25);
  }
}

}  // namespace
}  // namespace weft
