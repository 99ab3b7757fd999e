// SPDX-License-Identifier: Apache-2.0
// Packets through ports, switches and endpoints: queues, shared buffers with PFC and ECN, credits, loss, retransmission.
//
// One event per packet-hop. A port commits a packet when its first bit leaves, and what is committed is never revoked, so the
// arrival at the far end is known then. Each port has a list of what is in flight and one alarm for the next arrival. Nothing
// else is scheduled: when anything looks at a port at time t, advance(port, t) first makes up what it did until t, packet by
// packet, each at its own exact time. Buffers are charged when a packet's head arrives and freed when its tail has left.
//
//   Where laziness could show, it ends. A switch whose ingress is above XOFF, or out of credit for somebody, is *eager*: its
//   ports also have an alarm at the end of each packet, so that XON and credits leave in time. A decision that depends on the
//   fill of the whole buffer is taken from upper bounds when that is safe; otherwise all ports of the switch are advanced first.
//
// Ties: of one instant, what a port starts comes before what arrives at it; control events before alarms; alarms by port. So
// who asks for the fill of a buffer in the turn of a port finds what left by ports of smaller numbers at that instant.
// A naive engine without laziness (tests/packet) agrees to the picosecond.
//
// Conservation: payload injected and made by switches (copies, sums) = delivered + dropped + combined in switches + in the
//           network; checked at the end of every run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/packet/congestion.hpp"
#include "models/packet/packet.hpp"
#include "models/packet/pauses.hpp"
#include "models/packet/series.hpp"
#include "models/packet/switch_collective.hpp"
#include "models/packet/telemetry.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/timing_wheel.hpp"

namespace weft::packet {

// Which of several ways a packet takes at a node.
enum class Spread : std::uint8_t {
  hash,     // by the flow's label: one way
  flowlet,  // by a label that changes after a gap
  spray,    // by a label that changes with every packet
  backlog   // the port that would send it first
};

// ECN marking probability: 0 below kmin, rising to pmax at kmax, 1 above (Zhu et al., DCQCN, SIGCOMM 2015, fig. 5).
struct EcnSpec {
  std::int64_t kmin = 0, kmax = 0;  // bytes queued at the egress port; kmax 0: no marking
  double pmax = 0;
  bool roots = false;  // not while the port waits for credit itself
};

struct NodeSpec {
  bool trims = false;       // what does not fit goes on without its payload
  bool endpoint = false;    // sends and takes in data; its buffer is not counted
  std::int64_t buffer = 0;  // shared by all ports, without headroom; 0: no limit
  double alpha =
      1;  // dynamic threshold: a port may hold alpha times what is free (Choudhury and Hahne, 1998)
};

struct PortSpec {
  std::uint32_t from = 0, to = 0;
  std::uint32_t reverse = kNone;
  Bandwidth wire;             // what carries payload and headers
  std::int64_t payload = 0;   // of the largest packet of the link's own; 0: no headers
  std::int64_t overhead = 0;  // bytes that each such packet adds
  Time delay{0};              // propagation
  Time processing{0};         // at the far end, before the packet may go on
  bool cut_through = false;   // the far end forwards behind the header
  Guard guard = Guard::endpoint;
  std::int64_t reserve = 0;   // pause: bytes of this link and class outside the shared pool
  std::int64_t xoff = 0;      // pause: fixed threshold; 0: alpha times what is free
  std::int64_t xon = 0;       // pause: XON when this much below the threshold that paused
  std::int64_t headroom = 0;  // pause: bytes for what still arrives after XOFF
  Time response{0};           // pause: from the arrival of PAUSE until it takes effect
  std::int64_t credit = 0;    // credit: bytes of buffer for each class
  bool lanes = false;         // the far end is a NIC where packets leave their lane: see FlowSpec
  EcnSpec ecn;                // of the queue in front of this link
};

enum class Recovery : std::uint8_t { none, go_back_n, selective };

struct FlowSpec {
  std::int64_t bytes = 0;
  Path path, back;  // data, and what is acknowledged
  std::uint8_t traffic_class = 1;
  // Inside the sender's server, where a NIC has a queue towards the host for each of its ports: a class that no others share, so
  // that a crowded port does not stop what leaves by another. 0: as in the network.
  std::uint8_t lane = 0;
  Recovery recovery = Recovery::none;
  std::uint32_t ack_every = 1;  // packets; the last is always acknowledged
  Time cnp_interval{0};         // of one flow at the receiver; 0: none are sent
  Time timeout{
      0};  // without progress until the sender starts again at the first unacknowledged packet
  Bandwidth cap{0};
  std::unique_ptr<CongestionControl> congestion;  // none: as fast as the port takes it
  std::uint32_t window = 0;  // packets under way at most; 0: as the congestion control says
  std::uint32_t pulled = 0;  // packets to begin with, then as the receiver pulls; 0: not pulled
  bool telemetry = false;  // switches write their load into its packets; acknowledgements bring it
  Time watch{0};           // record what arrives in windows of so long; 0: do not
  bool tell_left = false;  // also when the last byte has left
  bool waits = false;      // sends only what it is granted
  std::uint64_t label = 0;
  std::uint64_t tag = 0;
  std::uint64_t account = 0;  // what happens to it is booked under this number
};

struct EngineOptions {
  std::uint32_t grain = 4096;  // payload of a packet
  std::uint32_t header = 0;    // bytes of buffer that a packet takes beyond its payload
  std::uint32_t cell = 1;      // buffers are counted in cells of this many bytes
  std::uint32_t classes = 2;   // class 0 is control and goes first; the others share by weight
  std::vector<std::uint32_t> weights;  // of classes 1 ..; equal when empty
  Spread spread = Spread::hash;
  Time flowlet_gap{0};
  std::uint32_t stride = 1;  // classes of one virtual lane; the next lane's come behind them
  std::uint64_t seed = 1;
};

struct PortStats {
  std::uint64_t packets = 0, control_packets = 0;
  std::int64_t bytes = 0;  // payload
  Time busy{0};
  std::uint32_t peak_queue = 0;  // bytes
  std::uint64_t marks = 0, drops = 0, trims = 0;
  std::uint64_t pauses = 0, stalls = 0;  // times it had to stop: by PFC, for lack of credit
  Time paused{0}, paused_since{-1};
};

struct EngineCounters {
  std::uint64_t hops = 0, control_hops = 0, alarms = 0, controls = 0;
  std::uint64_t retransmitted = 0, timeouts = 0, naks = 0, cnps = 0;
  std::int64_t injected = 0, delivered = 0, dropped = 0,
               discarded = 0;           // payload; discarded: by the receiving NIC
  std::int64_t made = 0, combined = 0;  // by switches: copies and sums; what became sums
};

// What happened to the flows of one account.
struct FlowLedger {
  std::int64_t retransmitted = 0, dropped = 0;  // bytes of payload
  std::uint64_t marks = 0;
  bool empty() const { return retransmitted == 0 && dropped == 0 && marks == 0; }
};

// A watched port over time.
struct PortSeries {
  Series queue;   // bytes
  Series sent;    // bytes of payload as they start to leave
  Series paused;  // 1 while PFC stops it
};

struct FlowEnd {
  std::uint32_t flow;
  std::uint64_t tag;
  Time when;
  bool left = false;  // not arrived yet: the last byte has left
};

class Engine {
 public:
  explicit Engine(EngineOptions options);
  ~Engine();

  std::uint32_t add_node(const NodeSpec& spec);
  std::uint32_t add_port(const PortSpec& spec);
  void join(std::uint32_t port, std::uint32_t reverse);
  Path add_path(const std::vector<std::uint32_t>& ports, std::uint32_t transport_at = kNone);
  Path add_path(std::vector<PathHop> records, std::uint32_t first_count);
  void finish_build();
  const PathHop& hop(std::uint32_t record) const { return hops_[record]; }

  std::uint32_t start(FlowSpec spec, Time now);
  std::uint32_t add_tree(TreeSpec spec);
  // Ends as a flow does, when every member has all that it waits for.
  void start_collective(CollectiveSpec spec, Time now);

  Time next_event();
  // Handles everything up to `until`, but stops behind an event at which a flow ended, or
  // after that many alarms.
  void run(Time until, std::uint64_t most_alarms = ~std::uint64_t{0});
  std::vector<FlowEnd>& ended() { return ended_; }
  Time now() const { return now_; }

  // 0: nothing passes until it is set again.
  void set_wire(std::uint32_t port, Bandwidth wire, Time now);
  // Nothing passes, and what is there or comes is lost.
  void cut(std::uint32_t port, Time now);
  bool reroute(std::uint32_t flow, Path path, Path back, Time now);

  // Records the port in windows of so long; costs nothing elsewhere.
  void watch(std::uint32_t port, Time window);
  const PortSeries& series(std::uint32_t port) const { return port_series_.at(port); }
  const std::map<std::uint32_t, PortSeries>& watched() const { return port_series_; }
  // Payload that arrived, of flows that asked for it, by account.
  const std::map<std::uint64_t, Series>& flow_series() const { return flow_series_; }

  std::size_t port_count() const { return ports_.size(); }
  const PortSpec& spec(std::uint32_t port) const { return specs_[port]; }
  const PortStats& stats(std::uint32_t port) const { return stats_[port]; }
  const EngineCounters& counters() const { return counters_; }
  // By account; asks all flows that are not gone yet.
  const std::unordered_map<std::uint64_t, FlowLedger>& ledgers();
  // For how long PFC has stopped a class of a port; who stopped whom.
  Time paused(std::uint32_t port, std::uint8_t traffic_class) const;
  PauseLog::Edges pause_edges() const { return pauses_.edges(options_.classes, now_); }
  const PauseLog& pauses() const { return pauses_; }
  std::size_t live_packets() const { return packets_.live(); }
  std::size_t most_packets() const { return packets_.most(); }
  std::size_t memory() const;

  // Everything that some flow sends is lost, however often: no buffer on its way takes it.
  bool hopeless() const { return hopeless_; }
  // Ports that wait for each other, when nothing can move any more; empty when the flows just cannot send.
  std::vector<std::uint32_t> waiting_cycle() const;
  std::int64_t queued(std::uint32_t port) const;
  // What comes in and is made = what is delivered, lost, combined or in the network.
  void check_conservation() const;
  // Bytes of buffer that are taken, and copies that are on their way, when nothing is left to happen: 0, or something leaks.
  std::int64_t held();
  // Makes up what all ports did until now, which changes no result.
  void settle();

 private:
  struct Node {
    std::int64_t used = 0, pool = 0;  // of the shared buffer; pool 0: no limit
    double alpha = 1;
    std::uint32_t eager = 0;             // ingress gates that are paused or starved
    std::uint32_t first = 0, count = 0;  // ports that leave it, in node_ports_
    bool endpoint = false, trims = false;
  };
  struct Return {
    Time when;
    std::uint32_t bytes, next;
  };
  // Flows that start at one port.
  struct Waiting {
    Time when;
    std::uint32_t flow, serial;  // of one instant the older flow first
    bool operator>(const Waiting& other) const {
      return when != other.when ? when > other.when : serial > other.serial;
    }
  };
  struct Ring {
    std::vector<std::uint32_t> flows;  // may send, in turn; from `head` on
    std::size_t head = 0;
    std::uint32_t prompt = 0;  // flows that want it to commit at the very instant
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> later;  // paced
    bool empty() const { return head == flows.size() && later.empty(); }
  };
  using Source = std::vector<Ring>;  // by class
  // What a flow is in a collective in switches: from a member, between switches, from the root, through the switches.
  enum class Role : std::uint8_t { sum, partial, result, store };
  struct Flow {
    Path path, back;
    std::uint32_t packets = 0, next = 0, acked = 0;  // sender
    std::uint32_t tried = 0;                         // all before it were sent at least once
    std::uint32_t expected = 0, arrived = 0;         // receiver: NIC in order, memory
    std::uint32_t window = 0, last_bytes = 0, ack_every = 1, since_ack = 0;
    std::uint32_t alive = 0;   // its packets in the network
    std::uint32_t serial = 0;  // of the flow, never reused
    std::uint8_t lane = 1, traffic_class = 1, echo = 0, turn = 0;
    Recovery recovery = Recovery::none;
    bool ended = false, in_use = false, nak_sent = false, tell_left = false;
    bool prompt = false;  // its ports commit at the very instant, until the last packet has left
    Time next_time{0};    // pacing: not before
    Time progress{0}, timeout{0}, cnp_interval{0}, last_cnp{-1}, last_sent{0};
    double ps_per_byte = 0;  // pacing; 0: none
    Bandwidth cap{0};
    std::uint64_t listed = 0;  // by first record of the path: in the ring of that port
    std::uint64_t label = 0, tag = 0, account = 0;
    FlowLedger ledger;
    // selective: bitmaps of what the receiver has and of what the sender knows of it; what to send again, from `resent` on
    std::vector<std::uint64_t> received, known;
    std::vector<std::uint32_t> resend;
    Time head_sent{-1};        // second try of the first gap; -1: not sent, or given up
    std::uint32_t beyond = 0;  // known to the sender beyond what is acknowledged
    std::uint32_t resent = 0, searched = 0;  // searched: gaps before it have been sent again
    std::uint32_t vain = 0,
                  vain_at = 0;  // timeouts with everything lost, and what was acknowledged
    std::unique_ptr<CongestionControl> congestion;
    std::uint32_t most_under_way = 0;     // packets; 0: no limit
    std::uint32_t granted = 0, used = 0;  // pulled: packets it may send, has sent
    bool pulled = false, telemetry = false;
    Role role = Role::sum;                        // in a collective
    std::uint32_t collective = kNone, place = 0;  // place: member or switch
    std::uint64_t awaited = 0;                    // packets of it that have not arrived
    Series* series = nullptr;                     // what arrived, when watched
  };
  enum : std::uint32_t { kPause, kResume, kTimeout, kLeft, kPull, kGrant };
  struct Deferred {
    std::uint32_t port, cause;
    std::uint8_t traffic_class;
    bool pause;
  };

  // packet_engine.cc
  // What a port did until then.
  void advance(std::uint32_t p, Time until) {
    const Port& port = ports_[p];
    const bool works = port.leaving_ingress != kNone || (port.ready & ~port.held) != 0;
    if (works && port.busy_until <= until) make_up(p, until);
  }
  void make_up(std::uint32_t p, Time until);
  bool tells(const Port& port) const;
  bool start_next(std::uint32_t p, Port& port, std::uint8_t classes, Time until);
  void commit(std::uint32_t p, Port& port, std::uint32_t k, Time start);
  void rearm(std::uint32_t p);
  void on_arrival(std::uint32_t p);
  void on_start(std::uint32_t p);
  void fetch_ahead();
  void deliver(std::uint32_t p, std::uint32_t k);
  void enqueue(std::uint32_t q, std::uint32_t k);
  Time ready_at(std::uint32_t p, std::uint8_t c) const;
  std::uint8_t pick_class(std::uint32_t p, std::uint8_t classes) const;
  void take_turn(std::uint32_t p, std::uint8_t c);
  // Alarms of the wheel: what a port starts, by its number; then what arrives by it.
  std::uint32_t arrival_alarm(std::uint32_t p) const {
    return static_cast<std::uint32_t>(ports_.size()) + p;
  }
  void wake(std::uint32_t p, Time when);
  Time wire_time(std::uint32_t p, const Packet& packet) const;
  std::uint32_t charge_of(std::uint32_t bytes) const;
  void hold(std::uint32_t p, std::uint8_t c, bool on, std::uint32_t cause);
  void handle_control(const Event& event);
  Queue& queue(std::uint32_t p, std::uint8_t c) { return queues_[p * options_.classes + c]; }
  Gate& gate(std::uint32_t p, std::uint8_t c) { return gates_[p * options_.classes + c]; }

  // choice.cc
  std::uint32_t choose(const PathHop* records, std::uint32_t count, const Packet& packet);
  std::uint32_t inject(const PathHop* records, const PathHop& hop, const Packet& packet);
  std::int64_t load(std::uint32_t p);

  // observation.cc
  void note_queue(std::uint32_t p, Time when);
  void book(Flow& flow);
  std::uint32_t blame(std::uint32_t in, std::uint8_t c, std::uint32_t out, const Packet& packet);

  // buffers.cc
  // Takes room behind `in` for a packet; false when there is none.
  bool admit(std::uint32_t in, std::uint32_t out, const Packet& packet) {
    Gate& held = gate(in, packet.came);
    if (std::int64_t{held.charge} + packet.charge > held.limit)
      return admit_beyond(in, out, packet);
    held.charge += static_cast<std::int32_t>(packet.charge);
    nodes_[ports_[in].to].used += packet.charge;
    return true;
  }
  bool admit_beyond(std::uint32_t in, std::uint32_t out, const Packet& packet);
  // The packet that was committed last has left.
  void release(Port& port) {
    const std::uint32_t in = std::exchange(port.leaving_ingress, kNone);
    if (in >= kShared) return release_shared(port, in);
    Gate& held = gate(in, port.leaving_class);
    if (held.headroom > 0 || held.paused != 0) return release_above(port, in);
    held.charge -= static_cast<std::int32_t>(port.leaving_charge);
    nodes_[port.from].used -= port.leaving_charge;
  }
  void release_shared(Port& port, std::uint32_t shared);
  void release_above(Port& port, std::uint32_t in);
  void give_back_buffer(std::uint32_t in, const Packet& packet);
  void mark(std::uint32_t q, Packet& packet);
  bool take_credit(std::uint32_t p, std::uint8_t c, std::uint32_t charge, Time start);
  Time credit_at(const Gate& gate, std::int64_t needed) const;
  bool waits_for_credit(std::uint32_t p, std::uint8_t c) const;
  std::int64_t dynamic_threshold(const Node& node) const;
  std::int64_t threshold(const Node& node, const PortSpec& spec) const;
  bool holds_packets_of(std::uint32_t q, std::uint32_t in) const;
  bool holds_packets_of(std::uint32_t q, std::uint8_t c, std::uint32_t in,
                        std::uint32_t deepest) const;  // among the first so many
  void give_credit(std::uint32_t in, std::uint8_t c, std::uint32_t charge, Time when);
  // A packet is out of its switch at `end`: its credit goes back then, or the port remembers what to free.
  void leave_buffer(Port& port, const Packet& packet, Time end) {
    if (packet.ingress >= kShared) {
      if (packet.ingress != kNone) leave_shared(port, packet, end);
      return;
    }
    if (ports_[packet.ingress].guard == Guard::credit) {
      give_credit(packet.ingress, packet.came, packet.charge, end);
      return;
    }
    port.leaving_ingress = packet.ingress;
    port.leaving_charge = packet.charge;
    port.leaving_class = packet.came;
  }
  void feed(std::uint32_t p, std::uint8_t c);
  void collect(Gate& gate, Time when);
  void become_eager(std::uint32_t in);
  bool waited_for(std::uint32_t in, std::uint8_t c) const {
    const Gate& gate = gates_[in * options_.classes + c];
    return (gate.paused | gate.starved) != 0;
  }
  void advance_all(std::uint32_t node, Time until);
  void advance_others(const Port& port);
  void come_to(Time now);
  void send_pauses();
  void drop(std::uint32_t port, std::uint32_t k);

  // multicast.cc
  std::uint32_t take_shared(const SharedBuffer& buffer);
  void free_shared(std::uint32_t id);
  void replicate(std::uint32_t p, std::uint32_t k, std::uint32_t first, std::uint32_t count);
  void fan_out(std::uint32_t k, std::uint32_t first, std::uint32_t count, std::uint32_t buffer,
               Time when);
  void leave_shared(Port& port, const Packet& packet, Time end);
  std::uint32_t freed_by_last(std::uint32_t ingress);
  // The port by which a packet came that has this ingress; kNone: made here.
  std::uint32_t came_by(std::uint32_t ingress) const {
    return ingress < kShared || ingress == kNone ? ingress : shared_[ingress & ~kShared].in;
  }

  // switch_collective.cc
  std::uint32_t make_passive(const CollectiveSpec& spec, std::uint64_t awaited);
  void take_in_part(std::uint32_t k);
  void combine(std::uint32_t id, std::uint32_t at, const Packet& packet);
  void sum_has_left(const SharedBuffer& buffer);
  void on_grant(const Event& event);
  void grant(std::uint32_t f);

  // trimming.cc
  bool trim(std::uint32_t in, std::uint32_t out, std::uint32_t k);
  void pull_for(std::uint32_t f, std::uint32_t in);
  void on_pull_due(const Event& event);
  void receive_trimmed(std::uint32_t in, std::uint32_t k);
  void hear_pull(std::uint32_t f);
  void hear_trimmed(std::uint32_t f, std::uint32_t seq);

  // transport.cc
  std::uint32_t take_flow();
  std::uint32_t next_packet(std::uint32_t p, std::uint8_t c,
                            Time start);  // of the flows that start here
  Time next_send(std::uint32_t p, std::uint8_t c) const;
  bool may_send(const Flow& flow) const;
  void catch_up(std::uint32_t f);
  void list(std::uint32_t f);
  void last_left(std::uint32_t f, Time when);
  void unlist(std::uint32_t f, std::uint32_t p);
  void go_back(Flow& flow);
  void note_vain(Flow& flow);
  bool lost(std::uint32_t f, const Packet& nak);
  bool receive(std::uint32_t in, std::uint32_t k);  // at the NIC; false when the packet is used up
  void take_in(std::uint32_t k);                    // at the endpoint
  void hear(std::uint32_t k);                       // ack, NAK or CNP at the sender
  void reply(std::uint32_t f, Kind kind, std::uint32_t seq, std::uint32_t beyond, Time sent,
             std::uint8_t flags = 0, std::uint32_t telemetry = kNone);
  void pace(Flow& flow);
  void pace_at(Flow& flow, Time now);
  void on_timeout(const Event& event);
  void retire(std::uint32_t f);
  void free_packet(std::uint32_t k);

  EngineOptions options_;
  std::vector<Port> ports_;
  std::vector<Queue> queues_;  // port * classes + class
  std::vector<Gate> gates_;
  std::vector<PortSpec> specs_;
  std::vector<PortStats> stats_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> node_ports_;
  std::vector<PathHop> hops_;
  std::vector<Source> sources_;
  PacketSlab packets_;
  std::vector<Return> returns_;
  std::uint32_t free_return_ = kNone;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  std::vector<Deferred> deferred_;
  std::vector<FlowEnd> ended_;
  TimingWheel wheel_;
  EventQueue<> controls_;
  TelemetryTable telemetry_;
  std::map<std::uint32_t, Time> pull_free_;  // by port: when the next pull may be sent
  std::uint64_t pull_serial_ = 0;
  std::vector<SharedBuffer> shared_;
  std::uint32_t free_shared_ = kNone;
  std::size_t shared_in_use_ = 0;
  std::vector<Tree> trees_;
  std::vector<Collective> collectives_;
  std::vector<std::uint32_t> free_collectives_;
  std::uint32_t collective_serial_ = 0;
  std::uint64_t grant_serial_ = 0;
  std::map<std::uint32_t, PortSeries> port_series_;
  std::map<std::uint64_t, Series> flow_series_;
  std::unordered_map<std::uint64_t, FlowLedger> ledger_;  // of flows that are gone
  PauseLog pauses_;
  EngineCounters counters_;
  Time now_{0};
  std::uint32_t ended_below_ = 0;  // ports with smaller numbers have had their turn at this instant
  std::uint32_t serial_ = 0;
  bool hopeless_ = false;
  std::int64_t in_network_ = 0;
};

}  // namespace weft::packet
