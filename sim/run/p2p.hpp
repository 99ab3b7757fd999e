// SPDX-License-Identifier: Apache-2.0
// One copy between two GPUs, alone on the machine, as p2pBandwidthLatencyTest and nvbandwidth time it.
//
// Law:      the legs of a transfer follow each other (store and forward through a relay or host memory that is not
//           pipelined); each leg takes its start-up, its latency and size over its rate. Both ways at once share what they
//           have in common.
// Example:  256 MiB over 145.57 GB/s with a copy call of 9 us: 1.853 ms, 144.9 GB/s.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "sim/fabric/routing.hpp"
#include "sim/run/network_model.hpp"

namespace weft {

struct CopyQuestion {
  Bytes size;
  bool bidirectional = false;  // copies both ways at once
  TransferOptions transfer;
};

struct CopyAnswer {
  Via via = Via::direct;
  std::string path;          // node names from source to destination
  double bandwidth_gbs = 0;  // of both ways together when bidirectional
  Time time{0};              // of the copy of `size`
  Time latency{0};           // of an empty message
};

using MakeNetwork = std::function<std::unique_ptr<NetworkModel>(std::span<const Bandwidth>)>;

// nullopt when there is no such way between the two.
std::optional<CopyAnswer> time_copy(Routes& routes, NodeId src, NodeId dst,
                                    const CopyQuestion& question, const MakeNetwork& make_network);

}  // namespace weft
