// SPDX-License-Identifier: Apache-2.0
// What the schemes share. A scheme is a class with
//   Spec           its keys (sim/run/congestion_spec.hpp)
//   State          the variables that a sender keeps for each connection; their size is reported
//   resolve        the keys with every default filled in
#pragma once

#include <algorithm>
#include <cmath>

#include "models/packet/congestion/catalog.hpp"

namespace weft::packet {

template <class Scheme>
std::unique_ptr<CongestionControl> make_scheme(const SenderFacts& facts,
                                               const CongestionSpec& spec) {
  return std::make_unique<Scheme>(facts, Scheme::resolve(facts, spec));
}
template <class Scheme>
Json parameters_of(const SenderFacts& facts, const CongestionSpec& spec) {
  return write_config(Scheme::resolve(facts, spec));
}

template <class T>
void fill(std::optional<T>& value, T otherwise) {
  if (!value) value = otherwise;
}

// A step given for one line rate, at another.
inline Bandwidth per_line(Bandwidth step, Bandwidth at, Bandwidth line) {
  return Bandwidth{std::max<std::int64_t>(
      1, scaled(step, static_cast<double>(line.bps) / static_cast<double>(at.bps)).bps)};
}

inline double as_double(Bandwidth rate) { return static_cast<double>(rate.bps); }

// Whole packets of a window; one at least, so that acknowledgements keep coming.
inline std::uint32_t whole_packets(double packets) {
  return static_cast<std::uint32_t>(std::clamp(std::ceil(packets - 1e-9), 1.0, 4e9));
}

// Bandwidth-delay product in packets.
inline double window_of(const SenderFacts& facts) {
  return std::max(1.0, facts.line_rate.bytes_per_s() * facts.base_rtt.seconds() / facts.grain);
}

// Reactions that happen once per window of data: the first signal counts, then nothing until what was under way is answered,
// unless a second try is lost (RFC 5681, section 4.3: that counts as a second loss).
class OncePerWindow {
 public:
  bool fresh(const LossSignal& loss) { return loss.again || fresh(loss.acked, loss.next); }
  bool fresh(std::uint32_t acked, std::uint32_t next) {
    if (armed_ && acked < until_) return false;
    armed_ = true;
    until_ = next;
    return true;
  }

 private:
  std::uint32_t until_ = 0;
  bool armed_ = false;
};

}  // namespace weft::packet
