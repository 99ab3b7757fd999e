// SPDX-License-Identifier: Apache-2.0
// What NCCL does with one operation of one communicator, and what that costs: from the tuner's choice to channels of data.
//
// Channels. The operation is cut over the channels it uses. NCCL takes channels and threads away from small operations: as
//           long as bytes < channels x threads x threshold (8 B for LL x ranks on rings and LL128, 64 B for Simple).
// Ring.     Each channel sends its part around its ring: 2 (N-1) steps for all_reduce, N-1 otherwise; a step costs a
//           protocol's hop, inside a server or through a NIC, and bytes follow at the rate of the slowest shared link.
// Tree.     Up and down at once; chains inside nodes, a double binary tree between. Steps: twice the depth. Over three nodes
//           and more a NIC takes in three flows at once and loses some of its rate (communicator_rates.cc).
// NVLS.     Rounds of one chunk per channel and head through the reducing switch. A round moves channels x heads x chunk
//           bytes and costs nvls_round beside them; filling the pipeline (scatter, reduce, gather) takes 1.5 rounds.
// Protocol. LL doubles the bytes, LL128 moves KernelsSpec::ll128_share; Simple adds none. Kernels reach KernelsSpec::efficiency of a scale-up
//           link, connections ProxySpec::efficiency of a port; one channel moves at most KernelsSpec::channel_rate.
// Sends.    all_to_all, gather, scatter, send_recv are sends and receives: a step per peer, then all at once.
// Issue.    A benchmark issues operations back to back, so one takes at least what the host needs to issue it
//           (NcclHarnessCosts, unless the GPU's kernels say their own): a launch per GPU, longer by every block. The kernel
//           itself starts in KernelsSpec::start.
// Source:   NCCL src/enqueue.cc, src/device, src/init.cc, releases 2.5 to 2.30; costs are fitted, see configs.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/nccl/predict.hpp"
#include "models/nccl/tuner.hpp"
#include "sim/run/collective_ops.hpp"

namespace weft {

// What a send moves through a NIC at a time (NCCL_P2P_NET_CHUNKSIZE).
inline constexpr Bytes kNcclNetChunk = 128_KiB;

// Host time to issue an operation, by the way of launching; fitted.
struct NcclHarnessCosts {
  Time issue;              // per GPU that one process drives
  Time per_channel;        // and per block of its kernel
  bool all_local = false;  // one process drives all GPUs of the node, one after the other
};
NcclHarnessCosts nccl_harness_costs(NcclHarness harness);

// How one operation is carried out.
struct NcclPlan {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  std::uint32_t channels = 1, threads = 512;
  Bytes chunk{0};
  bool sends = false;  // made of sends and receives: no algorithm is chosen
  double believed_us = 0;
};

class NcclCommunicator {
 public:
  // Throws InputError: a variable or release that is not known, ranks that cannot reach each other.
  NcclCommunicator(const Fabric& fabric, std::vector<NodeId> gpus, const NcclSetup& setup);
  // With what nccl_topology() found before for these GPUs, release and variables.
  NcclCommunicator(const Fabric& fabric, std::vector<NodeId> gpus, const NcclSetup& setup,
                   NcclTopology topology);

  // Throws InputError when NCCL_ALGO and NCCL_PROTO leave nothing that can do it.
  NcclPlan plan(CollectiveKind kind, Bytes bytes) const;
  // Owns all it needs: it may outlive the communicator.
  Schedule schedule(const NcclPlan& plan, CollectiveKind kind, Bytes bytes,
                    std::uint32_t root = 0) const;
  CollectiveOptions options(const NcclPlan& plan) const;

  const NcclTopology& topology() const { return topology_; }
  std::span<const NodeId> gpus() const { return gpus_; }

 private:
  void add_ring(Phase& phase, const NcclPlan& plan, CollectiveKind kind, Bytes bytes,
                std::uint32_t root) const;
  void add_tree(Phase& phase, const NcclPlan& plan, Bytes bytes) const;
  void add_switch(Phase& phase, const NcclPlan& plan, CollectiveKind kind, Bytes bytes) const;
  void add_pat(Phase& phase, const NcclPlan& plan, Bytes bytes) const;
  void add_sends(Phase& phase, const NcclPlan& plan, CollectiveKind kind, Bytes bytes,
                 std::uint32_t root) const;
  Time issue(const NcclPlan& plan) const;  // host time
  NcclPlan plan_sends(CollectiveKind kind, Bytes bytes) const;
  Edge edge(std::uint32_t src, std::uint32_t dst, double weight, NcclProtocol protocol) const;
  // Bytes of the link's payload that one byte of data occupies.
  double wire_bytes(bool network, NcclProtocol protocol) const;
  Bandwidth channel_cap(const NcclPlan& plan) const;
  Bandwidth chunk_rate() const;
  double channels_of_nic(const NcclPlan& plan) const;
  double tree_weight(bool network) const;  // of the bytes on an edge of a tree
  Time ll_passes(const NcclPlan& plan, double bytes_of_step, double steps) const;
  bool nvlink_inside() const;
  double head_count() const;   // of NVLS: who owns a part of the data
  double ring_count() const {  // at least one, to divide by
    return static_cast<double>(std::max<std::size_t>(1, topology_.connections.rings.size()));
  }
  bool same_node(std::uint32_t a, std::uint32_t b) const { return node_of_[a] == node_of_[b]; }

  const Fabric& fabric_;
  std::vector<NodeId> gpus_;
  NcclSetup setup_;
  NcclTopology topology_;
  NcclRelease release_;
  std::size_t arch_;  // nccl_arch_row
  NcclFilter filter_;
  NcclHarnessCosts harness_;
  KernelsSpec kernels_;  // of the slowest GPU
  ProxySpec proxy_;
  bool back_pressure_ = false;          // a lossless network: InfiniBand, RoCE
  std::vector<std::uint32_t> node_of_;  // by rank: server
  std::uint32_t most_local_ = 1;        // GPUs of the fullest node
  Bandwidth switch_rate_{0};            // of the reducing switches per GPU
};

}  // namespace weft
