// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/test_message.hpp"

#include "sim/core/config.hpp"

namespace weft {
namespace {

// One document for all kinds of tests; what a kind does not have stays at its default.
struct TestMessage {
  std::string name, kind, pattern, from, to, gpu, type, collective, algorithm, protocol, program,
      nic;
  std::vector<CopyEnds> transfers;
  std::vector<std::string> gpus;
  CopyMethod method = CopyMethod::copy_engine;
  std::optional<bool> peer_access;
  PingMethod ping = PingMethod::flag;
  KernelTest test = KernelTest::matmul;
  std::int64_t m = 0, n = 0, k = 0, kernels = 0;
  Bytes bytes{0};
  template <class V>
  void visit(V&& v) {
    v("name", name, "", required);
    v("kind", kind, "", required);
    v("pattern", pattern, "");
    v("from", from, "");
    v("to", to, "");
    v("gpu", gpu, "");
    v("type", type, "");
    v("collective", collective, "");
    v("algorithm", algorithm, "");
    v("protocol", protocol, "");
    v("program", program, "");
    v("nic", nic, "");
    v("transfers", transfers, "");
    v("gpus", gpus, "");
    v("method", method, "");
    v("peer_access", peer_access, "");
    v("ping", ping, "");
    v("test", test, "");
    v("m", m, "");
    v("n", n, "");
    v("k", k, "");
    v("kernels", kernels, "");
    v("bytes", bytes, "");
  }
};

class Filler {
 public:
  explicit Filler(TestMessage& out) : out_(out) {}

  void operator()(const CopyTest& test) const {
    out_.kind = "copy";
    out_.transfers = test.transfers;
    out_.method = test.method;
    out_.pattern = test.pattern;
    out_.peer_access = test.peer_access;
  }
  void operator()(const LatencyTest& test) const {
    out_.kind = "latency";
    out_.from = test.from;
    out_.to = test.to;
    out_.ping = test.method;
    out_.bytes = test.bytes;
  }
  void operator()(const GpuKernelTest& test) const {
    out_.kind = "kernel";
    out_.gpu = test.gpu;
    out_.test = test.test;
    out_.type = test.type;
    out_.m = test.m;
    out_.n = test.n;
    out_.k = test.k;
    out_.kernels = test.kernels;
    out_.bytes = test.bytes;
  }
  void operator()(const CollectiveTest& test) const {
    out_.kind = "collective";
    out_.collective = test.collective;
    out_.gpus = test.gpus;
    out_.bytes = test.bytes;
    out_.algorithm = test.algorithm;
    out_.protocol = test.protocol;
  }
  void operator()(const OverlapTest& test) const {
    (*this)(test.collective);
    out_.kind = "overlap";
    out_.type = test.type;
    out_.m = test.m;
    out_.n = test.n;
    out_.k = test.k;
  }
  void operator()(const MessageToolTest& test) const {
    out_.kind = "messages";
    out_.program = test.program;
    out_.nic = test.nic;
    out_.gpu = test.gpu;
  }

 private:
  TestMessage& out_;
};

template <class T>
std::optional<T> read(const Json& document) {
  Diagnostics out;
  T value;
  read_config(document, {}, value, out);
  return out.ok() ? std::optional<T>(std::move(value)) : std::nullopt;
}

}  // namespace

Json write_test(const PlannedTest& test) {
  TestMessage message;
  message.name = test.name;
  std::visit(Filler(message), test.what);
  return write_config(message);
}

std::optional<PlannedTest> read_test(const Json& document) {
  const auto read_back = read<TestMessage>(document);
  if (!read_back) return std::nullopt;
  const TestMessage& m = *read_back;
  PlannedTest out{m.name, {}, 0};
  const CollectiveTest collective{m.collective, m.gpus, m.bytes, m.algorithm, m.protocol};
  if (m.kind == "copy") {
    out.what = CopyTest{m.transfers, m.method, m.pattern, m.peer_access};
  } else if (m.kind == "latency") {
    out.what = LatencyTest{m.from, m.to, m.ping, m.bytes};
  } else if (m.kind == "kernel") {
    out.what = GpuKernelTest{m.gpu, m.test, m.type, m.m, m.n, m.k, m.kernels, m.bytes};
  } else if (m.kind == "collective") {
    out.what = collective;
  } else if (m.kind == "overlap") {
    out.what = OverlapTest{collective, m.type, m.m, m.n, m.k};
  } else if (m.kind == "messages") {
    out.what = MessageToolTest{m.program, m.nic, m.gpu};
  } else {
    return std::nullopt;
  }
  return out;
}

Json write_machine(const ProbeMachine& machine) { return write_config(machine); }

std::optional<ProbeMachine> read_machine(const Json& document) {
  auto out = read<ProbeMachine>(document);
  if (!out || out->paths.size() != out->gpus.size()) return std::nullopt;
  for (const auto& row : out->paths) {
    if (row.size() != out->gpus.size()) return std::nullopt;
  }
  return out;
}

}  // namespace weft
