// SPDX-License-Identifier: Apache-2.0
// A collective that switches take part in: they add what their members send, packet number by packet number, and multicast.
//
//   Sum       Every member sends the vector to its switch. A switch with a packet of one number from all below it passes one
//             packet on: up to its parent, from the root down to whoever gets the sum.
//   Store     A member sends to the root, which multicasts; what it stores is its own, or the sums that it was given, as they
//             come (multimem.ld_reduce and multimem.st over NVLink).
//   Window    A switch holds at most `window` partial sums of one collective: a member may be that many packets ahead of the
//             last sum that has left the root, as it learns a way from the root to the furthest member later. So partial
//             sums never wait for room, and collectives cannot block each other over it.
//   Multicast A packet is taken once into the buffer of a switch and leaves by several ports, each when it may; its buffer is
//             free when the last copy has left.
//
// A partial sum is complete when the last bit of the last packet is there; it does not cut through. Nothing is acknowledged:
// links must not lose packets.
#pragma once

#include <cstdint>
#include <vector>

#include "models/packet/packet.hpp"

namespace weft::packet {

// Packet::ingress from here on: a buffer shared by copies; kNone: none at all.
inline constexpr std::uint32_t kShared = 0x8000'0000;

struct TreeSpec {
  struct Switch {
    std::uint32_t parent = kNone;            // index; parents come before their children
    std::uint32_t up = kNone, down = kNone;  // ports: to the parent, and of the parent to it
  };
  struct Member {
    std::uint32_t at = 0;                 // index of its switch
    std::vector<std::uint32_t> up, down;  // ports to that switch, and back
    std::uint8_t lane = 0;                // see FlowSpec
  };
  std::vector<Switch> switches;  // the root first
  std::vector<Member> members;
};

enum class SumTo : std::uint8_t {
  nobody,
  all,
  in_turn,
  root
};  // in_turn: packet i to member i mod n
enum class Store : std::uint8_t {
  nothing,
  root,
  own,
  sums
};  // own: an even part of the vector each

struct CollectiveSpec {
  std::uint32_t tree = 0;
  std::int64_t bytes = 0;  // the vector
  SumTo sum = SumTo::all;
  Store store = Store::nothing;
  std::uint32_t root = 0;    // a member
  std::uint32_t window = 1;  // packets
  Bandwidth cap{0};          // for the vector; what is less of it goes at as much less
  std::uint8_t traffic_class = 1;
  std::uint64_t tag = 0, account = 0;
};

// The records of a tree.
struct Tree {
  TreeSpec spec;
  std::vector<Path> sum_up, store_up,
      down;                          // by member: to its switch, to all by the root, from the root
  std::vector<Path> partial_up;      // by switch; of the root: down to all
  std::vector<std::uint32_t> below;  // by switch: members and switches that send to it
  Time back{0};                      // from the root to the furthest member
};

// One buffer with several copies on their way out.
struct SharedBuffer {
  std::uint32_t in = kNone;  // port by which it came; kNone: made here
  std::uint32_t left = 0;    // copies that have not left
  std::uint32_t charge = 0;
  std::uint32_t collective = kNone, serial = 0;  // whose sum it is
  std::uint32_t next = kNone;                    // in the list of free ones
  std::uint8_t traffic_class = 0;
  Time end{0};  // when the last of those that are known to leave has left
};

struct Collective {
  struct Slot {
    std::uint32_t count = 0, seq = 0;
    Time ready{0};
  };
  CollectiveSpec spec;
  std::vector<std::uint32_t> sums, stores, partials;  // flows; of the root: the sums
  std::vector<Slot> slots;                            // switch * window + number % window
  std::uint64_t left = 0;                             // packets that members wait for
  std::uint32_t serial = 0;
  bool in_use = false;
};

}  // namespace weft::packet
