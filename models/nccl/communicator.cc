// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/communicator.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "models/collectives/parts.hpp"
#include "sim/core/hash.hpp"

namespace weft {
namespace {

using enum CollectiveKind;

// Buffers of a channel (NCCL src/init.cc, src/include/device.h): 4 MiB for Simple in 8 steps; an LL buffer holds 256 KiB of
// data, LL128 4.6 MB.
constexpr Bytes kSimpleStep = 512_KiB;
constexpr std::int64_t kRingChunkSteps = 4;
constexpr Bytes kLlChunk = 32_KiB;
constexpr Bytes kLl128Chunk{576'000};
constexpr Bytes kNvlsChunk = 128_KiB;
constexpr Bytes kNvlinkSendChunk = 512_KiB, kPcieSendChunk = 128_KiB;
constexpr std::uint32_t kLlThreads = 512, kLl128Threads = 640, kSimpleThreads = 512,
                        kLeastThreads = 96;
constexpr double kNvlsFill = 1.5;   // rounds
constexpr double kFittedHeads = 8;  // of the tables that nvls_round was fitted to
// From this release on the host writes the work of all channels at once, before it channel by channel (src/enqueue.cc).
constexpr NcclVersion kWorkOfAllChannels{2, 22, 0};

std::uint32_t u32(std::size_t n) { return static_cast<std::uint32_t>(n); }

Bytes part_of(double bytes) { return {static_cast<std::int64_t>(std::ceil(bytes))}; }

std::uint64_t same_edges(NcclAlgorithm algorithm, NcclProtocol protocol, CollectiveKind kind,
                         std::uint64_t detail) {
  std::uint64_t key = mix64(static_cast<std::uint64_t>(algorithm) + 1);
  key = mix64(key ^ (static_cast<std::uint64_t>(protocol) + 1));
  key = mix64(key ^ (static_cast<std::uint64_t>(kind) + 1));
  return mix64(key ^ detail) | 1;
}

}  // namespace

// Fitted on the tables of tests/validation that were run so: a process per GPU on H100 (nGpus 1), one process on 8 A100, 8 V100
// and 12 V100. Where nothing is said a process per GPU is taken: what training does, and the fastest.
NcclHarnessCosts nccl_harness_costs(NcclHarness harness) {
  switch (harness) {
    case NcclHarness::process_per_gpu:
    case NcclHarness::unknown:
      return {.issue = 6_us, .per_channel = 50_ns, .all_local = false};
    case NcclHarness::one_process:
      return {.issue = 4400_ns, .per_channel = 190_ns, .all_local = true};
    case NcclHarness::graph:
      return {.issue = 0_us, .per_channel = 0_ns, .all_local = false};
  }
  return {};
}

NcclCommunicator::NcclCommunicator(const Fabric& fabric, std::vector<NodeId> gpus,
                                   const NcclSetup& setup)
    : NcclCommunicator(fabric, gpus, setup,
                       nccl_topology(fabric, gpus, setup.version, setup.environment)) {}

NcclCommunicator::NcclCommunicator(const Fabric& fabric, std::vector<NodeId> gpus,
                                   const NcclSetup& setup, NcclTopology topology)
    : fabric_(fabric),
      gpus_(std::move(gpus)),
      setup_(setup),
      topology_(std::move(topology)),
      release_(nccl_release(setup.version)),
      arch_(nccl_arch_row(topology_.min_compute_capability)),
      harness_(nccl_harness_costs(setup.harness)) {
  Diagnostics out;
  NcclEnvironment environment = setup.environment;
  if (!setup.algorithm.empty()) environment.variables["NCCL_ALGO"] = setup.algorithm;
  if (!setup.protocol.empty()) environment.variables["NCCL_PROTO"] = setup.protocol;
  filter_ = nccl_filter(environment, out);
  out.throw_if_errors();
  std::map<ServerId, std::uint32_t> used;
  for (const NodeId gpu : gpus_) {
    const ServerId server = fabric.node(gpu).server;
    const auto [it, fresh] = used.try_emplace(server, 0);
    node_of_.push_back(server.v);
    most_local_ = std::max(most_local_, ++it->second);
    const ServerType& type = fabric.type_of(server);
    if (!fresh) continue;
    const GpuSpec& spec = fabric.gpu_spec(gpu);
    if (spec.kernels && (used.size() == 1 || spec.kernels->ll_step > kernels_.ll_step))
      kernels_ = *spec.kernels;
    if (!type.nic_specs.empty() && type.nic_specs.front().proxy)
      proxy_ = *type.nic_specs.front().proxy;
    if (!type.nic_specs.empty())
      back_pressure_ = type.nic_specs.front().transport == "infiniband" ||
                       type.nic_specs.front().transport == "roce";
    if (type.reduction && type.reduction->rate && spec.nvlink)
      switch_rate_ = scaled(*type.reduction->rate, spec.nvlink->links);
  }
  harness_.issue = kernels_.issue.value_or(harness_.issue);
  harness_.per_channel = kernels_.issue_block.value_or(harness_.per_channel);
}

Time NcclCommunicator::issue(const NcclPlan& plan) const {
  const std::int64_t blocks =
      plan.sends ? std::min<std::int64_t>(std::int64_t{plan.channels} * (u32(gpus_.size()) - 1),
                                          topology_.p2p_channels)
                 : plan.channels;
  const bool one_by_one = plan.sends || setup_.version < kWorkOfAllChannels;
  const Time per_block = one_by_one ? harness_.per_channel : Time{0};
  return (harness_.issue + per_block * blocks) *
         static_cast<std::int64_t>(harness_.all_local ? most_local_ : 1);
}

CollectiveOptions NcclCommunicator::options(const NcclPlan& plan) const {
  CollectiveOptions out;
  out.routing = fabric_.routing();
  out.costs.launch = kernels_.start;
  out.issue = issue(plan);
  switch (plan.protocol) {
    case NcclProtocol::ll:
      out.costs.step = kernels_.ll_step;
      out.costs.network_step = proxy_.ll_step;
      break;
    case NcclProtocol::ll128:
      out.costs.step = kernels_.ll128_step;
      out.costs.network_step = proxy_.bulk_step;
      break;
    case NcclProtocol::simple:
      out.costs.step = kernels_.simple_step;
      out.costs.network_step = proxy_.bulk_step;
      break;
  }
  const auto off = [&](const char* name, std::string_view value) {
    const std::string* text = setup_.environment.find(name);
    return text != nullptr && *text == value;
  };
  out.peer_access = !off("NCCL_P2P_DISABLE", "1") && !off("NCCL_P2P_LEVEL", "LOC");
  out.gpudirect = !off("NCCL_NET_GDR_LEVEL", "LOC") && !off("NCCL_NET_GDR_LEVEL", "0");
  return out;
}

NcclPlan NcclCommunicator::plan(CollectiveKind kind, Bytes bytes) const {
  if (kind == all_to_all || kind == gather || kind == scatter || kind == send_recv)
    return plan_sends(kind, bytes);
  NcclPlan plan;
  if (gpus_.size() < 2) return plan;
  const auto choices = nccl_choices(topology_, release_, filter_, kind, bytes);
  if (choices.empty()) {
    throw InputError(
        fmt::format("error: NCCL has no {} here that the given algorithm and protocol allow\n"
                    "    leave --algo, --proto, NCCL_ALGO and NCCL_PROTO out, or see `weft topo "
                    "FABRIC --nccl`\n",
                    write_config(kind).text));
  }
  plan.algorithm = choices.front().algorithm;
  plan.protocol = choices.front().protocol;
  plan.believed_us = choices.front().believed_us;
  const auto count = static_cast<double>(bytes.count);
  const bool in_switch =
      plan.algorithm == NcclAlgorithm::nvls || plan.algorithm == NcclAlgorithm::nvls_tree;
  plan.channels = std::max<std::uint32_t>(
      1, in_switch ? topology_.nvls_channels : u32(topology_.connections.rings.size()));
  if (in_switch) {
    plan.threads = kLl128Threads;
    // NCCL shrinks the chunk until an operation has enough rounds (src/enqueue.cc).
    const double operations = plan.channels * head_count();
    const bool tree = plan.algorithm == NcclAlgorithm::nvls_tree;
    plan.chunk = tree && topology_.nodes >= 4 ? 64_KiB : kNvlsChunk;
    const auto shrink = [&](double rounds, Bytes to) {
      if (plan.chunk > to && count < rounds * operations * plan.chunk.value()) plan.chunk = to;
    };
    if (tree) {
      shrink(4, 64_KiB);
      shrink(1, 32_KiB);
    } else {
      shrink(64, 64_KiB);
      shrink(8, 32_KiB);
      shrink(2, 16_KiB);
    }
    return plan;
  }
  double threshold = plan.protocol == NcclProtocol::simple ? 64 : 8;
  if (plan.protocol == NcclProtocol::ll && plan.algorithm == NcclAlgorithm::ring)
    threshold *= static_cast<double>(gpus_.size());
  std::uint32_t threads = plan.protocol == NcclProtocol::ll      ? kLlThreads
                          : plan.protocol == NcclProtocol::ll128 ? kLl128Threads
                                                                 : kSimpleThreads;
  std::uint32_t channels = plan.channels;
  while (channels > 1 && count < channels * threads * threshold) --channels;
  while (threads % 128 == 0 && count < channels * threads * threshold) threads /= 2;
  plan.channels = channels;
  plan.threads =
      plan.algorithm == NcclAlgorithm::tree ? kLl128Threads : std::max(threads, kLeastThreads);
  plan.chunk = plan.protocol == NcclProtocol::ll      ? kLlChunk
               : plan.protocol == NcclProtocol::ll128 ? kLl128Chunk
               : plan.algorithm == NcclAlgorithm::ring && kind != broadcast && kind != reduce
                   ? kSimpleStep * kRingChunkSteps
                   : kSimpleStep;
  return plan;
}

// Channels of a send: from the least that still gives every rank one, doubled while a part is long (src/enqueue.cc).
NcclPlan NcclCommunicator::plan_sends(CollectiveKind kind, Bytes bytes) const {
  NcclPlan plan;
  plan.sends = true;
  const bool network = topology_.nodes > 1;
  plan.chunk = network ? kNcclNetChunk : nvlink_inside() ? kNvlinkSendChunk : kPcieSendChunk;
  const double ranks = static_cast<double>(gpus_.size());
  const double part = kind == send_recv ? bytes.value() : bytes.value() / ranks;
  const std::uint32_t most = std::max<std::uint32_t>(1, topology_.p2p_channels_per_peer);
  std::uint32_t least = most;
  while (least > 1 && least * ranks > topology_.p2p_channels) least /= 2;
  const double least_part = plan.chunk.value() / (network ? 2 : 8);
  const double most_part = plan.chunk.value() * (network ? 1 : 32);
  std::uint32_t channels = static_cast<std::uint32_t>(
      std::clamp(std::ceil(part / least_part), 1.0, static_cast<double>(least)));
  while (part / channels > most_part && channels <= most / 2) channels *= 2;
  plan.channels = channels;
  return plan;
}

void NcclCommunicator::add_ring(Phase& phase, const NcclPlan& plan, CollectiveKind kind,
                                Bytes bytes, std::uint32_t root) const {
  const auto n = static_cast<double>(gpus_.size());
  const double nodes = static_cast<double>(topology_.nodes);
  const bool whole = kind == broadcast || kind == reduce;
  const double steps = kind == all_reduce ? 2 * (n - 1) : n - 1;
  const double across = topology_.nodes > 1 ? steps * nodes / n : 0;
  const double each = whole ? bytes.value() : bytes.value() * steps / n;
  for (std::uint32_t c = 0; c < plan.channels; ++c) {
    const NcclConnections::Ring& ring =
        topology_.connections.rings[c % topology_.connections.rings.size()];
    Channel& channel = phase.channels.emplace_back(Channel{.form = Channel::Form::paced});
    channel.edges.reserve(ring.ranks.size());
    for (std::size_t i = 0; i < ring.ranks.size(); ++i) {
      const std::uint32_t src = ring.ranks[i], dst = ring.ranks[(i + 1) % ring.ranks.size()];
      if (whole && (kind == broadcast ? dst == root : src == root)) continue;
      Edge& added = channel.edges.emplace_back(edge(src, dst, 1, plan.protocol));
      if (same_node(src, dst) || ring.nics.empty()) continue;
      added.src_nic = ring.nics[src][1];
      added.dst_nic = ring.nics[dst][0];
    }
    channel.bytes = part_of(each / plan.channels);
    channel.local_steps = steps - across;
    channel.network_steps = across;
    channel.lead = ll_passes(plan, each / plan.channels / steps, steps);
    channel.cap = channel_cap(plan);
    channel.same_as = same_edges(plan.algorithm, plan.protocol, kind, c);
  }
}

void NcclCommunicator::add_tree(Phase& phase, const NcclPlan& plan, Bytes bytes) const {
  const auto& trees = topology_.connections.trees;
  for (std::uint32_t c = 0; c < plan.channels; ++c) {
    const NcclConnections::Tree& tree = trees[c % trees.size()];
    Channel& channel = phase.channels.emplace_back(Channel{.form = Channel::Form::paced});
    // The deepest way to the root, counted by kind of hop.
    double local = 0, network = 0;
    for (std::uint32_t r = 0; r < tree.up.size(); ++r) {
      double l = 0, w = 0;
      std::size_t bound = tree.up.size();
      for (std::uint32_t at = r; tree.up[at] != NcclConnections::kNoRank && bound > 0; --bound) {
        (same_node(at, tree.up[at]) ? l : w) += 1;
        at = tree.up[at];
      }
      if (l * kernels_.simple_step.seconds() + w * proxy_.bulk_step.seconds() >
          local * kernels_.simple_step.seconds() + network * proxy_.bulk_step.seconds()) {
        local = l;
        network = w;
      }
      const std::uint32_t parent = tree.up[r];
      if (parent == NcclConnections::kNoRank) continue;
      const double weight = tree_weight(!same_node(r, parent));
      Edge up = edge(r, parent, weight, plan.protocol),
           down = edge(parent, r, weight, plan.protocol);
      if (!same_node(r, parent) && r < tree.nics.size()) up.src_nic = down.dst_nic = tree.nics[r];
      channel.edges.push_back(up);
      channel.edges.push_back(down);
    }
    channel.bytes = part_of(bytes.value() / plan.channels);
    channel.local_steps = 2 * local;
    channel.network_steps = 2 * network;
    channel.lead = ll_passes(plan, channel.bytes.value(), 1);
    channel.cap = channel_cap(plan);
    channel.same_as = same_edges(plan.algorithm, plan.protocol, all_reduce, c);
  }
}

void NcclCommunicator::add_switch(Phase& phase, const NcclPlan& plan, CollectiveKind kind,
                                  Bytes bytes) const {
  const double n = most_local_;
  const bool both = kind == all_reduce;
  Channel& channel = phase.channels.emplace_back(Channel{.form = Channel::Form::paced});
  const double own = 1 / n;
  for (std::uint32_t r = 0; r < gpus_.size(); ++r) {
    const double up = both ? 1 + own : kind == reduce_scatter ? 1 : own;
    const double down = both ? 1 + own : kind == reduce_scatter ? own : 1;
    channel.edges.push_back({r, kSwitch, up});
    channel.edges.push_back({kSwitch, r, down});
  }
  channel.bytes = bytes;
  if (switch_rate_.bps > 0) channel.cap = scaled(switch_rate_, both ? n / (n + 1) : 1);
  const Bandwidth blocks = scaled(kernels_.channel_rate, plan.channels);
  const Bandwidth proxies = topology_.nodes > 1 && proxy_.chunk_time.ps > 0
                                ? scaled(chunk_rate(), head_count())
                                : Bandwidth{0};
  for (const Bandwidth limit : {blocks, proxies})
    if (limit.bps > 0) channel.cap = channel.cap.bps > 0 ? std::min(channel.cap, limit) : limit;
  const double per_round = plan.chunk.value() * plan.channels * head_count();
  const double rounds = std::max(1.0, bytes.value() / per_round);
  const double seconds_per_byte = channel.cap.bps > 0 ? 1 / channel.cap.bytes_per_s() : 0;
  const double chunks_s = std::min(per_round, bytes.value()) * seconds_per_byte;
  // A block serves its heads one after the other.
  const double round_s = kernels_.nvls_round.seconds() * head_count() / kFittedHeads;
  channel.lead = Time{
      static_cast<std::int64_t>((chunks_s * kNvlsFill + round_s * (rounds + kNvlsFill)) * 1e12)};
  channel.local_steps = 2;
  channel.same_as = same_edges(plan.algorithm, plan.protocol, kind, 0);
  if (topology_.nodes < 2) return;
  // Between nodes every head passes its part on: along the double trees, or up to the reducing network and back.
  std::map<std::uint32_t, std::uint32_t> position;
  std::vector<std::vector<std::uint32_t>> nodes;
  for (std::uint32_t r = 0; r < gpus_.size(); ++r) {
    const auto [it, fresh] = position.try_emplace(node_of_[r], u32(nodes.size()));
    if (fresh) nodes.emplace_back();
    nodes[it->second].push_back(r);
  }
  const bool tree = plan.algorithm == NcclAlgorithm::nvls_tree;
  const auto& trees = topology_.connections.trees;
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> hops;  // from node to node
  const std::uint32_t m = u32(nodes.size());
  if (tree) {
    for (const NcclConnections::Tree& each : trees) {
      for (std::uint32_t r = 0; r < each.up.size(); ++r) {
        const std::uint32_t parent = each.up[r];
        if (parent == NcclConnections::kNoRank || same_node(r, parent)) continue;
        const std::uint32_t child = position.at(node_of_[r]), above = position.at(node_of_[parent]);
        hops[{child, above}] += 1 / static_cast<double>(trees.size());
        hops[{above, child}] += 1 / static_cast<double>(trees.size());
      }
    }
  } else {
    for (std::uint32_t k = 0; k < m; ++k) hops[{k, (k + 1) % m}] = 1;
  }
  const auto& graph = topology_.graphs.at(NcclPattern::nvls).channels;
  for (const NcclChannel& head : graph) {
    const std::uint32_t local = head.gpus.empty() ? 0 : head.gpus.front();
    const auto rank = [&](std::uint32_t node) {
      return nodes[node][std::min<std::size_t>(local, nodes[node].size() - 1)];
    };
    for (const auto& [ends, times] : hops) {
      const double weight = times * tree_weight(tree) / static_cast<double>(graph.size());
      Edge& added = channel.edges.emplace_back(
          edge(rank(ends.first), rank(ends.second), weight, plan.protocol));
      added.src_nic = added.dst_nic = head.nic_in;
    }
  }
  channel.network_steps = tree ? 2 * collectives::ceil_log2(m) : 2;
}

// All-gather and reduce-scatter over one GPU per node in ceil(log2 N) steps at distances 1, 2, 4 ...
void NcclCommunicator::add_pat(Phase& phase, const NcclPlan& plan, Bytes bytes) const {
  const std::uint32_t n = u32(gpus_.size());
  Channel& channel = phase.channels.emplace_back(Channel{.form = Channel::Form::paced});
  for (std::uint32_t distance = 1; distance < n; distance *= 2) {
    const double parts = std::min(distance, n - distance);
    for (std::uint32_t r = 0; r < n; ++r)
      channel.edges.push_back(edge(r, (r + distance) % n, parts, plan.protocol));
  }
  channel.bytes = part_of(bytes.value() / n);
  channel.network_steps = collectives::ceil_log2(n);
  channel.same_as = same_edges(plan.algorithm, plan.protocol, all_gather, 0);
}

void NcclCommunicator::add_sends(Phase& phase, const NcclPlan& plan, CollectiveKind kind,
                                 Bytes bytes, std::uint32_t root) const {
  const std::uint32_t n = u32(gpus_.size());
  Channel& channel = phase.channels.emplace_back(Channel{.form = Channel::Form::paced});
  const double remote_peers = n - most_local_, local_peers = most_local_ - 1;
  const bool parts = kind != send_recv;
  channel.bytes = part_of(parts ? bytes.value() / n : bytes.value());
  channel.same_as = same_edges(plan.algorithm, plan.protocol, kind, root);
  if (kind == send_recv) {
    for (std::uint32_t r = 0; r < n; ++r)
      channel.edges.push_back(edge(r, (r + 1) % n, 1, plan.protocol));
    channel.local_steps = local_peers > 0 ? 1 : 0;
    channel.network_steps = remote_peers > 0 ? 1 : 0;
    channel.cap = scaled(channel_cap(plan), plan.channels);
    return;
  }
  // Peers are served in turn; half of the posts through NICs hide behind the other half.
  channel.local_steps = local_peers;
  channel.network_steps = remote_peers / 2;
  const NcclProtocol protocol = plan.protocol;
  // The schedule may outlive this object.
  channel.generate = [n, kind, root,
                      nodes = std::make_shared<const std::vector<std::uint32_t>>(node_of_),
                      local = wire_bytes(false, protocol),
                      remote = wire_bytes(true, protocol)](const EdgeSink& sink) {
    for (std::uint32_t src = 0; src < n; ++src) {
      for (std::uint32_t dst = 0; dst < n; ++dst) {
        if (src == dst || (kind == gather && dst != root) || (kind == scatter && src != root))
          continue;
        sink({src, dst, (*nodes)[src] == (*nodes)[dst] ? local : remote});
      }
    }
  };
}

Schedule NcclCommunicator::schedule(const NcclPlan& plan, CollectiveKind kind, Bytes bytes,
                                    std::uint32_t root) const {
  Schedule out;
  out.algorithm = plan.sends ? "send_recv" : write_config(plan.algorithm).text;
  out.request = {.kind = kind, .size = bytes, .root = root, .channels = plan.channels};
  out.ranks = u32(gpus_.size());
  if (out.ranks < 2) return out;
  Phase phase;
  if (plan.sends) {
    add_sends(phase, plan, kind, bytes, root);
  } else {
    switch (plan.algorithm) {
      case NcclAlgorithm::ring:
        add_ring(phase, plan, kind, bytes, root);
        break;
      case NcclAlgorithm::tree:
        add_tree(phase, plan, bytes);
        break;
      case NcclAlgorithm::pat:
        add_pat(phase, plan, bytes);
        break;
      default:
        add_switch(phase, plan, kind, bytes);
    }
  }
  out.phases.push_back(std::move(phase));
  return out;
}

}  // namespace weft
