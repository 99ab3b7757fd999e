// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/synthetic.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "calibrate/probe/documented_machine.hpp"
#include "calibrate/probe/hidden_transfers.hpp"
#include "models/catalog.hpp"
#include "models/compute/kernels.hpp"
#include "models/nccl/predict.hpp"
#include "sim/core/check.hpp"
#include "sim/core/hash.hpp"
#include "sim/core/random.hpp"
#include "sim/core/seconds.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

constexpr double kOddRun = 0.01, kOddFactor = 1.5;
// What no fit knows of: how collectives fall behind their model with size, and how matrix shapes differ among themselves.
constexpr double kCollectiveDroop = 0.015, kDroopBytes = 32 << 20, kShapeRipple = 0.01;
constexpr Time kPoll{350'000}, kStoreToCopy{1'200'000}, kLaunchGap{200'000};
constexpr double kGraphShare = 0.45, kCollectiveBeside = 1.08;
constexpr NcclVersion kNccl{2, 27, 7};

Time from_seconds(double seconds) { return std::max(Time{1}, time_from_seconds(seconds)); }
Time scaled(Time time, double factor) { return from_seconds(time.seconds() * factor); }

Fabric build(const Json& document, Diagnostics& out) {
  FabricSpec spec = read_fabric(document, {}, out);
  return out.ok() ? build_fabric(std::move(spec), link_classes(), out) : Fabric{};
}

}  // namespace

class SyntheticBackend::Truth {
 public:
  Truth(const Json& documented, const SyntheticOptions& options, Diagnostics& out)
      : options_(options),
        documented_(build(documented, out)),
        hidden_(hide_machine(documented, options.seed, options.fault, out)) {
    if (!out.ok()) return;
    fabric_ = build(hidden_.document, out);
    if (out.ok()) transfers_ = std::make_unique<HiddenTransfers>(fabric_);
  }

  const HiddenMachine& hidden() const { return hidden_; }
  const SyntheticOptions& options() const { return options_; }

  ProbeMachine machine() {
    ProbeMachine out = documented_machine(documented_);
    for (MeasuredHost& host : out.hosts) {
      host.driver = "synthetic";
      host.nccl = version_text(kNccl);
    }
    out.algorithms = {"ring", "tree"};
    out.protocols = {"ll", "ll128", "simple"};
    return out;
  }

  // Without noise; one time per part.
  std::vector<Time> times(const PlannedTest& test) {
    return std::visit([&](const auto& what) { return time_of(what); }, test.what);
  }

  std::vector<MessageTest> messages(const MessageToolTest& test, Random& luck);

  void spend(Time time) { spent_ += time.seconds(); }
  double spent() const { return spent_; }

 private:
  NodeId node(const std::string& name) const {
    auto found = fabric_.find_node(name);
    if (!found) throw TestFailed(fmt::format("there is no {}", name));
    if (fabric_.node(*found).kind != NodeKind::cpu) return *found;
    for (const LinkId id : fabric_.out_links(*found)) {  // the socket's own memory
      if (fabric_.node(fabric_.link(id).to).kind == NodeKind::dram) return fabric_.link(id).to;
    }
    return *found;
  }
  std::vector<NodeId> nodes(const std::vector<std::string>& names) const {
    std::vector<NodeId> out;
    for (const std::string& name : names) out.push_back(node(name));
    return out;
  }

  std::vector<Time> time_of(const CopyTest& test) {
    std::vector<HiddenTransfer> all;
    for (const CopyEnds& ends : test.transfers)
      all.push_back({node(ends.from), node(ends.to), ends.bytes, test.method});
    std::vector<Time> times = transfers_->run(all);
    if (times.empty()) throw TestFailed("there is no way between them");
    return times;
  }

  std::vector<Time> time_of(const LatencyTest& test) {
    const NodeId from = node(test.from), to = node(test.to);
    if (test.method == PingMethod::copy) {
      const auto times = transfers_->run(std::vector{HiddenTransfer{from, to, test.bytes}});
      if (times.empty()) throw TestFailed("there is no way between them");
      return {Time{times.front().ps + kStoreToCopy.ps}};
    }
    const auto latency = transfers_->latency(from, to);
    if (!latency) throw TestFailed("there is no way between them");
    return {Time{latency->ps + kPoll.ps}};
  }

  KernelTimes kernels(const std::string& gpu) const {
    GpuSpec spec = fabric_.gpu_spec(node(gpu));
    if (spec.compute) spec.compute->sustained = 1;  // one kernel alone is not throttled
    try {
      return KernelTimes(spec, SoftwareSpec{});
    } catch (const InputError&) {
      throw TestFailed(fmt::format("nothing is known about the kernels of {}", gpu));
    }
  }

  double product(const std::string& gpu, const std::string& type, std::int64_t m, std::int64_t n,
                 std::int64_t k) const {
    Gemm gemm{
        .m = static_cast<double>(m), .n = static_cast<double>(n), .k = static_cast<double>(k)};
    for (const auto& precision : enum_names(Precision{})) {
      if (precision.name == type) gemm.precision = precision.value;
    }
    const KernelTimes times = kernels(gpu);
    try {
      const std::string shape = fmt::format("{} {} {} {}", type, m, n, k);
      Random luck(options_.seed, "shape", stable_hash(shape));
      return times.gemm(gemm) * (1 + luck.uniform(-kShapeRipple, kShapeRipple));
    } catch (const InputError&) {
      throw TestFailed(fmt::format("{} has no products of {}", gpu, type));
    }
  }

  std::vector<Time> time_of(const GpuKernelTest& test) {
    const GpuSpec& spec = fabric_.gpu_spec(node(test.gpu));
    const Time launch = spec.kernel_launch.value_or(Time{3'000'000});
    switch (test.test) {
      case KernelTest::matmul:
        return {from_seconds(product(test.gpu, test.type, test.m, test.n, test.k))};
      case KernelTest::copy:
      case KernelTest::triad:
        return {from_seconds(kernels(test.gpu).memory({.bytes = test.bytes.value()}))};
      case KernelTest::launch:
        return {Time{launch.ps + kLaunchGap.ps}};
      case KernelTest::graph_launch:
        return {scaled(launch, kGraphShare)};
    }
    return {};
  }

  std::vector<Time> time_of(const CollectiveTest& test) {
    CollectiveKind kind{};
    bool known = false;
    for (const auto& name : enum_names(CollectiveKind{})) {
      if (name.name != test.collective) continue;
      kind = name.value;
      known = true;
    }
    if (!known) throw TestFailed(fmt::format("there is no collective {}", test.collective));
    NcclSetup setup;
    setup.version = kNccl;
    setup.harness = NcclHarness::process_per_gpu;
    setup.algorithm = test.algorithm;
    setup.protocol = test.protocol;
    try {
      const std::vector<NodeId> gpus = nodes(test.gpus);
      const auto rows = predict_nccl(fabric_, gpus, kind, std::vector{test.bytes}, setup);
      const double share = test.bytes.value() / (test.bytes.value() + kDroopBytes);
      return {scaled(rows.at(0).time, 1 + kCollectiveDroop * share)};
    } catch (const InputError& error) {
      std::string why = error.what();
      throw TestFailed(why.substr(0, why.find('\n')));
    } catch (const LimitReached& limit) {
      throw TestFailed(limit.what());
    }
  }

  std::vector<Time> time_of(const OverlapTest& test) {
    const std::string& gpu = test.collective.gpus.front();
    const Time kernel = from_seconds(product(gpu, test.type, test.m, test.n, test.k));
    const Time collective = time_of(test.collective).front();
    const double beside = kernels(gpu).slowdown_beside_collectives();
    return {kernel, collective, scaled(kernel, beside), scaled(collective, kCollectiveBeside)};
  }

  std::vector<Time> time_of(const MessageToolTest&) { return {}; }

  SyntheticOptions options_;
  Fabric documented_;
  HiddenMachine hidden_;
  Fabric fabric_;
  std::unique_ptr<HiddenTransfers> transfers_;
  double spent_ = 0;
};

// Messages of one size sent one after the other from a NIC to the one of the same place in the next server.
std::vector<MessageTest> SyntheticBackend::Truth::messages(const MessageToolTest& test,
                                                           Random& luck) {
  const std::size_t slash = test.nic.find('/');
  if (slash == std::string::npos) throw TestFailed("the NICs of one server are not joined");
  const std::string peer =
      (test.nic.starts_with("server0/") ? "server1" : "server0") + test.nic.substr(slash);
  const auto route = transfers_->shortest(node(test.nic), node(peer));
  if (!route) throw TestFailed(fmt::format("no way from {} to {}", test.nic, peer));
  const bool latency = test.program == "ib_write_lat";
  MessageTest out;
  out.name = latency ? "RDMA_Write Latency" : "RDMA_Write BW";
  out.setup["from"] = test.nic;
  out.setup["to"] = peer;
  const double rate = static_cast<double>(route->rate(fabric_).bps);
  const double nics = 2 * fabric_.type_of(ServerId{0}).nic_specs.front().latency.seconds();
  for (Bytes bytes = latency ? 8_B : 64_KiB; bytes <= (latency ? 4_KiB : 8_MiB);
       bytes = Bytes{bytes.count * 8}) {
    const double factor = 1 + options_.noise * luck.normal();
    const double wire = bytes.value() * 8 / rate;
    MessageSample& sample = out.samples.emplace_back();
    sample.bytes = bytes;
    sample.iterations = 1000;
    if (latency) {
      sample.latency = from_seconds((route->latency.seconds() + nics + wire) * factor);
    } else {
      sample.bandwidth = Bandwidth{static_cast<std::int64_t>(rate / factor)};
    }
  }
  return {out};
}

namespace {

class SyntheticTest final : public PreparedTest {
 public:
  using Spend = std::function<void(Time)>;

  SyntheticTest(std::vector<Time> truth, std::vector<MessageTest> messages,
                const SyntheticOptions& options, const std::string& name, Spend spend)
      : truth_(std::move(truth)),
        messages_(std::move(messages)),
        noise_(options.noise),
        luck_(options.seed, "noise", stable_hash(name)),
        spend_(std::move(spend)) {
    for (Time& time : truth_) time = scaled(time, factor());
  }

  std::vector<Time> once() override {
    const double odd = noise_ > 0 && luck_.chance(kOddRun) ? kOddFactor : 1;
    std::vector<Time> out;
    Time longest{0};
    for (const Time time : truth_) {
      out.push_back(scaled(time, factor() * odd));
      longest = std::max(longest, out.back());
    }
    spend_(longest);
    return out;
  }

  std::vector<MessageTest> messages() override { return messages_; }

 private:
  double factor() { return std::max(0.5, 1 + noise_ * luck_.normal()); }

  std::vector<Time> truth_;
  std::vector<MessageTest> messages_;
  double noise_;
  Random luck_;
  Spend spend_;
};

}  // namespace

SyntheticBackend::SyntheticBackend(const Json& documented, const SyntheticOptions& options,
                                   Diagnostics& out)
    : truth_(std::make_unique<Truth>(documented, options, out)) {}

SyntheticBackend::~SyntheticBackend() = default;

ProbeMachine SyntheticBackend::machine() { return truth_->machine(); }

std::unique_ptr<PreparedTest> SyntheticBackend::prepare(const PlannedTest& test) {
  if (truth_->options().pace > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(truth_->options().pace));
  std::vector<MessageTest> messages;
  if (const auto* tool = std::get_if<MessageToolTest>(&test.what)) {
    Random luck(truth_->options().seed, "messages", stable_hash(test.name));
    messages = truth_->messages(*tool, luck);
  }
  return std::make_unique<SyntheticTest>(truth_->times(test), std::move(messages),
                                         truth_->options(), test.name,
                                         [this](Time time) { truth_->spend(time); });
}

double SyntheticBackend::now() { return truth_->spent(); }

const HiddenMachine& SyntheticBackend::truth() const { return truth_->hidden(); }

}  // namespace weft
