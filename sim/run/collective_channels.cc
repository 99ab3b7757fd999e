// SPDX-License-Identifier: Apache-2.0
// A library's channels packet by packet. A channel says which edges it uses and how many bytes cross them; how its data moves
// can be read off these:
//
//   edges                      transfers
//   to and from kSwitch        a collective in switches
//   one cycle over all ranks   a ring: `bytes` in 2 (n - 1) steps for all_reduce, else n - 1; a rank passes on what it got
//   pairs child to parent and  a tree, for all_reduce: pieces go up when all children have sent theirs, and down again
//   back
//   a path                     a chain, for broadcast and reduce, piece after piece
//   whole exchanges            all_to_all, gather, scatter, send_recv: every edge at once
//   others                     rounds: the k-th edge of a rank waits for its edges before, in and out
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/run/collective_ops.hpp"

namespace weft {
namespace {

constexpr std::uint64_t kMostTransfers = 30'000'000;
// What passes down a tree or a chain at a time: the least chunk of NCCL's trees (src/enqueue.cc), but few enough to afford.
constexpr std::int64_t kPiece = 32 * 1024, kMostPieces = 256;

struct Sent {
  OpId left, arrived;
};

// The edges of one channel with their ways, and the operations that use them.
class Transfers {
 public:
  Transfers(Workload& workload, std::uint32_t label, std::uint64_t& count, OpId start, OpId done)
      : workload_(workload), label_(label), count_(count), start_(start), done_(done) {}

  void add(const Edge& edge, std::uint32_t way) {
    edges.push_back(edge);
    ways_.push_back(way);
  }

  // Bytes over edge `e` behind some operations, or at the start of the channel.
  Sent send(std::size_t e, double bytes, const std::vector<OpId>& after) {
    if (++count_ > kMostTransfers) {
      throw LimitReached(
          fmt::format("more than {} transfers of the library's channels at packet level; run them "
                      "at fluid level",
                      kMostTransfers));
    }
    const Bytes size{static_cast<std::int64_t>(bytes * edges[e].weight + 0.5)};
    const auto [left, arrived] = workload_.add_sent_flow(ways_[e], size);
    workload_.operations[left].label = workload_.operations[arrived].label = label_;
    for (const OpId before : after) workload_.depend(before, left);
    if (after.empty()) workload_.depend(start_, left);
    workload_.depend(arrived, done_);
    return {left, arrived};
  }

  std::vector<Edge> edges;

 private:
  std::vector<std::uint32_t> ways_;
  Workload& workload_;
  std::uint32_t label_;
  std::uint64_t& count_;
  OpId start_, done_;
};

struct Pieces {
  std::int64_t count;
  double bytes;
};
Pieces pieces_of(Bytes bytes) {
  const std::int64_t count = std::clamp<std::int64_t>(bytes.count / kPiece, 1, kMostPieces);
  return {count, bytes.value() / static_cast<double>(count)};
}

// Edges by the order in which they follow each other from the first; fewer than all when they are neither path nor cycle.
std::vector<std::size_t> follow(const std::vector<Edge>& edges) {
  std::map<std::uint32_t, std::size_t> out;
  std::map<std::uint32_t, std::size_t> in;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    if (!out.try_emplace(edges[e].src, e).second || !in.try_emplace(edges[e].dst, e).second)
      return {};
  }
  std::size_t first = 0;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    if (!in.contains(edges[e].src)) first = e;
  }
  std::vector<std::size_t> order;
  for (std::size_t e = first; order.size() < edges.size();) {
    order.push_back(e);
    const auto next = out.find(edges[e].dst);
    if (next == out.end() || next->second == first) break;
    e = next->second;
  }
  return order;
}

void send_ring(Transfers& channel, const std::vector<std::size_t>& order, Bytes bytes, bool both) {
  const std::size_t n = order.size(), steps = (both ? 2 : 1) * (n - 1);
  const double part = bytes.value() / static_cast<double>(steps);
  std::vector<Sent> before;
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<Sent> now;
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<OpId> after;
      if (step > 0) after = {before[(i + n - 1) % n].arrived, before[i].left};
      now.push_back(channel.send(order[i], part, after));
    }
    before = std::move(now);
  }
}

void send_chain(Transfers& channel, const std::vector<std::size_t>& order, Bytes bytes) {
  const auto [count, piece] = pieces_of(bytes);
  std::vector<Sent> before;
  for (std::int64_t p = 0; p < count; ++p) {
    std::vector<Sent> now;
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::vector<OpId> after;
      if (i > 0) after.push_back(now[i - 1].arrived);
      if (p > 0) after.push_back(before[i].left);
      now.push_back(channel.send(order[i], piece, after));
    }
    before = std::move(now);
  }
}

// Edges in pairs, child to parent and back.
void send_tree(Transfers& channel, std::size_t ranks, Bytes bytes) {
  std::vector<std::size_t> up(ranks, channel.edges.size());  // by child; the edge down is behind it
  std::vector<std::vector<std::uint32_t>> children(ranks);
  for (std::size_t e = 0; e + 1 < channel.edges.size(); e += 2) {
    const Edge& edge = channel.edges[e];
    WEFT_CHECK(channel.edges[e + 1].src == edge.dst && channel.edges[e + 1].dst == edge.src, e);
    up[edge.src] = e;
    children[edge.dst].push_back(edge.src);
  }
  // Parents first.
  std::vector<std::uint32_t> order;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (up[r] == channel.edges.size()) order.push_back(r);
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    order.insert(order.end(), children[order[i]].begin(), children[order[i]].end());
  WEFT_CHECK(order.size() == ranks, order.size(), ranks);
  const auto [count, piece] = pieces_of(bytes);
  std::vector<Sent> last_up(ranks), last_down(ranks);
  for (std::int64_t p = 0; p < count; ++p) {
    for (auto r = order.rbegin(); r != order.rend(); ++r) {
      if (up[*r] == channel.edges.size()) continue;
      std::vector<OpId> after;
      for (const std::uint32_t child : children[*r]) after.push_back(last_up[child].arrived);
      if (p > 0) after.push_back(last_up[*r].left);
      last_up[*r] = channel.send(up[*r], piece, after);
    }
    for (const std::uint32_t r : order) {
      const bool root = up[r] == channel.edges.size();
      for (const std::uint32_t child : children[r]) {
        std::vector<OpId> after;
        if (root) {
          for (const std::uint32_t each : children[r]) after.push_back(last_up[each].arrived);
        } else {
          after.push_back(last_down[r].arrived);
        }
        if (p > 0) after.push_back(last_down[child].left);
        last_down[child] = channel.send(up[child] + 1, piece, after);
      }
    }
  }
}

void send_rounds(Transfers& channel, std::size_t ranks, Bytes bytes) {
  struct Rank {
    std::vector<Sent> sent, taken;
  };
  std::vector<Rank> all(ranks);
  for (std::size_t e = 0; e < channel.edges.size(); ++e) {
    Rank& src = all[channel.edges[e].src];
    const std::size_t k = src.sent.size();
    std::vector<OpId> after;
    if (k > 0) after.push_back(src.sent[k - 1].left);
    for (std::size_t i = 0; i < std::min(k, src.taken.size()); ++i)
      after.push_back(src.taken[i].arrived);
    const Sent sent = channel.send(e, bytes.value(), after);
    src.sent.push_back(sent);
    all[channel.edges[e].dst].taken.push_back(sent);
  }
}

bool whole_exchange(CollectiveKind kind) {
  using enum CollectiveKind;
  return kind == all_to_all || kind == gather || kind == scatter || kind == send_recv;
}

}  // namespace

OpId CollectiveBuilder::append_channels(const Schedule& schedule, std::span<const NodeId> gpus,
                                        const CollectiveOptions& options, OpId after) {
  const CollectiveKind kind = schedule.request.kind;
  dealt_ = false;
  OpId last = after;
  std::uint64_t count = 0;
  for (const Phase& phase : schedule.phases) {
    const OpId done = workload_.add_barrier();
    workload_.depend(last, done);
    // Copies through host memory between two GPUs share the rate of one pipeline.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> crossing;
    for (const Channel& channel : phase.channels)
      channel.for_each_edge([&](const Edge& edge) { ++crossing[{edge.src, edge.dst}]; });
    for (std::uint32_t c = 0; c < phase.channels.size(); ++c) {
      const Channel& channel = phase.channels[c];
      // Peers of a whole exchange are served in turn: the first of the steps is that of the transfer itself.
      Time lead = channel.lead;
      if (whole_exchange(kind)) {
        const auto rest = [](Time step, double steps) {
          return Time{
              static_cast<std::int64_t>(static_cast<double>(step.ps) * std::max(0.0, steps - 1))};
        };
        lead += rest(options.costs.step, channel.local_steps) +
                rest(options.costs.network_step, channel.network_steps);
      }
      OpId start = last;
      if (lead.ps > 0) {
        start = workload_.add_delay(lead);
        workload_.operations[start].label = options.label;
        workload_.depend(last, start);
      }
      std::size_t in_switch = 0, edges = 0;
      channel.for_each_edge([&](const Edge& edge) {
        in_switch += edge.src == kSwitch || edge.dst == kSwitch ? 1 : 0;
        ++edges;
      });
      if (in_switch > 0) {
        if (in_switch < edges) {
          throw LimitReached(
              "not yet: NVLS between nodes at packet level; choose another algorithm "
              "(\"nccl\": {\"algorithm\": \"ring\"}) or the fluid level");
        }
        workload_.depend(append_trees(schedule, channel, gpus, options, start), done);
        continue;
      }
      Transfers transfers(workload_, options.label, count, start, done);
      channel.for_each_edge([&](const Edge& edge) {
        const Hop hop = route_edge(edge, gpus, c, options);
        const Bandwidth own = scaled(channel.cap, edge.weight);
        const Bandwidth staged =
            scaled(hop.cap, 1.0 / static_cast<double>(crossing[{edge.src, edge.dst}]));
        const Bandwidth cap = own.bps > 0 && staged.bps > 0 ? std::min(own, staged)
                              : own.bps > 0                 ? own
                                                            : staged;
        transfers.add(edge, workload_.add_way(route_.shares, hop.alpha, cap, route_.latency));
      });
      if (whole_exchange(kind)) {
        for (std::size_t e = 0; e < transfers.edges.size(); ++e)
          transfers.send(e, channel.bytes.value(), {});
        continue;
      }
      const std::vector<std::size_t> order = follow(transfers.edges);
      const bool whole = !order.empty() && order.size() == transfers.edges.size();
      const bool ring = whole && order.size() == gpus.size();
      if (ring) {
        send_ring(transfers, order, channel.bytes, kind == CollectiveKind::all_reduce);
      } else if (whole) {
        send_chain(transfers, order, channel.bytes);
      } else if (kind == CollectiveKind::all_reduce) {
        send_tree(transfers, gpus.size(), channel.bytes);
      } else {
        send_rounds(transfers, gpus.size(), channel.bytes);
      }
    }
    last = done;
  }
  return last;
}

}  // namespace weft
