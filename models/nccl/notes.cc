// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/notes.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace weft::nccl {
namespace {

constexpr std::size_t kMostNamed = 4;

using Pair = std::pair<std::size_t, std::size_t>;

std::string_view name_of(NcclPath path) {
  return enum_names(NcclPath{})[static_cast<std::size_t>(path)].name;
}

std::string listed(const std::vector<std::string>& items) {
  if (items.size() <= kMostNamed) return join(items, ", ");
  const std::vector<std::string> first(items.begin(), items.begin() + kMostNamed);
  return fmt::format("{} and {} more", join(first, ", "), items.size() - kMostNamed);
}

class NodeNotes {
 public:
  NodeNotes(const ServerType& type, const Machine& machine, const Paths& paths, const Rules& rules,
            const NodeChannels& channels, std::vector<std::string>& notes)
      : type_(type),
        machine_(machine),
        paths_(paths),
        rules_(rules),
        channels_(channels),
        notes_(notes),
        gpus_(machine.count(DeviceKind::gpu)),
        closed_(machine.count(DeviceKind::net) == 0) {}

  void write() {
    note_plain_order();
    note_gaps();
    note_host_copies();
    note_sockets();
    note_nics();
  }

 private:
  const std::string& gpu(std::size_t g) const {
    return type_.node_names[machine_.at(DeviceKind::gpu, g).local];
  }
  const Path& path(std::size_t a, std::size_t b) const {
    return paths_.between(DeviceKind::gpu, a, DeviceKind::gpu, b);
  }
  std::string joined(Pair pair) const {
    return fmt::format("{}-{}", gpu(pair.first), gpu(pair.second));
  }
  // From GPU to GPU within a channel of a ring; the last hop closes it when there is no network.
  std::vector<Pair> hops(std::size_t channel) const {
    std::vector<Pair> out;
    for (std::size_t i = 0; gpus_ > 1 && i + (closed_ ? 0 : 1) < gpus_; ++i) {
      const std::uint16_t* order = &channels_.ring.gpus[channel * gpus_];
      out.emplace_back(order[i], order[(i + 1) % gpus_]);
    }
    return out;
  }

  // One channel in plain order is all that rings and trees then get: NCCL takes the fewer of both.
  void note_plain_order() {
    if (!channels_.ring.plain && !channels_.tree.plain) return;
    const bool short_sighted = !channels_.ring.plain && rules_.types_from_machine &&
                               rules_.version < NcclVersion{2, 29, 0};
    notes_.push_back(fmt::format(
        "no {} fits between these GPUs and NICs: NCCL {}.{} falls back to one channel in plain "
        "order for all patterns{}",
        channels_.ring.plain ? "ring" : "tree", rules_.version.major, rules_.version.minor,
        short_sighted ? ", far below what the NICs carry; releases before 2.25 and from 2.29 on "
                        "find more (nccl#1952)"
                      : ""));
  }

  // Where NVLinks do not close a ring, and NVLinks that lie idle.
  void note_gaps() {
    bool nvlink = false;
    std::set<Pair> direct, used, gaps;
    for (std::size_t a = 0; a < gpus_; ++a) {
      for (const std::uint32_t l : machine_.at(DeviceKind::gpu, a).links) {
        const MachineLink& link = machine_.links[l];
        const Device& end = machine_.devices[link.to];
        if (link.wire != Wire::nvlink || end.kind == DeviceKind::cpu) continue;
        nvlink = true;
        if (end.kind == DeviceKind::gpu) direct.insert(std::minmax<std::size_t>(a, end.index));
      }
    }
    if (!nvlink) return;
    for (std::size_t c = 0; c < channels_.ring.count; ++c) {
      for (const auto& [a, b] : hops(c)) {
        (path(a, b).type == NcclPath::nvl ? used : gaps).insert(std::minmax(a, b));
      }
    }
    if (!gaps.empty()) {
      std::vector<std::string> names;
      NcclPath worst = NcclPath::loc;
      for (const Pair& pair : gaps) {
        names.push_back(joined(pair));
        worst = std::max(worst, path(pair.first, pair.second).type);
      }
      notes_.push_back(fmt::format(
          "NVLinks do not close a ring over these GPUs: no NVLink joins {}; rings pass there by {} "
          "and count {:g} GB/s per channel",
          listed(names), name_of(worst), static_cast<double>(channels_.ring.inside) / 1000));
    }
    std::vector<std::string> idle;
    for (const Pair& pair : direct) {
      if (!used.contains(pair)) idle.push_back(joined(pair));
    }
    if (!idle.empty()) notes_.push_back(fmt::format("no ring uses the NVLinks {}", listed(idle)));
  }

  void note_host_copies() {
    std::size_t pairs = 0, bent = 0;
    for (std::size_t a = 0; a < gpus_; ++a) {
      for (std::size_t b = a + 1; b < gpus_; ++b) {
        ++pairs;
        if (paths_.through_host(a, b) || paths_.through_host(b, a)) ++bent;
      }
    }
    if (bent > 0)
      notes_.push_back(fmt::format(
          "{} of {} GPU pairs copy through host memory: no peer access, or farther apart than NCCL "
          "uses it",
          bent, pairs));
  }

  void note_sockets() {
    if (channels_.ring.type_inside != NcclPath::sys) return;
    std::size_t crossings = 0;
    for (const auto& [a, b] : hops(0)) {
      for (const std::uint32_t l : path(a, b).links)
        crossings += machine_.links[l].wire == Wire::socket ? 1 : 0;
    }
    if (crossings > 0)
      notes_.push_back(fmt::format("every ring passes between sockets {} {}", crossings,
                                   crossings == 1 ? "time" : "times"));
  }

  void note_nics() {
    if (closed_) return;
    std::vector<std::string> relayed, hosted;
    std::set<std::int32_t> used;
    for (std::size_t c = 0; c < channels_.ring.count; ++c) {
      const auto [in, out] = channels_.ring.nets[c];
      if (in < 0 || out < 0) continue;
      used.insert(channels_.nic_of[static_cast<std::size_t>(in)]);
      used.insert(channels_.nic_of[static_cast<std::size_t>(out)]);
      const std::size_t last = channels_.ring.gpus[c * gpus_ + gpus_ - 1];
      const Path& way =
          paths_.between(DeviceKind::gpu, last, DeviceKind::net, static_cast<std::size_t>(out));
      const std::string text = fmt::format("{} to {}", gpu(last), nic(out));
      if (way.type == NcclPath::pxn) relayed.push_back(text);
      if (!paths_.gpudirect(last, static_cast<std::size_t>(out))) hosted.push_back(text);
    }
    std::vector<std::string> idle;
    for (std::size_t n = 0; n < channels_.nic_of.size(); ++n) {
      if (!used.contains(channels_.nic_of[n])) idle.push_back(nic(static_cast<std::int16_t>(n)));
    }
    idle.erase(std::unique(idle.begin(), idle.end()), idle.end());
    if (!relayed.empty())
      notes_.push_back(
          fmt::format("rings send through another GPU's NIC port (PXN): {}", listed(relayed)));
    if (!hosted.empty())
      notes_.push_back(fmt::format(
          "NIC traffic passes through host memory, without GPUDirect RDMA: {}", listed(hosted)));
    if (!idle.empty()) notes_.push_back(fmt::format("no ring uses {}", listed(idle)));
  }

  std::string nic(std::int16_t net) const {
    const auto position = channels_.nic_of[static_cast<std::size_t>(net)];
    return type_.node_names[type_.nics[static_cast<std::size_t>(position)]];
  }

  const ServerType& type_;
  const Machine& machine_;
  const Paths& paths_;
  const Rules& rules_;
  const NodeChannels& channels_;
  std::vector<std::string>& notes_;
  const std::size_t gpus_;
  const bool closed_;
};

// NICs of a node that carry more channels one way than the others of that node.
void note_uneven_nics(const NcclTopology& topology, std::vector<std::string>& notes) {
  std::map<std::uint32_t, std::vector<NcclNicUse>> nodes;
  for (const NcclNicUse& use : nccl_ring_nic_use(topology)) nodes[use.node].push_back(use);
  std::size_t uneven = 0;
  std::string first;
  for (const auto& [node, uses] : nodes) {
    const auto out = std::ranges::minmax(uses, {}, &NcclNicUse::out);
    const auto in = std::ranges::minmax(uses, {}, &NcclNicUse::in);
    if (out.max.out == out.min.out && in.max.in == in.min.in) continue;
    if (uneven++ > 0) continue;
    const bool sends = out.max.out != out.min.out;
    const NcclNicUse& most = sends ? out.max : in.max;
    const NcclNicUse& least = sends ? out.min : in.min;
    first = fmt::format("node {} {} {} rings by NIC {} and {} by NIC {}", node,
                        sends ? "sends" : "receives", sends ? most.out : most.in, most.nic,
                        sends ? least.out : least.in, least.nic);
  }
  if (uneven == 0) return;
  notes.push_back(
      fmt::format("rings load NICs unevenly: {}{}", first,
                  uneven > 1 ? fmt::format("; likewise {} more nodes", uneven - 1) : ""));
}

}  // namespace

void note_node(const ServerType& type, const Machine& machine, const Paths& paths,
               const Rules& rules, const NodeChannels& channels, std::vector<std::string>& notes) {
  NodeNotes(type, machine, paths, rules, channels, notes).write();
}

void note_communicator(const NcclTopology& topology, const Rules& rules, const JoinPlan& plan,
                       bool trays_apart, std::vector<std::string>& notes) {
  const NcclVersion version = rules.version;
  if (version < NcclVersion{2, 6, 0})
    notes.push_back(
        "NCCL 2.5 searched otherwise; these are the rules of 2.6 with the speeds of 2.5");
  const int cc = topology.max_compute_capability;
  const bool unknown = (cc >= 100 && version < NcclVersion{2, 25, 0}) ||
                       (cc >= 90 && version < NcclVersion{2, 16, 0});
  if (unknown)
    notes.push_back(
        fmt::format("this release is older than GPUs of compute capability {}.{}: it "
                    "takes them for the newest it knows",
                    cc / 10, cc % 10));
  if (trays_apart)
    notes.push_back(
        "multi-node NVLink is off or unknown to this release: hosts behind one NVSwitch "
        "are joined by their NICs");
  if (topology.nodes < 2) return;
  if (topology.graphs.at(NcclPattern::ring).cross_nic) {
    const bool odd = topology.nodes % 2 == 1;
    if (!plan.swap_odd_nodes) {
      notes.push_back(
          "rings leave nodes by another NIC than they came in by, so every hop between "
          "nodes crosses rails; NCCL_CROSS_NIC=0 keeps each ring on one rail");
    } else if (odd) {
      notes.push_back(fmt::format(
          "rings leave nodes by another NIC than they came in by and alternate between rails; over "
          "{} nodes, an odd number, they close across rails between the last and the first node; "
          "NCCL_CROSS_NIC=0 keeps each ring on one rail",
          topology.nodes));
    } else {
      notes.push_back(
          "rings leave nodes by another NIC than they came in by; odd nodes exchange the "
          "rings of a pair, so NICs meet rail to rail");
    }
  }
  note_uneven_nics(topology, notes);
}

}  // namespace weft::nccl
