// SPDX-License-Identifier: Apache-2.0
#include "sim/core/hash.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace weft {

std::uint64_t stable_hash(std::string_view text, std::uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

std::string Fingerprint::hex() const { return fmt::format("{:016x}", value()); }

}  // namespace weft
