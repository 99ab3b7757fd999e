// SPDX-License-Identifier: Apache-2.0
#include "models/packet/congestion/catalog.hpp"

#include <algorithm>

namespace weft::packet {

std::span<const CongestionEntry* const> congestion_controls() {
  static constexpr const CongestionEntry* kAll[] = {
      &kFixedRate, &kDcqcn, &kHpcc, &kTimely, &kSwift, &kDctcp, &kCubic, &kReceiver, &kFecn,
  };
  return kAll;
}

const CongestionEntry* find_congestion_control(CongestionScheme scheme) {
  const auto all = congestion_controls();
  const auto found = std::ranges::find(all, scheme, &CongestionEntry::scheme);
  return found == all.end() ? nullptr : *found;
}

std::string_view CongestionEntry::name() const {
  for (const auto& [value, text] : enum_names(CongestionScheme{})) {
    if (value == scheme) return text;
  }
  return {};
}

}  // namespace weft::packet
