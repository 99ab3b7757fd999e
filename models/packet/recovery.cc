// SPDX-License-Identifier: Apache-2.0
// What a sender does about gaps that are reported, second tries that are lost, and silence.
#include <algorithm>

#include "models/packet/bits.hpp"
#include "models/packet/packet_engine.hpp"

namespace weft::packet {

void Engine::go_back(Flow& flow) {
  counters_.retransmitted += flow.next - flow.acked;
  flow.next = flow.acked;
  ++flow.turn;  // the same way again might end the same
}

// True when a second try was lost.
bool Engine::lost(std::uint32_t f, const Packet& nak) {
  Flow& flow = flows_[f];
  if (flow.recovery == Recovery::go_back_n) {
    go_back(flow);
    return false;
  }
  if (flow.recovery != Recovery::selective) return false;
  const std::uint32_t beyond = nak.bytes;
  if (beyond >= flow.acked && !has(flow.known, beyond)) ++flow.beyond;
  set(flow.known, beyond);
  flow.progress = now_;
  for (std::uint32_t seq = std::max(flow.acked, flow.searched); seq < beyond; ++seq) {
    if (has(flow.known, seq)) continue;
    flow.resend.push_back(seq);
    ++counters_.retransmitted;
  }
  flow.searched = std::max(flow.searched, beyond);
  // What was sent after the second try of the first gap has arrived: that try is lost too (RFC 8985, RACK).
  if (flow.head_sent.ps < 0 || !flow.resend.empty() || nak.seq != flow.acked ||
      nak.sent <= flow.head_sent)
    return false;
  flow.head_sent = Time{-1};
  flow.resend.push_back(flow.acked);
  ++counters_.retransmitted;
  return true;
}

// Where a link is cut everything is lost for a while.
void Engine::note_vain(Flow& flow) {
  constexpr std::uint32_t kMostInVain = 300;
  const std::uint32_t known = flow.acked + flow.beyond;
  const bool vain = flow.alive == 0 && known == flow.vain_at;
  flow.vain = vain ? flow.vain + 1 : 0;
  flow.vain_at = known;
  if (flow.vain < kMostInVain) return;
  if (std::ranges::any_of(ports_, [](const Port& port) { return port.down != 0; })) {
    flow.vain = 0;
  } else {
    hopeless_ = true;
  }
}

void Engine::on_timeout(const Event& event) {
  const std::uint32_t f = event.target;
  Flow& flow = flows_[f];
  if (!flow.in_use || flow.serial != event.arg || flow.acked == flow.packets) return;
  catch_up(f);
  Event again = event;
  if (now_ - flow.progress >= flow.timeout && flow.next > flow.acked) {
    ++counters_.timeouts;
    note_vain(flow);
    flow.progress = now_;
    flow.granted = flow.used + 1;  // of a pulled flow: the pull was lost too
    const std::uint32_t next = flow.next;
    if (flow.recovery == Recovery::go_back_n) {
      go_back(flow);
    } else {
      flow.resend.clear();
      flow.resent = 0;
      for (std::uint32_t seq = flow.acked; seq < flow.next; ++seq) {
        if (!has(flow.known, seq)) flow.resend.push_back(seq);
      }
      flow.searched = flow.next;
      flow.head_sent = Time{-1};
      counters_.retransmitted += flow.resend.size();
    }
    if (flow.congestion) {
      flow.congestion->on_loss({now_, true, false, flow.acked, next});
      pace(flow);
    }
    again.when = now_ + flow.timeout;
    controls_.push(again);
    list(f);
    return;
  }
  const bool waiting = flow.next > flow.acked;
  again.when = (waiting ? flow.progress : now_) + flow.timeout;
  controls_.push(again);
}

}  // namespace weft::packet
