// SPDX-License-Identifier: Apache-2.0
// What one edge of a channel weighs and how fast a channel may go.
#include <algorithm>
#include <set>

#include "models/nccl/communicator.hpp"

namespace weft {
namespace {

// What trees reach of a NIC's rate over three nodes and more, where inner nodes receive from two children and a parent at once.
// Lossless networks answer such fan-in with back-pressure: the ratio of tree to ring is 0.79 over RoCE (nccl#1368, 5 x 8 H100)
// and 0.85 over EDR (nccl#319, 8 DGX-1); this is their mean, NCCL's tuner takes 0.92. Slingshot and EFA control incast by flow:
// trees over 540 Polaris nodes are no slower than their bytes.
constexpr double kTreeFanIn = 0.82;

}  // namespace

Edge NcclCommunicator::edge(std::uint32_t src, std::uint32_t dst, double weight,
                            NcclProtocol protocol) const {
  const bool network = src != kSwitch && dst != kSwitch && !same_node(src, dst);
  return {src, dst, weight * wire_bytes(network, protocol)};
}

bool NcclCommunicator::nvlink_inside() const {
  const auto ring = topology_.graphs.find(NcclPattern::ring);
  return ring != topology_.graphs.end() && ring->second.type_intra <= NcclPath::nvb;
}

double NcclCommunicator::head_count() const {
  const std::size_t heads = topology_.connections.nvls_heads.size();
  return heads > 0 ? static_cast<double>(heads) : most_local_;
}

double NcclCommunicator::wire_bytes(bool network, NcclProtocol protocol) const {
  const double reached = network ? proxy_.efficiency : nvlink_inside() ? kernels_.efficiency : 1;
  const double wire = protocol == NcclProtocol::ll      ? 2
                      : protocol == NcclProtocol::ll128 ? 1 / kernels_.ll128_share
                                                        : 1;
  return wire / reached;
}

// Of the bytes that cross an edge once.
Bandwidth NcclCommunicator::channel_cap(const NcclPlan& plan) const {
  Bandwidth cap = kernels_.channel_rate;
  const auto limit = [&](double gbs) {
    const Bandwidth most{static_cast<std::int64_t>(gbs * 8e9)};
    cap = cap.bps > 0 ? std::min(cap, most) : most;
  };
  const std::size_t scale = nccl_scale_column(topology_.nodes);
  if (plan.protocol == NcclProtocol::ll && topology_.nodes > 1)
    limit(release_.ll_max[topology_.amd_cpu ? 1 : 0][scale] / ring_count());
  // The chunks of one NIC take turns, whatever their channels.
  if (topology_.nodes > 1 && proxy_.chunk_time.ps > 0)
    limit(chunk_rate().bytes_per_s() * 1e-9 / channels_of_nic(plan));
  if (plan.protocol == NcclProtocol::ll128) limit(release_.ring_ll128_max[arch_][scale]);
  return cap;
}

// Of one NIC whose host or path needs `chunk_time` for every chunk.
Bandwidth NcclCommunicator::chunk_rate() const {
  return {static_cast<std::int64_t>(kNcclNetChunk.value() * 8 / proxy_.chunk_time.seconds())};
}

double NcclCommunicator::channels_of_nic(const NcclPlan& plan) const {
  if (plan.sends) return plan.channels;
  std::set<std::int32_t> nics;
  for (const NcclChannel& channel : topology_.graphs.at(NcclPattern::ring).channels)
    nics.insert(channel.nic_out);
  return std::max(1.0, static_cast<double>(plan.channels) /
                           static_cast<double>(std::max<std::size_t>(1, nics.size())));
}

double NcclCommunicator::tree_weight(bool network) const {
  return network && back_pressure_ && topology_.nodes > 2 ? 1 / kTreeFanIn : 1;
}

// LL stores and polls 8 bytes per thread and pass; passes after the first one of a step cost their bytes at the rate NCCL
// measured for the GPU.
Time NcclCommunicator::ll_passes(const NcclPlan& plan, double bytes_of_step, double steps) const {
  if (plan.protocol != NcclProtocol::ll || topology_.nodes > 1) return {};
  const double beyond = bytes_of_step - 8.0 * plan.threads;
  if (beyond <= 0) return {};
  const double rate = release_.ll_max[arch_][0] * 1e9 / ring_count();
  return Time{static_cast<std::int64_t>(beyond * steps / rate * 1e12)};
}

}  // namespace weft
