// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/cuda/cuda_backend.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "calibrate/probe/crew.hpp"
#include "calibrate/probe/cuda/collectives.hpp"
#include "calibrate/probe/cuda/compute.hpp"
#include "calibrate/probe/cuda/copies.hpp"
#include "calibrate/probe/cuda/machine.hpp"
#include "calibrate/probe/cuda/perftest_tool.hpp"
#include "calibrate/probe/cuda/runtime.hpp"

namespace weft {
namespace {

using namespace cuda;

class CudaMember final : public CrewMember {
 public:
  explicit CudaMember(const Launch& launch)
      : launch_(launch), server_(look_at_server(launch.size == 1)) {
    const int count = static_cast<int>(server_.host.gpus.size());
    if (launch.size == 1) {
      for (int device = 0; device < count; ++device) own_.push_back(device);
    } else {
      // A launcher may show each process all GPUs or its own only.
      own_.push_back(count > 1 ? launch.local_rank % count : 0);
    }
    if (launch.rank == 0) dump_topology();
  }

  ProbeMachine machine() override {
    ProbeMachine out;
    out.hosts.push_back(server_.host);
    out.paths = server_.paths;
    std::string why;
    for (std::size_t i = 0; i < server_.host.gpus.size(); ++i) out.gpus.push_back(gpu(i, why));
    if (!why.empty()) out.no_products = why;
    if (nccl(&why) == nullptr) out.no_collectives = why;
    out.algorithms = {"ring", "tree"};
    out.protocols = {"ll", "ll128", "simple"};
    for (const MeasuredNic& nic : server_.host.nics) {
      out.nics.push_back(nic.name);
      std::string& near = out.nic_gpus.emplace_back();
      for (const MeasuredGpu& gpu : server_.host.gpus) {
        if (near.empty() && gpu.numa == nic.numa) near = fmt::format("gpu{}", gpu.device);
      }
    }
    out.no_messages = why_no_perftest();
    if (out.nics.empty()) out.no_messages = "no InfiniBand or RoCE device";
    return out;
  }

  std::vector<std::string> own() override {
    std::vector<std::string> out;
    for (const int device : own_) out.push_back(fmt::format("gpu{}", device));
    return out;
  }

  std::unique_ptr<PreparedTest> prepare(const PlannedTest& test) override {
    if (const auto* copy = std::get_if<CopyTest>(&test.what)) return prepare_copies(*copy, server_);
    if (const auto* latency = std::get_if<LatencyTest>(&test.what))
      return prepare_latency(*latency, server_);
    if (const auto* kernel = std::get_if<GpuKernelTest>(&test.what))
      return prepare_kernel(*kernel, server_);
    if (const auto* tool = std::get_if<MessageToolTest>(&test.what)) return run_perftest(*tool);
    throw TestFailed("it takes part in no such test");
  }

  std::string new_context() override { return new_unique_id(); }

  std::unique_ptr<PreparedTest> join(const PlannedTest& test, const CrewPart& part) override {
    std::vector<LocalRank> local;
    for (std::size_t i = 0; i < part.gpus.size(); ++i)
      local.push_back({part.own_ranks.at(i), place_of(part.gpus[i]).device});
    const auto* overlap = std::get_if<OverlapTest>(&test.what);
    const CollectiveTest& collective =
        overlap != nullptr ? overlap->collective : std::get<CollectiveTest>(test.what);
    auto communicator =
        communicators_.get(part.context, part.context, part.ranks, local, collective);
    if (overlap != nullptr) return prepare_overlap(*overlap, std::move(communicator));
    return prepare_collective(collective, std::move(communicator));
  }

  bool broken() const override { return device_is_broken(); }

 private:
  ProbeGpu gpu(std::size_t i, std::string& why) const {
    const MeasuredGpu& facts = server_.host.gpus[i];
    ProbeGpu out;
    out.name = fmt::format("gpu{}", i);
    const int socket = server_.socket_of_gpu[i];
    out.near = fmt::format("cpu{}", std::max(0, socket));
    for (int other = 0; other < server_.host.sockets; ++other) {
      if (other != std::max(0, socket)) out.far.push_back(fmt::format("cpu{}", other));
    }
    out.memory = Bytes{static_cast<std::int64_t>(server_.free_memory[i])};
    out.types = product_types(facts.compute_capability, &why);
    return out;
  }

  // NCCL writes what it sees when a communicator is made.
  void dump_topology() {
    if (nccl() == nullptr) return;
    std::error_code none;
    const auto path = std::filesystem::temp_directory_path(none) /
                      fmt::format("weft-probe-topology-{}.xml", ::getpid());
    const bool had = std::getenv("NCCL_TOPO_DUMP_FILE") != nullptr;
    if (had) return;
    ::setenv("NCCL_TOPO_DUMP_FILE", path.c_str(), 1);
    try {
      std::vector<LocalRank> ranks;
      for (std::size_t i = 0; i < own_.size(); ++i) ranks.push_back({static_cast<int>(i), own_[i]});
      Communicators once;
      once.get("topology", new_unique_id(), static_cast<int>(ranks.size()), ranks, {});
      std::ostringstream text;
      text << std::ifstream(path).rdbuf();
      server_.host.topology = std::move(text).str();
    } catch (const DeviceBroken& broken) {
      throw NoMachine(fmt::format("NCCL hangs on this machine: {}", broken.what()));
    } catch (const TestFailed&) {
      // Then the file has no topology; the tests of collectives will say why.
    }
    ::unsetenv("NCCL_TOPO_DUMP_FILE");
    std::filesystem::remove(path, none);
  }

  Launch launch_;
  Server server_;
  std::vector<int> own_;
  Communicators communicators_;
};

}  // namespace

std::unique_ptr<ProbeBackend> make_cuda_backend() {
  const Launch launch = read_launch();
  try {
    return std::make_unique<Crew>(std::make_unique<CudaMember>(launch), launch);
  } catch (const TestFailed& failed) {
    throw NoMachine(failed.what());
  }
}

}  // namespace weft
