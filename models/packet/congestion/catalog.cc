// SPDX-License-Identifier: Apache-2.0
#include "models/packet/congestion/catalog.hpp"

#include <algorithm>

namespace weft::packet {

std::span<const CongestionEntry* const> congestion_controls() {
  static constexpr const CongestionEntry* kAll[] = {
      &kFixedRate,
      &kDcqcn,
  };
  return kAll;
}

const CongestionEntry* find_congestion_control(std::string_view name) {
  const auto all = congestion_controls();
  const auto found = std::ranges::find(all, name, &CongestionEntry::name);
  return found == all.end() ? nullptr : *found;
}

}  // namespace weft::packet
