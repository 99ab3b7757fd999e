// SPDX-License-Identifier: Apache-2.0
#include "models/llm/inference_network.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr double kKi = 1024, kFlagBytes = 8;
constexpr std::size_t kMostRanks = 8;

// Point 2j is 2^j bytes, point 2j + 1 is 1.5 times that.
double size_of(std::int64_t point) {
  return std::ldexp(point % 2 == 0 ? 1.0 : 1.5, static_cast<int>(point / 2));
}

}  // namespace

double TimeOfBytes::at(std::int64_t point) {
  const auto [known, fresh] = known_.try_emplace(point, 0);
  if (fresh) known->second = exact_(size_of(point));
  return known->second;
}

double TimeOfBytes::operator()(double bytes) {
  if (bytes <= 0) return 0;
  const double size = std::max(2.0, bytes);
  int exponent = 0;
  std::frexp(size, &exponent);
  std::int64_t point = 2 * (exponent - 1);
  if (size_of(point + 1) <= size) ++point;
  const double low = size_of(point), high = size_of(point + 1);
  const double first = at(point);
  if (size <= low) return first;
  return first + (at(point + 1) - first) * (size - low) / (high - low);
}

double one_shot_limit(std::size_t ranks) {
  if (ranks < 2 || ranks > kMostRanks) return 0;
  if (ranks == 2) return two_shot_limit(ranks);
  return (ranks <= 4 ? 512 : 256) * kKi;
}
double two_shot_limit(std::size_t ranks) {
  return ranks < 2 || ranks > kMostRanks ? 0 : 8 * kKi * kKi;
}

InferenceNetwork::InferenceNetwork(const Fabric& fabric, Routes& routes, InferenceTimers timers,
                                   const InferenceSpec& spec, const std::vector<NodeId>& gpus)
    : fabric_(fabric),
      routes_(routes),
      timers_(timers),
      spec_(spec),
      gpus_(gpus),
      ranks_(spec.plan, spec.order) {
  const auto add = [&](Groups& to, const std::vector<std::int64_t>& ranks, std::int64_t rank) {
    if (ranks.front() != rank) return;  // each group once
    Lockstep::Group& group = to.emplace_back();
    for (const std::int64_t r : ranks) group.push_back(gpus_[static_cast<std::size_t>(r)]);
  };
  for (std::int64_t rank = 0; rank < ranks_.size(); ++rank) {
    if (spec.plan.tp > 1) add(tp_, ranks_.tp_group(ranks_.at(rank)), rank);
    if (spec.plan.ep > 1) add(ep_, ranks_.ep_group(ranks_.at(rank)), rank);
  }
  const GpuSpec& gpu = fabric.gpu_spec(gpus.front());
  if (gpu.compute) kernel_start_ = gpu.compute->kernel_start.seconds();
  const KernelsSpec kernels = gpu.kernels.value_or(KernelsSpec{});
  flag_ = kernels.ll_step.seconds();
  efficiency_ = kernels.efficiency;
  if (spec.serving.all_reduce == SmallAllReduce::nccl || tp_.empty()) return;
  const std::string name = write_config(spec.serving.all_reduce).text;
  if (spec.plan.tp > static_cast<std::int64_t>(kMostRanks)) {
    fallback_ = fmt::format("{} all-reduce takes at most {} GPUs, tp is {}: NCCL instead", name,
                            kMostRanks, spec.plan.tp);
  } else if (!std::ranges::all_of(tp_, [&](const auto& group) { return fully_connected(group); })) {
    fallback_ = fmt::format(
        "{} all-reduce needs a direct way between all GPUs of a group: NCCL instead", name);
  }
  if (!fallback_.empty()) return;
  for (const Lockstep::Group& group : tp_) {
    for (const NodeId from : group) {
      for (const NodeId to : group) {
        if (from != to) peers_.emplace_back(from, to);
      }
    }
  }
}

// By NVLink and its like, or two GPUs with any peer access.
bool InferenceNetwork::fully_connected(const Lockstep::Group& group) {
  for (const NodeId from : group) {
    for (const NodeId to : group) {
      if (from == to) continue;
      if (fabric_.node(from).server != fabric_.node(to).server) return false;
      const auto way = routes_.transfer(from, to);
      if (!way || way->via != Via::direct || way->legs.size() != 1) return false;
      if (group.size() == 2) continue;
      for (const LinkId link : way->legs.front().route.hops) {
        if (fabric_.link(link).tier != Tier::scale_up) return false;
      }
    }
  }
  return true;
}

const InferenceNetwork::Groups& InferenceNetwork::groups(Dimension dimension) const {
  return dimension == Dimension::ep ? ep_ : tp_;
}

double InferenceNetwork::shots(double bytes, double parts, double flags) {
  const double wire = timers_.wires.send_seconds(kFlagBytes, peers_);
  const double copies = parts > 1 ? 2 : 1;
  return kernel_start_ + flags * (flag_ + wire) +
         copies * timers_.wires.send_seconds(bytes / parts / efficiency_, peers_);
}

double InferenceNetwork::all_reduce(double bytes) {
  const std::size_t ranks = tp_.front().size();
  if (!peers_.empty()) {
    if (spec_.serving.all_reduce == SmallAllReduce::one_shot && bytes <= one_shot_limit(ranks))
      return shots(bytes, 1, 2);
    if (bytes <= two_shot_limit(ranks)) return shots(bytes, static_cast<double>(ranks), 3);
  }
  return timers_.library.seconds(CollectiveKind::all_reduce, bytes, tp_);
}

double InferenceNetwork::exact(Dimension dimension, CollectiveKind kind, double bytes) {
  if (groups(dimension).empty()) return 0;
  if (dimension == Dimension::tp && kind == CollectiveKind::all_reduce) return all_reduce(bytes);
  return timers_.library.seconds(kind, bytes, groups(dimension));
}

InferenceComms InferenceNetwork::comms() {
  InferenceComms out;
  out.collective = [this](Dimension dimension, CollectiveKind kind, double bytes) {
    auto found = collectives_.find({dimension, kind});
    if (found == collectives_.end()) {
      found = collectives_
                  .try_emplace(
                      {dimension, kind},
                      [this, dimension, kind](double size) { return exact(dimension, kind, size); })
                  .first;
    }
    return found->second(bytes);
  };
  out.send = [this](std::size_t stage, double bytes) {
    auto found = sends_.find(stage);
    if (found == sends_.end()) {
      std::vector<Lockstep::Pair> pairs;
      for (std::int64_t rank = 0; rank < ranks_.size(); ++rank) {
        RankLayout::At at = ranks_.at(rank);
        if (at.pp != static_cast<std::int64_t>(stage)) continue;
        ++at.pp;
        pairs.emplace_back(gpus_[static_cast<std::size_t>(rank)],
                           gpus_[static_cast<std::size_t>(ranks_.rank(at))]);
      }
      found = sends_
                  .try_emplace(stage,
                               [this, pairs = std::move(pairs)](double size) {
                                 return timers_.library.send_seconds(size, pairs);
                               })
                  .first;
    }
    return found->second(bytes);
  };
  return out;
}

double InferenceNetwork::transfer(std::int64_t from, std::int64_t to, double bytes) {
  auto found = transfers_.find({from, to});
  if (found == transfers_.end()) {
    std::vector<Lockstep::Pair> pairs;
    for (std::int64_t rank = 0; rank < ranks_.size(); ++rank) {
      RankLayout::At at = ranks_.at(rank);
      if (at.dp != from) continue;
      at.dp = to;
      pairs.emplace_back(gpus_[static_cast<std::size_t>(rank)],
                         gpus_[static_cast<std::size_t>(ranks_.rank(at))]);
    }
    found = transfers_
                .try_emplace({from, to},
                             [this, pairs = std::move(pairs)](double size) {
                               return timers_.library.send_seconds(size, pairs);
                             })
                .first;
  }
  return found->second(bytes);
}

bool InferenceNetwork::between_servers(Dimension dimension) const {
  return std::ranges::any_of(groups(dimension), [&](const Lockstep::Group& group) {
    return std::ranges::any_of(group, [&](NodeId gpu) {
      return fabric_.node(gpu).server != fabric_.node(group.front()).server;
    });
  });
}

}  // namespace weft
