// SPDX-License-Identifier: Apache-2.0
// The congestion controls that weft ships, by name.
#pragma once

#include <span>
#include <string_view>

#include "models/packet/congestion.hpp"
#include "sim/core/json.hpp"
#include "sim/run/congestion_spec.hpp"

namespace weft::packet {

// What a scheme listens to. The engine provides it; a test proves that each lowers the rate.
struct Signals {
  bool cnp = false;        // the receiver sends congestion notification packets
  bool mark = false;       // acknowledgements echo ECN
  bool delay = false;      // acknowledgements tell the round trip
  bool telemetry = false;  // acknowledgements bring what the switches wrote
  bool loss = false;       // gaps and timeouts
};

struct CongestionEntry {
  CongestionScheme scheme;
  std::string_view summary, reference;
  Signals signals;
  std::size_t state_bytes;  // that a sender keeps for each connection
  std::unique_ptr<CongestionControl> (*make)(const SenderFacts& facts, const CongestionSpec& spec);
  // All parameters as used, by name.
  Json (*parameters)(const SenderFacts& facts, const CongestionSpec& spec);
  Time (*cnp_interval)(const CongestionSpec& spec) = nullptr;  // at the receiver

  // Packets that a sender begins with before its receiver pulls; null: senders are not pulled.
  std::uint32_t (*pulled)(const SenderFacts& facts, const CongestionSpec& spec) = nullptr;

  std::string_view name() const;
};

extern const CongestionEntry kFixedRate, kDcqcn, kHpcc, kTimely, kSwift, kDctcp, kCubic, kReceiver,
    kFecn;

std::span<const CongestionEntry* const> congestion_controls();
const CongestionEntry* find_congestion_control(CongestionScheme scheme);

}  // namespace weft::packet
