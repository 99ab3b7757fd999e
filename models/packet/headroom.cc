// SPDX-License-Identifier: Apache-2.0
#include "models/packet/headroom.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/core/seconds.hpp"

namespace weft::packet {
namespace {

constexpr double kSecondsPerMetre = 5e-9;
constexpr std::int64_t kQuantumBits = 512;

struct Quanta {
  std::int64_t gbps, quanta;
};
// IEEE 802.3 annex 31B.3.7. The constant parts of the Spectrum tables differ by these numbers x 64 B.
constexpr std::array<Quanta, 7> kQuanta{
    {{10, 67}, {25, 80}, {40, 118}, {50, 147}, {100, 394}, {200, 453}, {400, 905}}};

}  // namespace

std::int64_t headroom(const HeadroomFacts& facts) {
  const double waiting = (2 * facts.delay + facts.phy + facts.response).seconds();
  const double bytes = static_cast<double>(facts.port_mtu) + waiting * facts.rate.bytes_per_s();
  return facts.lossless_mtu + static_cast<std::int64_t>(std::ceil(bytes * facts.cell_use - 1e-6));
}

Time cable_delay(double metres) { return time_from_seconds(metres * kSecondsPerMetre); }

std::int64_t pause_quanta(Bandwidth rate) {
  for (const Quanta& entry : kQuanta) {
    if (rate.bps <= entry.gbps * 1'000'000'000) return entry.quanta;
  }
  return kQuanta.back().quanta;
}

Time longest_response(Bandwidth rate) {
  return transfer_time(Bytes{pause_quanta(rate) * kQuantumBits / 8}, rate);
}

double worst_cell_use(std::int64_t cell, std::int64_t smallest) {
  const auto use = [&](std::int64_t bytes) {
    const std::int64_t cells = (bytes + cell - 1) / cell;
    return static_cast<double>(cells * cell) / static_cast<double>(bytes);
  };
  const std::int64_t just_above = (smallest + cell - 1) / cell * cell + 1;
  return std::max(use(smallest), use(just_above));
}

}  // namespace weft::packet
