// SPDX-License-Identifier: Apache-2.0
// In-band telemetry beside the packets: a packet names its record only while its flow asks for one, so that packets stay small
// and fabrics without HPCC pay a comparison. The record goes with the packet to the receiver and back with the acknowledgement.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/packet/congestion.hpp"
#include "models/packet/packet.hpp"

namespace weft::packet {

class TelemetryTable {
 public:
  std::uint32_t take() {
    if (free_.empty()) {
      records_.emplace_back();
      return static_cast<std::uint32_t>(records_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    records_[index].clear();
    return index;
  }
  // kNone: nothing to give back.
  void give_back(std::uint32_t index) {
    if (index != kNone) free_.push_back(index);
  }
  void add(std::uint32_t index, const HopTelemetry& hop) { records_[index].push_back(hop); }
  std::span<const HopTelemetry> hops(std::uint32_t index) const {
    if (index == kNone) return {};
    return records_[index];
  }
  std::size_t in_use() const { return records_.size() - free_.size(); }

 private:
  std::vector<std::vector<HopTelemetry>> records_;
  std::vector<std::uint32_t> free_;
};

}  // namespace weft::packet
