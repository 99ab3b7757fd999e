// SPDX-License-Identifier: Apache-2.0
// Sets of packet numbers, 64 to a word.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::packet {

inline bool has(const std::vector<std::uint64_t>& bits, std::uint32_t i) {
  return (bits[i / 64] >> (i % 64) & 1) != 0;
}
inline void set(std::vector<std::uint64_t>& bits, std::uint32_t i) {
  bits[i / 64] |= std::uint64_t{1} << (i % 64);
}

}  // namespace weft::packet
