// SPDX-License-Identifier: Apache-2.0
// What weft-probe measures: copies, latencies, kernels, and kernels beside collectives. Every test runs often; the file holds
// the median and how far the runs lie apart. Nothing is thrown away: a run far from the others is listed under `outliers`, a
// test whose runs do not agree says `unsettled`, and both still count in the median, which they hardly move.
//
//   {"from": "gpu0", "to": "gpu1", "bytes": "64 MiB", "method": "copy-engine", "time": "2510 us", "spread": "4 us",
//    "repeats": 20, "together": 3}
//
// Times are of one operation. Rates are not stored: they are bytes over time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.hpp"

namespace weft {

// How often a test ran and how far its runs lie apart.
struct SampleRepeats {
  std::optional<Time> spread, fastest, slowest;
  int repeats = 0;
  std::vector<Time> outliers;
  std::optional<bool> unsettled;
  std::optional<Frequency> clock;
  template <class V>
  void visit(V&& v) {
    v("spread", spread, "between the quartiles of the repeats");
    v("fastest", fastest, "of the repeats");
    v("slowest", slowest, "of the repeats");
    v("repeats", repeats, "timed runs behind the time, which is their median", between(1, 2e9));
    v("outliers", outliers, "repeats beyond three spreads from the quartiles; kept in the median",
      not_empty);
    v("unsettled", unsettled, "the repeats do not agree: the spread is more than a tenth");
    v("clock", clock, "of the multiprocessors just after the test", positive);
  }
};

// Who moves the data of a copy.
enum class CopyMethod { copy_engine, sm, pageable, unknown };
constexpr auto enum_names(CopyMethod) {
  using enum CopyMethod;
  return std::array<EnumName<CopyMethod>, 4>{
      {{copy_engine, "copy-engine"}, {sm, "sm"}, {pageable, "pageable"}, {unknown, "unknown"}}};
}

// One transfer. Transfers with one number under `together` started at the same instant; the time of each is from that instant
// to its own end, so what finishes first leaves the others its share of the way.
struct CopySample {
  std::string from, to;
  Bytes bytes{0};
  CopyMethod method = CopyMethod::copy_engine;
  std::optional<bool> peer_access;
  Time time{0};
  SampleRepeats repeated;
  int together = 0;
  std::string pattern;
  template <class V>
  void visit(V&& v) {
    v("from", from, "gpu0, cpu0, ...; cpu is memory of the host", required, not_empty);
    v("to", to, "gpu0, cpu0, ...", required, not_empty);
    v("bytes", bytes, "of this transfer", required, positive);
    v("method", method, "who moves the data; pageable: host memory that is not pinned");
    v("peer_access", peer_access, "whether the GPUs may address each other; absent for the host");
    v("time", time, "median", required, positive);
    repeated.visit(v);
    v("together", together, "number of the group that started together; absent when alone",
      between(1, 2e9));
    v("pattern", pattern, "of the group: both-ways, all-to-one, one-to-all, permutation, ...",
      not_empty);
  }
};

// A message of a few bytes there and back: half of the round.
enum class PingMethod { flag, copy };
constexpr auto enum_names(PingMethod) {
  return std::array<EnumName<PingMethod>, 2>{
      {{PingMethod::flag, "flag"}, {PingMethod::copy, "copy"}}};
}
struct LatencySample {
  std::string from, to;
  PingMethod method = PingMethod::flag;
  Bytes bytes{0};
  Time time{0};
  SampleRepeats repeated;
  template <class V>
  void visit(V&& v) {
    v("from", from, "gpu0, cpu0, ...", required, not_empty);
    v("to", to, "gpu0, cpu0, ...", required, not_empty);
    v("method", method,
      "flag: a running kernel stores a word that another polls; copy: one call of a copy and "
      "waiting for it");
    v("bytes", bytes, "of the message", positive);
    v("time", time, "one way", required, positive);
    repeated.visit(v);
  }
};

enum class KernelTest { matmul, copy, triad, launch, graph_launch };
constexpr auto enum_names(KernelTest) {
  using enum KernelTest;
  return std::array<EnumName<KernelTest>, 5>{{{matmul, "matmul"},
                                              {copy, "copy"},
                                              {triad, "triad"},
                                              {launch, "launch"},
                                              {graph_launch, "graph-launch"}}};
}
struct KernelSample {
  std::string gpu, type;
  KernelTest test = KernelTest::matmul;
  std::int64_t m = 0, n = 0, k = 0, kernels = 0;
  Bytes bytes{0};
  Time time{0};
  SampleRepeats repeated;
  template <class V>
  void visit(V&& v) {
    v("gpu", gpu, "that ran it", required, not_empty);
    v("test", test,
      "matmul: C = A B of an m x k and a k x n matrix; copy: b = a; triad: a = b + s c; launch: "
      "empty kernels one after the other; graph-launch: the same as one graph",
      required);
    v("type", type, "of the elements: fp32, tf32, fp16, bf16, fp8, int8, fp64", not_empty);
    v("m", m, "rows of the result", between(1, 2e9));
    v("n", n, "columns of the result", between(1, 2e9));
    v("k", k, "length of the sums", between(1, 2e9));
    v("bytes", bytes, "read and written in all by a copy or triad", positive);
    v("kernels", kernels, "launched one after the other; the time is of one of them",
      between(1, 2e9));
    v("time", time, "median; of one kernel", required, positive);
    repeated.visit(v);
  }
};

// A matrix product and a collective that start together, each often enough that both run all the time.
struct OverlapSample {
  std::string gpu, type, collective;
  std::int64_t m = 0, n = 0, k = 0;
  int ranks = 0;
  Bytes bytes{0};
  Time kernel_alone{0}, collective_alone{0}, kernel{0}, collective_time{0};
  SampleRepeats repeated;
  template <class V>
  void visit(V&& v) {
    v("gpu", gpu, "whose times these are", required, not_empty);
    v("type", type, "of the elements of the product", required, not_empty);
    v("m", m, "rows of the product", required, between(1, 2e9));
    v("n", n, "columns of the product", required, between(1, 2e9));
    v("k", k, "length of the sums", required, between(1, 2e9));
    v("collective", collective, "all_reduce, all_gather, ...", required, not_empty);
    v("ranks", ranks, "of the collective", required, between(1, 10'000'000));
    v("bytes", bytes, "as nccl-tests counts it", required, positive);
    v("kernel_alone", kernel_alone, "one product with nothing beside it", required, positive);
    v("collective_alone", collective_alone, "one collective with nothing beside it", required,
      positive);
    v("kernel", kernel, "one product beside the collective: median", required, positive);
    v("collective_time", collective_time, "one collective beside the product: median", required,
      positive);
    repeated.visit(v);
  }
};

// What became of a test of the plan. One that failed, or that this machine cannot do, is told and does not end the run.
enum class TestState { done, failed, impossible, not_run };
constexpr auto enum_names(TestState) {
  using enum TestState;
  return std::array<EnumName<TestState>, 4>{
      {{done, "done"}, {failed, "failed"}, {impossible, "impossible"}, {not_run, "not-run"}}};
}
struct ProbeTest {
  std::string test, reason;
  TestState state = TestState::done;
  template <class V>
  void visit(V&& v) {
    v("test", test, "its name in the plan", required, not_empty);
    v("state", state, "done, failed, impossible on this machine, or not run yet", required);
    v("reason", reason, "why it is not done", not_empty);
  }
};

}  // namespace weft
