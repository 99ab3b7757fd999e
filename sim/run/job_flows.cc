// SPDX-License-Identifier: Apache-2.0
// Jobs without a collective: copies between two GPUs, lists of flows, patterns.
#include <algorithm>

#include <fmt/format.h>

#include "sim/core/hash.hpp"
#include "sim/core/random.hpp"
#include "sim/run/jobs.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostFlows = 20'000'000;
constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15ULL;  // 2^64 over the golden ratio

}  // namespace

// The copies of one transfer one after the other.
FlowPlan JobBuilder::add_transfer(const Transfer& transfer, Bytes size) {
  FlowPlan flow;
  OpId last;
  for (const Leg& leg : transfer.legs) {
    const std::uint32_t way = workload_.add_way(leg.route.shares, leg.route.latency + leg.startup,
                                                leg.cap, leg.route.latency);
    const OpId op = workload_.add_flow(way, size);
    workload_.operations[op].label = label_;
    if (last.valid()) workload_.depend(last, op);
    if (!flow.first.valid()) flow.first = op;
    last = op;
  }
  flow.last = last;
  flow.size = size;
  return flow;
}

void JobBuilder::add_p2p(const JobSpec& spec, JobPlan& job) {
  const auto src = find_gpu(spec.p2p->src, spec.place, spec.pointer + "/p2p/src");
  const auto dst = find_gpu(spec.p2p->dst, spec.place, spec.pointer + "/p2p/dst");
  if (!src || !dst) return;
  if (src == dst)
    return error(spec.place, spec.pointer + "/p2p/dst",
                 "a copy from a GPU to itself crosses nothing", "name two GPUs");
  TransferOptions options;
  options.via = spec.p2p->via;
  options.peer_access = spec.p2p->peer_access;
  options.copy_call = true;
  options.hash = (jobs_.size() - 1) * kGolden;
  options.routing = fabric_.routing();
  job.ranks = 2;
  for (const auto& [from, to] : {std::pair{*src, *dst}, std::pair{*dst, *src}}) {
    const auto transfer = routes_.transfer(from, to, options);
    if (!transfer) {
      error(spec.place, spec.pointer + "/p2p/via",
            fmt::format("there is no such way from {} to {}", spec.p2p->src, spec.p2p->dst),
            "leave \"via\" out to take what the runtime would");
      return;
    }
    FlowPlan flow = add_transfer(*transfer, spec.p2p->size);
    flow.id = fmt::format("{}/{}", spec.name, job.flows.size());
    flow.src = from;
    flow.dst = to;
    job.flows.push_back(flow);
    job.bytes += spec.p2p->size.value();
    job.algorithm = write_config(transfer->via).text;
    if (!spec.p2p->bidirectional) break;
  }
}

bool JobBuilder::add_flow(const JobSpec& spec, JobPlan& job, NodeId src, NodeId dst, Bytes size,
                          Time start) {
  if (job.flows.size() >= kMostFlows) {
    throw LimitReached(fmt::format("more than {} flows", kMostFlows));
  }
  TransferOptions options;
  options.routing = fabric_.routing();
  const std::uint64_t label = mix64(static_cast<std::uint64_t>(scenario_.seed) * kGolden +
                                    (std::uint64_t{jobs_.size() - 1} << 32) + job.flows.size());
  const std::int64_t pairs = spec.queue_pairs.value_or(1);
  FlowPlan flow;
  std::vector<OpId> ends;
  for (std::int64_t i = 0; i < pairs; ++i) {
    options.hash = i == 0 ? label : mix64(label + static_cast<std::uint64_t>(i));
    const auto transfer = routes_.transfer(src, dst, options);
    if (!transfer) {
      error(spec.place, spec.pointer,
            fmt::format("{} cannot reach {}", fabric_.name(src), fabric_.name(dst)),
            "no link, no peer access, no host memory and no network between them");
      return false;
    }
    const Bytes part{size.count / pairs + (i < size.count % pairs ? 1 : 0)};
    const FlowPlan one = add_transfer(*transfer, part);
    workload_.operations[one.first].not_before = start;
    if (i == 0) flow = one;
    ends.push_back(one.last);
  }
  if (pairs > 1) {
    flow.size = size;
    flow.last = workload_.add_barrier();
    for (const OpId end : ends) workload_.depend(end, flow.last);
  }
  flow.id = fmt::format("{}/{}", spec.name, job.flows.size());
  flow.src = src;
  flow.dst = dst;
  job.flows.push_back(flow);
  job.bytes += size.value();
  return true;
}

void JobBuilder::add_flows(const JobSpec& spec, JobPlan& job) {
  for (const FlowEntry& entry : spec.flows) {
    const auto src = find_gpu(entry.src, entry.place, entry.pointer + "/src");
    const auto dst = find_gpu(entry.dst, entry.place, entry.pointer + "/dst");
    if (src && dst && !add_flow(spec, job, *src, *dst, entry.size, entry.start)) return;
  }
  job.ranks = job.flows.size();
}

void JobBuilder::add_pattern(const JobSpec& spec, JobPlan& job, Placement& placement) {
  const auto gpus = take_gpus(spec, placement);
  if (!gpus) return;
  const auto n = static_cast<std::uint32_t>(gpus->size());
  job.ranks = n;
  if (n < 2) {
    job.notes.push_back("one GPU: no traffic");
    return;
  }
  Random random(static_cast<std::uint64_t>(scenario_.seed), "pattern", jobs_.size());
  const auto send = [&](std::uint32_t a, std::uint32_t b) {
    return add_flow(spec, job, (*gpus)[a], (*gpus)[b], *spec.size, {});
  };
  const auto stride = static_cast<std::uint32_t>(spec.group_stride % n);
  if (stride == 0) {
    return error(spec.place, spec.pointer + "/group_stride",
                 "each would send to itself: a multiple of the number of GPUs");
  }
  switch (*spec.pattern) {
    case Pattern::permutation: {
      const auto to = random.cyclic_permutation(n);
      for (std::uint32_t i = 0; i < n; ++i) {
        if (!send(i, to[i])) return;
      }
      break;
    }
    case Pattern::incast:
      for (std::uint32_t i = 1; i < n; ++i) {
        if (!send(i, 0)) return;
      }
      break;
    case Pattern::all_to_all:
      for (std::uint32_t i = 0; i < n; ++i) {
        for (std::uint32_t j = 1; j < n; ++j) {
          if (!send(i, (i + j) % n)) return;
        }
      }
      break;
    case Pattern::random:
      for (std::uint32_t i = 0; i < n; ++i) {
        if (!send(i, (i + 1 + static_cast<std::uint32_t>(random.below(n - 1))) % n)) return;
      }
      break;
    case Pattern::ring:
      for (std::uint32_t i = 0; i < n; ++i) {
        if (!send(i, (i + stride) % n)) return;
      }
      break;
  }
}

}  // namespace weft
