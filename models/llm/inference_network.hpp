// SPDX-License-Identifier: Apache-2.0
// What an inference engine sends, timed on the fabric: collectives of all its groups at once, with nothing else running. Sizes
// between two of a grid (powers of two and 1.5 times those) are interpolated, so that thousands of batches cost a few runs.
//
// The small all-reduces of inference engines are one kernel on every GPU of a fully connected server:
//
//   one-shot   flags to all peers, read all of every peer's input, flags:           start + 2 flags + (n - 1) S inwards
//   two-shot   the same for each rank's 1/n, then all parts from all peers:         start + 3 flags + 2 (n - 1)/n S inwards
//
// start: kernel_start of configs/compute; flag: ll_step of configs/kernels and the wire. One-shot up to 512 KiB on 2 to 4 GPUs
// (2: always), 256 KiB on up to 8; two-shot to 8 MiB; NCCL beyond (vLLM, csrc/custom_all_reduce.cuh and its Python side).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "models/llm/inference_pass.hpp"
#include "models/llm/plan.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/run/collective_timer.hpp"

namespace weft {

// A time as a function of bytes, remembered at the points of the grid.
class TimeOfBytes {
 public:
  explicit TimeOfBytes(std::function<double(double bytes)> exact) : exact_(std::move(exact)) {}
  double operator()(double bytes);

 private:
  double at(std::int64_t point);
  std::function<double(double)> exact_;
  std::map<std::int64_t, double> known_;
};

// Largest messages that the kernels of inference engines take over `ranks` GPUs; 0: none.
double one_shot_limit(std::size_t ranks);
double two_shot_limit(std::size_t ranks);

struct InferenceTimers {
  CollectiveTimer &library, &wires;  // NCCL or what the scenario runs; the links alone
};

class InferenceNetwork {
 public:
  // `gpus` by rank. The arguments outlive the network.
  InferenceNetwork(const Fabric& fabric, Routes& routes, InferenceTimers timers,
                   const InferenceSpec& spec, const std::vector<NodeId>& gpus);

  InferenceComms comms();
  // Of a cache, from the ranks of one replica to those of another: `bytes` each.
  double transfer(std::int64_t from, std::int64_t to, double bytes);
  // Whether some group of the dimension spans servers.
  bool between_servers(Dimension dimension) const;
  // Why the all-reduce that was asked for is not used; empty when it is.
  const std::string& fallback() const { return fallback_; }

 private:
  using Groups = std::vector<Lockstep::Group>;
  const Groups& groups(Dimension dimension) const;
  double exact(Dimension dimension, CollectiveKind kind, double bytes);
  double all_reduce(double bytes);
  double shots(double bytes, double parts, double flags);
  bool fully_connected(const Lockstep::Group& group);

  const Fabric& fabric_;
  Routes& routes_;
  InferenceTimers timers_;
  const InferenceSpec& spec_;
  const std::vector<NodeId>& gpus_;
  RankLayout ranks_;
  Groups tp_, ep_;
  std::vector<Lockstep::Pair> peers_;  // all pairs within every group of tp
  std::string fallback_;
  double kernel_start_ = 0, flag_ = 0, efficiency_ = 1;
  std::map<std::pair<Dimension, CollectiveKind>, TimeOfBytes> collectives_;
  std::map<std::size_t, TimeOfBytes> sends_;
  std::map<std::pair<std::int64_t, std::int64_t>, TimeOfBytes> transfers_;
};

}  // namespace weft
