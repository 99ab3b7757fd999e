// SPDX-License-Identifier: Apache-2.0
// The congestion controls that weft ships, by name.
#pragma once

#include <span>
#include <string_view>

#include "models/packet/congestion.hpp"

namespace weft::packet {

struct CongestionEntry {
  std::string_view name, summary, reference;
  bool needs_cnp = false;   // the receiver sends congestion notification packets
  bool needs_acks = false;  // decides by acknowledgements
  std::unique_ptr<CongestionControl> (*make)(const SenderFacts& facts);
};

extern const CongestionEntry kFixedRate, kDcqcn;

std::span<const CongestionEntry* const> congestion_controls();
const CongestionEntry* find_congestion_control(std::string_view name);

}  // namespace weft::packet
