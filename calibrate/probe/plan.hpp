// SPDX-License-Identifier: Apache-2.0
// What to measure on a machine, in which order, and how long it takes.
//
// Up to kEveryPair GPUs every ordered pair is copied alone. Beyond that the number of tests grows with the GPUs, not with
// their pairs: every GPU is copied to its next neighbour by each kind of path that it has, sizes are swept on one pair per
// kind of path, and what all pairs do at once is asked by permutations: in the one of shift d, GPU i sends to GPU i + d, so that
// all links are loaded evenly and a slow one shows as the transfer that ends last. Shifts are 1, 2, 4, ...
//
// Every test has a name that says what it is; a run that is resumed knows by it what is done.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "calibrate/measured_machine.hpp"
#include "calibrate/measured_samples.hpp"
#include "calibrate/probe/timing.hpp"

namespace weft {

// ---- the machine, as a plan sees it

struct ProbeGpu {
  std::string name;
  int server = 0;
  std::string near;                // the host memory next to it: cpu0
  std::vector<std::string> far;    // other host memories that it can be copied to
  Bytes memory{0};                 // free
  std::vector<std::string> types;  // of matrix products that it can do: bf16, fp8, ...
  template <class V>
  void visit(V&& v) {
    v("name", name, "", required);
    v("server", server, "");
    v("near", near, "");
    v("far", far, "");
    v("memory", memory, "");
    v("types", types, "");
  }
};
struct ProbePath {
  std::string kind;  // NV18, PIX, SYS, network ...; empty: no way
  bool peer_access = false;
  template <class V>
  void visit(V&& v) {
    v("kind", kind, "");
    v("peer_access", peer_access, "");
  }
};
// As a document: what one process sees of its server (test_message.hpp).
struct ProbeMachine {
  std::vector<MeasuredHost> hosts;
  std::vector<ProbeGpu> gpus;
  std::vector<std::vector<ProbePath>> paths;  // [from][to]
  // Why a part of the plan cannot be done; empty: it can.
  std::string no_collectives, no_products, no_graphs, no_messages, no_flags;
  std::vector<std::string> algorithms, protocols;  // that NCCL can be forced to
  std::vector<std::string> nics;                   // that perftest is run on
  std::vector<std::string> nic_gpus;  // of each NIC, a near GPU whose memory is sent; or empty
  int gpus_per_process = 1;           // of collectives; not part of the document
  template <class V>
  void visit(V&& v) {
    v("hosts", hosts, "");
    v("gpus", gpus, "");
    v("paths", paths, "");
    v("no_collectives", no_collectives, "");
    v("no_products", no_products, "");
    v("no_graphs", no_graphs, "");
    v("no_messages", no_messages, "");
    v("no_flags", no_flags, "");
    v("algorithms", algorithms, "");
    v("protocols", protocols, "");
    v("nics", nics, "");
    v("nic_gpus", nic_gpus, "");
  }
};

// ---- tests

struct CopyEnds {
  std::string from, to;
  Bytes bytes{0};
  template <class V>
  void visit(V&& v) {
    v("from", from, "");
    v("to", to, "");
    v("bytes", bytes, "");
  }
};
struct CopyTest {
  std::vector<CopyEnds> transfers;  // start together
  CopyMethod method = CopyMethod::copy_engine;
  std::string pattern;  // empty: one transfer alone
  std::optional<bool> peer_access;
};
struct LatencyTest {
  std::string from, to;
  PingMethod method = PingMethod::flag;
  Bytes bytes{0};
};
struct GpuKernelTest {
  std::string gpu;
  KernelTest test = KernelTest::matmul;
  std::string type;
  std::int64_t m = 0, n = 0, k = 0, kernels = 0;
  Bytes bytes{0};
};
struct CollectiveTest {
  std::string collective;
  std::vector<std::string> gpus;
  Bytes bytes{0};
  std::string algorithm, protocol;
};
struct OverlapTest {
  CollectiveTest collective;
  std::string type;
  std::int64_t m = 0, n = 0, k = 0;
};
struct MessageToolTest {
  std::string program, nic;  // of perftest, both ends on this NIC
  std::string gpu;           // whose memory is sent (GPUDirect RDMA); empty: the host's
};

struct PlannedTest {
  std::string name;
  std::variant<CopyTest, LatencyTest, GpuKernelTest, CollectiveTest, OverlapTest, MessageToolTest>
      what;
  double seconds = 0;  // expected
};

struct PlanOptions {
  bool quick = false;  // under a minute on one GPU
  std::string only;    // a glob of names
};

struct ProbePlan {
  RepeatRules rules;
  std::vector<PlannedTest> tests;
  std::vector<ProbeTest> impossible;
  double seconds() const;
};

inline constexpr std::size_t kEveryPair = 8;

ProbePlan make_plan(const ProbeMachine& machine, const PlanOptions& options);

// One line per test, and the sum.
std::string plan_text(const ProbePlan& plan);

}  // namespace weft
