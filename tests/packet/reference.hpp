// SPDX-License-Identifier: Apache-2.0
// The packet engine again, as naive as can be: every beginning and end on a wire, every buffer released, every credit that
// comes back and every PAUSE is an event in one heap. Nothing is deferred, nothing made up later; so it is slow, and plain
// enough to be checked by reading. models/packet must agree with it to the picosecond.
//
// Rules    A port sends one packet at a time. Of the classes that have a packet which may leave, class 0 goes first; the others
//          take turns by weight. A packet of a flow that starts here is made when its turn comes; without credit it waits.
//          The head of a packet reaches the far end after the header (cut-through) or all of it (store and forward), plus
//          delay and processing. At a switch that cuts through it goes on so that the wire never runs out of bits.
//          A way may name a virtual lane: then a packet is in its class from the queue in front of that link on. Where the
//          first of a way's next records are minimal and others detours, one of each is drawn, and the detour is taken when
//          queue times length is larger for the minimal one.
//          Buffer is taken when the head arrives and given back when the tail has left; so is credit, plus the way back.
// One      credits come back; then PAUSE, XON and timeouts take effect; then ports end and begin packets, by number; then
// instant  packets arrive, by port. Whatever is touched first ends and begins what it can at that instant.
// PAUSE    goes behind the packet on the wire; the buffer of that packet is given back with the end of the frame.
#pragma once

#include <deque>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "tests/packet/plan.hpp"

namespace weft::test {

class Reference {
 public:
  explicit Reference(const Plan& plan);
  Outcome run();

 private:
  using Index = std::uint32_t;
  struct Packet {
    packet::Kind kind = packet::Kind::data;
    Index flow = 0, seq = 0, beyond = 0;
    std::int64_t bytes = 0, charge = 0;
    Index traffic_class = 0, came = 0;  // now, and by the link to where it is queued
    bool marked = false;
    Time sent{0}, may_leave{0}, lag{0};
    const packet::PathHop* hop = nullptr;
    Index ingress = packet::kNone;
  };
  struct Class {
    std::deque<Packet> queue;
    std::int64_t queued = 0;
    Index turns = 0;                            // taken in this round
    std::deque<Index> flows;                    // may send, in turn
    std::set<std::pair<Time, Index>> paced;     // not before
    std::int64_t held_bytes = 0, headroom = 0;  // of the buffer at the far end: pause
    std::int64_t credit = 0;                    // or credit
    bool held = false, paused = false;
    bool stalled = false,
         waited = false;  // credit: what is next had to wait, what was sent last had
  };
  struct Port {
    packet::PortSpec spec;
    std::vector<Class> classes;
    Time busy_until{0};
    bool sending = false, down = false;
    Packet on_wire;  // while sending
    packet::PortStats stats;
  };
  struct Node {
    packet::NodeSpec spec;
    std::int64_t used = 0;
  };
  struct Flow {
    const PlannedFlow* plan = nullptr;
    std::vector<packet::PathHop> path, back;
    Index packets = 0, next = 0, acked = 0, since_ack = 0, expected = 0, arrived = 0;
    std::int64_t last_bytes = 0;
    bool echo = false, nak_sent = false, left = false;
    Time next_time{0}, progress{0}, last_cnp{-1}, head_sent{-1};
    double ps_per_byte = 0;
    Index window = 0, searched = 0;
    std::vector<bool> listed, received, known, tried;
    std::deque<Index> resend;
    std::unique_ptr<packet::CongestionControl> congestion;
  };
  // Of one instant: what came back, what takes effect, what ports do, what arrives.
  enum Rank { kCredits, kEffects, kPorts, kArrivals };
  enum Kind { kCreditLeaves, kCredit, kControl, kLeft, kTimeout, kTick, kArrival };
  struct Event {
    Time when;
    Rank rank;
    std::uint64_t order;  // within a rank
    std::uint64_t stamp;
    Kind kind;
    Index port, traffic_class;
    std::int64_t amount;
    Packet packet;
    bool operator>(const Event& b) const {
      return std::tie(when, rank, order, stamp) > std::tie(b.when, b.rank, b.order, b.stamp);
    }
  };

  // reference.cc
  void push(Time when, Rank rank, std::uint64_t order, Kind kind, Index port, Index traffic_class,
            std::int64_t amount = 0, const Packet* packet = nullptr);
  void run_until(Time until);
  void handle(const Event& event);
  void settle(Index p);
  bool begin(Index p);
  void end(Index p);
  void transmit(Index p, Class& from);
  void arrive(Index p, Packet packet);
  void enqueue(Index q, Packet packet);
  bool admit(Index in, Index out, const Packet& packet);
  void mark(Index q, Packet& packet);
  void send_frames();
  void change(const PlannedChange& change);
  Index choose(const packet::PathHop* first, Index count, const Packet& packet);
  Index inject(const packet::PathHop* first, const packet::PathHop& hop, const Packet& packet);
  std::int64_t free_share(const Node& node) const;
  Time wire_time(const Port& port, const Packet& packet) const;
  std::int64_t charge_of(std::int64_t bytes) const;

  // reference_transport.cc
  void start(Index f);
  bool may_send(const Flow& flow) const;
  void list(Index f);
  std::optional<Packet> next_packet(Index p, Index c);
  void pace(Flow& flow);
  void told_left(Index f, Time when);
  bool receive(Index in, const Packet& packet);
  void reply(Index f, packet::Kind kind, Index seq, Index beyond, Time sent, bool marked = false);
  void take_in(const Packet& packet);
  void hear(const Packet& packet);
  void again(Index packets);
  void timeout(Index f);
  void settle_sources(const Flow& flow);

  const Plan& plan_;
  std::vector<Node> nodes_;
  std::vector<Port> ports_;
  std::vector<Flow> flows_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  struct Frame {
    Index port, traffic_class;
    bool pause;
  };
  std::deque<Frame> frames_;
  Outcome outcome_;
  Time now_{0};
  std::uint64_t stamp_ = 0;
};

}  // namespace weft::test
