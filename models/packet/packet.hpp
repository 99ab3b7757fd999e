// SPDX-License-Identifier: Apache-2.0
// What travels and what it waits in: plain data, laid out for the cache. A packet-hop touches one packet, two ports, one queue
// and one gate.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/units.hpp"

namespace weft::packet {

inline constexpr std::uint32_t kNone = 0xFFFF'FFFF;
inline constexpr std::uint32_t kControlBytes =
    64;  // wire bytes of an ack, CNP or PAUSE: a minimal Ethernet frame

enum class Kind : std::uint8_t { data, ack, nak, cnp, trimmed, pull };

inline constexpr std::uint8_t kCut = 2;  // see Port::down

inline constexpr std::int64_t kMostBuffer = 0x7FFF'FFFF;  // bytes of one buffer

// 2^64 over the golden ratio: spreads consecutive numbers before they are mixed.
inline constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15ULL;

// A class in a set of classes.
constexpr std::uint8_t bit(std::uint8_t traffic_class) {
  return static_cast<std::uint8_t>(1U << traffic_class);
}

// What keeps the buffer at the far end of a link from overflowing.
enum class Guard : std::uint8_t {
  endpoint,  // nothing to guard: data is taken in as it comes
  drop,      // nothing: what does not fit is lost
  pause,     // PFC: the far end asks to stop
  credit     // bytes granted in advance
};

// Bits of Packet::flags.
inline constexpr std::uint8_t kMarked = 1;  // ECN congestion experienced; on an ack: echoed
inline constexpr std::uint8_t kLast = 2;    // of its flow: asks for an ack

struct alignas(64) Packet {
  Time when;              // in flight: when it reaches the far end; queued: when it may leave
  Time sent;              // by the sender; an ack carries that of the packet it answers
  std::uint32_t next;     // in the list that holds it
  std::uint32_t flow;     // slot of its flow
  std::uint32_t seq;      // data: number in its flow; ack: all before it have arrived
  std::uint32_t hop;      // the record of the path that it is on or queued for
  std::uint32_t ingress;  // port by which it came to where it is queued; kNone at its source
  std::uint32_t lag;      // ps by which its tail is behind `when`, at a switch that cuts through
  std::uint32_t bytes;    // payload; 0 for control
  std::uint32_t charge;   // bytes of buffer that it occupies
  Kind kind;
  std::uint8_t traffic_class;
  std::uint8_t flags;
  std::uint8_t turn = 0;            // another one of its flow, another way: flowlet, or try
  std::uint8_t came = 0;            // class in which it came by `ingress`
  std::uint32_t telemetry = kNone;  // what switches wrote into it, of flows that ask for it
};
static_assert(sizeof(Packet) == 64);

// Packets in one vector, freed ones first.
class PacketSlab {
 public:
  std::uint32_t take() {
    ++live_;
    if (free_ == kNone) {
      packets_.emplace_back();
      return static_cast<std::uint32_t>(packets_.size() - 1);
    }
    const std::uint32_t index = free_;
    free_ = packets_[index].next;
    return index;
  }
  void give_back(std::uint32_t index) {
    --live_;
    packets_[index].next = free_;
    free_ = index;
  }
  Packet& operator[](std::uint32_t index) { return packets_[index]; }
  const Packet& operator[](std::uint32_t index) const { return packets_[index]; }
  void fetch(std::uint32_t index) const {
    if (index != kNone) __builtin_prefetch(&packets_[index]);
  }
  std::size_t live() const { return live_; }
  std::size_t most() const { return packets_.size(); }

 private:
  std::vector<Packet> packets_;
  std::uint32_t free_ = kNone;
  std::size_t live_ = 0;
};

// A path is a graph of records without cycles: this link, then any one of `count` records from `next` on. A single way has
// blocks of one; a sprayed flow more. No record follows the last link.
struct PathHop {
  std::uint32_t port = 0;
  std::uint32_t next = 0;
  std::uint16_t count = 0;
  bool transport : 1 = false;   // the NIC that acknowledges stands at the far end
  bool fan : 1 = false;         // then all of the records, not any one
  std::uint8_t lane : 3 = 0;    // data goes by the virtual lane `lane - 1`; 0: as it came
  std::uint8_t length : 3 = 0;  // links between switches from here on, this one included
  std::uint8_t minimal = 0;     // the first so many of the next are minimal, the others detours
};
static_assert(sizeof(PathHop) == 12);
struct Path {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// One direction of a link with the queues that feed it. `busy_until` is the end of what has been committed to the wire; a packet
// is committed when its first bit leaves and never taken back.
struct alignas(64) Port {
  Time busy_until{0};
  Time reach{0};      // propagation, and processing at the far end
  Time full_time{0};  // of a packet of one grain on the wire
  std::uint32_t flight_head = kNone, flight_tail = kNone;  // committed, not yet arrived; in order
  std::uint32_t control_time = 0;         // ps on the wire of a control packet, and of a header
  std::uint32_t leaving_ingress = kNone;  // whose buffer is freed at busy_until
  std::uint32_t leaving_charge = 0;
  std::uint32_t from = 0, to = 0;  // nodes
  std::uint32_t source = kNone;    // flows that start here
  std::uint8_t leaving_class = 0;
  std::uint8_t ready = 0;         // classes with something to send
  std::uint8_t held = 0;          // classes that are paused or out of credit
  std::uint8_t down = 0;          // nothing passes; kCut: and what is sent there is lost
  Guard guard = Guard::endpoint;  // of the buffer at the far end
  bool cut_through = false;       // the far end forwards behind the header
  bool marks : 1 = false;         // ECN
  bool watched : 1 = false;       // its queue is recorded over time
  bool lanes : 1 = false;         // leads to where packets leave their lane: see FlowSpec
  bool urgent =
      false;  // may hold packets of an ingress that somebody waits for: see eager switches
};
static_assert(sizeof(Port) == 64);

struct Queue {
  std::uint32_t head = kNone, tail = kNone;
  std::uint32_t charge = 0;  // bytes of buffer that its packets occupy
  std::uint32_t turns = 0;   // taken in this weighted round
};

// The buffer at the far end of a port, for one class: what arrived by this link and has not left yet.
struct Gate {
  std::int32_t charge = 0;  // pause: bytes of the shared pool; credit: bytes that may still be sent
  std::int32_t headroom = 0;  // pause: bytes beyond XOFF
  std::int32_t limit = 0;     // pause: what `charge` may reach without a look at the pool
  std::uint32_t returns = kNone,
                returns_tail = kNone;  // credit: on their way back, in order of time
  std::uint8_t paused = 0;             // pause: PAUSE was sent and not yet taken back
  std::uint8_t starved = 0;            // credit: the sender waits
  std::uint8_t waited = 0;             // credit: for what it sent last it had to wait
};

}  // namespace weft::packet
