// SPDX-License-Identifier: Apache-2.0
// How a law asks a link for its facts. An absent fact is reported at the link, with what to write; a fact that only serves the
// raw rate is not asked for when the link states its `rate`, one that only serves the efficiency not when it states that.
#pragma once

#include <string_view>

#include "sim/fabric/link_law.hpp"

namespace weft {

inline bool asks_rate(const LinkSpec& spec) { return !spec.rate; }
inline bool asks_efficiency(const LinkSpec& spec) { return !spec.efficiency; }

// Reports that `key` is missing; `cure` is what to write, e.g. "\"mtu\": \"4 KiB\"".
void report_missing(const LinkSpec& spec, std::string_view key, std::string_view cure,
                    Diagnostics& out);

// Reports that `key` has a value that no such link has; `cure` names the values there are.
void report_impossible(const LinkSpec& spec, std::string_view key, std::string_view fact,
                       std::string_view cure, Diagnostics& out);

// raw * numerator / denominator, rounded down: what line coding leaves.
constexpr Bandwidth coded(Bandwidth raw, std::int64_t numerator, std::int64_t denominator) {
  return {raw.bps / denominator * numerator + raw.bps % denominator * numerator / denominator};
}

}  // namespace weft
