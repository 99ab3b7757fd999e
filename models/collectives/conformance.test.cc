// SPDX-License-Identifier: Apache-2.0
// What every algorithm of the catalogue must keep, for every kind it supports and odd shapes of groups.
#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/parts.hpp"
#include "sim/core/random.hpp"
#include "sim/workload/verifier.hpp"

namespace weft::collectives {
namespace {

using ::testing::IsEmpty;

struct Case {
  const AlgorithmEntry* entry;
  CollectiveRequest request;
  GroupShape shape;

  std::string text() const {
    std::string servers;
    for (const Ranks& server : shape.servers) servers += fmt::format(" {}", server.size());
    return fmt::format(
        "{} kind {} ranks {} size {} root {} channels {} chunk {} orders {} servers{}", entry->name,
        static_cast<int>(request.kind), shape.ranks, request.size.count, request.root,
        request.channels, request.chunk.count, shape.orders.size(), servers);
  }
};

std::vector<CollectiveKind> kinds() {
  std::vector<CollectiveKind> all;
  for (const auto& name : enum_names(CollectiveKind{})) all.push_back(name.value);
  return all;
}

bool has_root(CollectiveKind kind) {
  using enum CollectiveKind;
  return kind == broadcast || kind == reduce || kind == gather || kind == scatter;
}

// Servers of the given sizes over ranks that are numbered across the servers, so that nothing leans on consecutive numbers.
GroupShape shape_of(const std::vector<std::uint32_t>& sizes, bool interleaved = false) {
  GroupShape shape;
  shape.ranks = std::accumulate(sizes.begin(), sizes.end(), 0U);
  shape.servers.resize(sizes.size());
  std::size_t at = 0;
  for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
    while (shape.servers[at].size() == sizes[at]) at = (at + 1) % sizes.size();
    shape.servers[at].push_back(rank);
    if (interleaved) at = (at + 1) % sizes.size();
  }
  shape.switch_reduces = shape.network_reduces = true;
  return shape;
}

std::vector<std::uint32_t> random_composition(std::uint32_t n, Random& random) {
  std::vector<std::uint32_t> sizes;
  while (n > 0) {
    const auto size = 1 + static_cast<std::uint32_t>(random.below(std::min(n, 9U)));
    sizes.push_back(size);
    n -= size;
  }
  return sizes;
}

Ranks random_order(std::uint32_t n, Random& random) {
  Ranks order(n);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

// What any algorithm must move: a rank's data has to leave it, what it lacks has to arrive.
void expect_no_less_than_the_bound(const Case& c, const Schedule& s, const Verification& v) {
  using enum CollectiveKind;
  const std::uint32_t n = s.ranks;
  if (n == 1) return;
  const double size = s.request.size.value();
  const bool with_switch = v.bytes.received_by(kSwitch) > 0;
  double total = 0;
  for (std::uint32_t r = 0; r < n; ++r) {
    const double own = unit_size(s.request.size, n, r).value();
    const bool root = r == s.request.root;
    double out = 0, in = 0;
    switch (s.request.kind) {
      case all_reduce:
        out = in = size;
        break;
      case all_gather:
        out = own, in = size - own;
        break;
      case reduce_scatter:
        out = size - own, in = own;
        break;
      case all_to_all:
        out = size - own, in = own * (n - 1);
        break;
      case broadcast:
        (root ? out : in) = size;
        break;
      case reduce:
        (root ? in : out) = size;
        break;
      case gather:
        (root ? in : out) = root ? size - own : own;
        break;
      case scatter:
        (root ? out : in) = root ? size - own : own;
        break;
      case send_recv:
        out = in = size;
        break;
    }
    EXPECT_GE(v.bytes.sent_by(r), out) << c.text() << " rank " << r;
    EXPECT_GE(v.bytes.received_by(r), in) << c.text() << " rank " << r;
    total += in;
  }
  // Without a switch that adds, all_reduce is gossip of one-way calls: 2 N - 2 of them per byte.
  if (s.request.kind == all_reduce && !with_switch) total = 2.0 * (n - 1) * size;
  EXPECT_GE(v.bytes.total(), total) << c.text();
}

void check(const Case& c) {
  const Schedule s = c.entry->build(c.request, c.shape);
  const Verification v = verify(s);
  ASSERT_TRUE(v.ok()) << c.text() << "\n" << v.text();
  EXPECT_EQ(s.algorithm, c.entry->name);
  if (s.ranks == 1) {
    EXPECT_EQ(v.step_count, 0U) << c.text();
    EXPECT_TRUE(s.phases.empty()) << c.text();
  }
  if (!s.phases.empty()) {
    // Rounding: a byte per unit that a channel leaves out or splits; `hierarchical` counts in units of equal size, of which
    // an edge carries up to N, in all_to_all (N / 2)^2.
    double tolerance = 2.0 * (channel_count(c.request) + 1);
    if (c.entry == &kHierarchical)
      tolerance += s.ranks * (c.request.kind == CollectiveKind::all_to_all ? s.ranks / 4.0 : 1);
    ASSERT_THAT(compare_phases(s, v, tolerance), IsEmpty()) << c.text();
    for (const Phase& phase : s.phases) {
      EXPECT_FALSE(phase.channels.empty()) << c.text();
      for (const Channel& channel : phase.channels) {
        EXPECT_GE(channel.steps, 1U) << c.text();
        EXPECT_LE(channel.slice, channel.chunk) << c.text();
      }
    }
  }
  expect_no_less_than_the_bound(c, s, v);
}

void check_kinds(const AlgorithmEntry& entry, const GroupShape& shape, CollectiveRequest request) {
  for (const CollectiveKind kind : kinds()) {
    if (!entry.supports(kind, shape)) continue;
    request.kind = kind;
    std::set<std::uint32_t> roots{0};
    if (has_root(kind)) roots.insert({shape.ranks / 2, shape.ranks - 1});
    for (const std::uint32_t root : roots) {
      request.root = root;
      check({&entry, request, shape});
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

class Algorithm : public ::testing::TestWithParam<const AlgorithmEntry*> {};

TEST_P(Algorithm, IsProvedForEveryNumberOfRanksAndChannels) {
  std::vector<std::uint32_t> counts(33);
  std::iota(counts.begin(), counts.end(), 1U);
  counts.push_back(40);
  for (const std::uint32_t n : counts) {
    for (std::uint32_t channels = 1; channels <= 3; ++channels) {
      // 100 KB in chunks of 4 KB: pipelines of 4 to 25 pieces; sizes that no unit divides.
      check_kinds(*GetParam(), shape_of({n}),
                  {.size = 99'991_B, .channels = channels, .chunk = 4'000_B});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Algorithm, IsProvedForEveryPartitionIntoServers) {
  std::vector<std::vector<std::uint32_t>> partitions{
      {8, 8, 7},      {1, 5, 2}, {8, 8}, {4, 4, 4}, {1, 1, 1, 1},
      {2, 3},         {8, 8, 8}, {1, 8}, {23},      {3, 3, 3, 3, 3, 3, 3, 3},
      {8, 8, 8, 8, 8}};
  Random random(1, "partitions");
  for (std::uint32_t i = 0; i < 30; ++i) partitions.push_back(random_composition(2 + i, random));
  for (const auto& sizes : partitions) {
    for (const bool interleaved : {false, true}) {
      check_kinds(*GetParam(), shape_of(sizes, interleaved), {.size = 50'021_B, .chunk = 8'000_B});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Algorithm, IsProvedForAnyOrderOfRanks) {
  Random random(2, "orders");
  for (const std::uint32_t n : {2U, 3U, 5U, 8U, 13U, 24U}) {
    GroupShape shape = shape_of(random_composition(n, random), true);
    for (const std::uint32_t orders : {1U, 2U, 4U}) {
      shape.orders.clear();
      for (std::uint32_t i = 0; i < orders; ++i) shape.orders.push_back(random_order(n, random));
      check_kinds(*GetParam(), shape, {.size = 10'007_B, .channels = 3, .chunk = 1'000_B});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Algorithm, KeepsItsLawsForAnySize) {
  for (const std::uint32_t n : {1U, 2U, 3U, 7U, 8U, 24U}) {
    for (const Bytes size : {0_B, 1_B, 2_B, 5_B, 23_B, 25_B, 1'000_B, 1'048'577_B}) {
      for (const std::uint32_t channels : {1U, 3U}) {
        check_kinds(*GetParam(), shape_of({n}), {.size = size, .channels = channels});
        check_kinds(*GetParam(),
                    shape_of(n > 2 ? std::vector<std::uint32_t>{2, n - 2}
                                   : std::vector<std::uint32_t>(n, 1)),
                    {.size = size, .channels = channels});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Algorithm, VisitsTheSameStepsEveryTimeAndInEveryCopy) {
  const GroupShape shape = shape_of({4, 4});
  for (const CollectiveKind kind : kinds()) {
    if (!GetParam()->supports(kind, shape)) continue;
    const auto copied = [&] {
      return Schedule(GetParam()->build({.kind = kind, .size = 1_MiB}, shape));
    };
    const Schedule s = copied();
    const Schedule again = s;
    const auto visit = [](const Schedule& x) {
      std::vector<std::uint64_t> seen;
      x.steps([&seen](const Step& t) {
        seen.insert(seen.end(), {t.round, t.src, t.dst, t.unit, t.unit_count});
      });
      return seen;
    };
    EXPECT_EQ(visit(s), visit(s));
    EXPECT_EQ(visit(s), visit(again));
  }
}

// The proof is worth what it refuses: every schedule with one step lost, repeated or sent elsewhere must be found out.
Schedule with_step(const Schedule& s, std::uint64_t which,
                   const std::function<void(const Step&, const StepSink&)>& change) {
  Schedule mutant = s;
  mutant.steps = [steps = s.steps, which, change](const StepSink& sink) {
    std::uint64_t index = 0;
    steps([&](const Step& step) { index++ == which ? change(step, sink) : sink(step); });
  };
  return mutant;
}

TEST_P(Algorithm, MutantsAreFoundOut) {
  const GroupShape shape = shape_of({3, 4});
  for (const CollectiveKind kind : kinds()) {
    if (!GetParam()->supports(kind, shape)) continue;
    const Schedule s = GetParam()->build(
        {.kind = kind, .size = 10'000_B, .root = 2, .channels = 2, .chunk = 2'000_B}, shape);
    const Verification proof = verify(s);
    ASSERT_TRUE(proof.ok()) << proof.text();
    for (std::uint64_t i = 0; i < proof.step_count; ++i) {
      const auto text = [&] {
        return fmt::format("{} kind {} step {}", s.algorithm, static_cast<int>(kind), i);
      };
      bool reduces = false, to_itself = false;
      const Verification lost = verify(with_step(s, i, [&](const Step& step, const StepSink&) {
        reduces = step.reduces;
        to_itself = step.src == kSwitch && proof.bytes.at(step.dst, kSwitch) > 0 && !step.reduces;
      }));
      // A multicast also writes to the rank that sent the data, which holds it anyway.
      EXPECT_TRUE(!lost.ok() || to_itself) << text();
      if (reduces) {
        EXPECT_FALSE(verify(with_step(s, i,
                                      [](const Step& step, const StepSink& sink) {
                                        sink(step);
                                        sink(step);
                                      }))
                         .ok())
            << text();
      }
      const Verification astray = verify(with_step(s, i, [&](Step step, const StepSink& sink) {
        do step.dst = step.dst == kSwitch ? 0 : (step.dst + 1) % s.ranks;
        while (step.dst == step.src);
        sink(step);
      }));
      // A partial sum may take another way and still be added once: then only the traffic can tell.
      const bool harmless = to_itself || (reduces && astray.ok());
      EXPECT_TRUE(!astray.ok() || harmless) << text();
      EXPECT_TRUE(!harmless || s.phases.empty() || !compare_phases(s, astray, 100).empty())
          << text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Algorithm,
                         ::testing::ValuesIn(all_algorithms().begin(), all_algorithms().end()),
                         [](const auto& entry) { return std::string(entry.param->name); });

TEST(Catalogue, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const AlgorithmEntry* entry : all_algorithms()) {
    EXPECT_TRUE(names.insert(entry->name).second) << entry->name;
    EXPECT_EQ(find_algorithm(entry->name), entry);
    EXPECT_FALSE(entry->summary.empty());
    EXPECT_FALSE(entry->reference.empty());
  }
  EXPECT_EQ(find_algorithm("no such algorithm"), nullptr);
}

TEST(Catalogue, EveryKindHasAnAlgorithmForEveryGroup) {
  for (const CollectiveKind kind : kinds()) {
    EXPECT_TRUE(std::any_of(all_algorithms().begin(), all_algorithms().end(),
                            [&](const AlgorithmEntry* entry) {
                              return entry->supports(kind, GroupShape{.ranks = 3});
                            }));
  }
}

}  // namespace
}  // namespace weft::collectives
