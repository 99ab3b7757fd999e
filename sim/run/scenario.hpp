// SPDX-License-Identifier: Apache-2.0
// A question, as a person writes it: a fabric, jobs that run on it, faults, and what to observe.
//
//   {"fabric": {"use": "dgx2"}, "workload": {"collective": "all_reduce", "size": "1 GiB"}}
//
// `workload` is the short form of one job. A job is exactly one of: collective, p2p, flows, pattern, training (a `model`),
// inference (a `model` and `requests`). What the format names
// but this version cannot honour is refused with "not yet", never ignored.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/fabric/spec.hpp"
#include "sim/run/expect.hpp"
#include "sim/run/inference_spec.hpp"
#include "sim/run/packet_spec.hpp"
#include "sim/run/training_spec.hpp"
#include "sim/workload/placement.hpp"
#include "sim/workload/schedule.hpp"

namespace weft {

// What a scenario may ask for, so that sums of times and sizes fit.
inline constexpr Time kLatest = 2'592'000_s;  // 30 days
inline constexpr Bytes kMostData{std::int64_t{1} << 50};

enum class Fidelity { analytic, fluid, packet };
constexpr auto enum_names(Fidelity) {
  using enum Fidelity;
  return std::array<EnumName<Fidelity>, 3>{
      {{analytic, "analytic"}, {fluid, "fluid"}, {packet, "packet"}}};
}

enum class JobKind { collective, p2p, flows, training, inference, trace };
constexpr auto enum_names(JobKind) {
  using enum JobKind;
  return std::array<EnumName<JobKind>, 6>{{{collective, "collective"},
                                           {p2p, "p2p"},
                                           {flows, "flows"},
                                           {training, "training"},
                                           {inference, "inference"},
                                           {trace, "trace"}}};
}

enum class Pattern { permutation, incast, all_to_all, random, ring };
constexpr auto enum_names(Pattern) {
  using enum Pattern;
  return std::array<EnumName<Pattern>, 5>{{{permutation, "permutation"},
                                           {incast, "incast"},
                                           {all_to_all, "all_to_all"},
                                           {random, "random"},
                                           {ring, "ring"}}};
}

struct PlacementSpec {
  PlacementPolicy policy = PlacementPolicy::packed;
  std::optional<std::int64_t> gpus_per_server;
  std::vector<std::string> order;
  template <class V>
  void visit(V&& v) {
    v("policy", policy,
      "packed: fill servers in order; spread: one GPU per server in turn; random: by the seed");
    v("gpus_per_server", gpus_per_server, "only the first so many GPUs of each server",
      between(1, 100'000));
    v("order", order,
      "ranks of a training job, fastest first; default: [\"tp\", \"cp\", \"dp\", \"pp\"]");
  }
};

struct P2pSpec {
  std::string src, dst;
  Bytes size = 64_MiB;
  std::optional<Via> via;
  bool bidirectional = false;
  bool peer_access = true;
  template <class V>
  void visit(V&& v) {
    v("src", src, "a GPU", required, not_empty);
    v("dst", dst, "a GPU", required, not_empty);
    v("size", size, "of the copy", positive, at_most(kMostData));
    v("via", via,
      "direct, relay (through a GPU), host (through host memory), network; default: what the "
      "runtime does");
    v("bidirectional", bidirectional, "copies both ways at once");
    v("peer_access", peer_access, "off: GPUs reach each other through host memory only");
  }
};

struct FlowEntry {
  std::string src, dst;
  Bytes size;
  Time start{0};
  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("src", src, "a GPU", required, not_empty);
    v("dst", dst, "a GPU", required, not_empty);
    v("size", size, "of the flow", required, at_most(kMostData));
    v("start", start, "when it starts", at_most(kLatest));
  }
};

struct JobSpec {
  std::string name = "job";
  std::optional<JobKind> kind;
  std::optional<std::int64_t> gpus;
  PlacementSpec placement;
  Time start{0};
  Json repeat;
  // collective
  std::optional<CollectiveKind> collective;
  std::optional<Bytes> size;
  std::string algorithm;
  std::int64_t root = 0;
  std::optional<std::int64_t> channels;
  std::optional<Bytes> chunk;
  bool expand = false;
  std::optional<std::int64_t> group_size;
  std::int64_t group_stride = 1;
  // p2p, flows, patterns
  std::optional<P2pSpec> p2p;
  std::vector<FlowEntry> flows;
  std::optional<Pattern> pattern;
  std::optional<std::int64_t> queue_pairs;
  std::int64_t traffic_class = 1;
  // training: as written, and what it means once everything about it could be read
  TrainingKeys training_keys;
  std::optional<TrainingSpec> training;
  InferenceKeys inference_keys;
  std::optional<InferenceSpec> inference;

  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("name", name, "in the report", not_empty);
    v("kind", kind, "collective, p2p, flows, training or inference; follows from the other keys");
    v("gpus", gpus, "number of GPUs; default: all of the fabric", between(1, 10'000'000));
    v("placement", placement, "which GPUs");
    v("start", start, "when the job starts", at_most(kLatest));
    v("repeat", repeat, "iterations, or \"until-end\": as long as another job runs");
    v("collective", collective, "what the group does");
    v("size", size,
      "bytes of the collective (as nccl-tests counts them) or of each flow of a pattern",
      at_most(kMostData));
    v("algorithm", algorithm, "see `weft list collectives`; default: what suits the group");
    v("root", root, "rank of the root", between(0, 10'000'000));
    v("channels", channels, "rings or trees side by side", between(1, 64));
    v("chunk", chunk, "pipeline granularity", positive, at_most(kMostData));
    v("expand", expand, "one flow per transfer, no coupling");
    v("group_size", group_size,
      "splits the GPUs into groups that run the collective at the same time",
      between(1, 10'000'000));
    v("group_stride", group_stride,
      "ranks of a group, or those that send to each other in a ring pattern, are this far apart",
      between(1, 10'000'000));
    v("p2p", p2p, "one copy");
    v("flows", flows, "explicit traffic");
    v("pattern", pattern, "traffic among the job's GPUs, `size` each");
    v("queue_pairs", queue_pairs,
      "connections that share each flow evenly, each with a label of its own for hashing",
      between(1, 64));
    v("traffic_class", traffic_class,
      "packet level: priority or virtual lane with queues and buffers of its own; shares with "
      "others by models.packet.weights",
      between(1, double{kMostClasses}));
    training_keys.visit(v);
    inference_keys.visit(v);
  }
};

enum class FaultAction { degrade, down, slow };
constexpr auto enum_names(FaultAction) {
  using enum FaultAction;
  return std::array<EnumName<FaultAction>, 3>{
      {{degrade, "degrade"}, {down, "down"}, {slow, "slow"}}};
}

struct FaultSpec {
  std::string target;
  FaultAction action = FaultAction::down;
  Time at{0};
  std::optional<Time> until;
  double factor = 0.5;
  std::optional<Time> detect, reroute;

  // Whether traffic finds other ways while the run goes on, and how long after the fault.
  bool reroutes() const { return detect || reroute; }
  Time until_rerouted() const { return detect.value_or(Time{0}) + reroute.value_or(Time{0}); }

  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("target", target,
      "a link (leaf3:spine1, leaf3/up1, server5/nic0:leaf2) or a node: all its links", required,
      not_empty);
    v("do", action,
      "down; degrade to `factor` of the capacity; slow: a GPU computes at `factor` of its speed",
      required);
    v("at", at, "when", at_most(kLatest));
    v("until", until, "when it is repaired; never when absent", positive, at_most(kLatest));
    v("factor", factor,
      "share of the capacity or speed that is left, 0.5 by default; faults of one link that "
      "overlap multiply",
      between(0, 1));
    v("detect", detect,
      "down: until the fault, or its repair, is noticed; what is sent there meanwhile is lost "
      "(packet level) or waits (fluid)",
      at_most(kLatest));
    v("reroute", reroute, "from then until new ways are used", at_most(kLatest));
  }
};

// Links over time.
struct ObserveLinks {
  std::string select;
  Time every = 1_ms;
  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("select", select, "links by a pattern of names (\"leaf0:*\") or by \"tier:NAME\"", required,
      not_empty);
    v("every", every, "length of a window; doubles when there would be more than 4096", positive,
      at_most(kLatest));
  }
};

// The rates of flows over time.
struct ObserveFlows {
  std::string select = "*";
  Time every = 1_ms;
  std::int64_t top = 8;
  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("select", select, "flows by a pattern of names (\"job/3\", \"victim/*\")", not_empty);
    v("every", every, "length of a window; doubles when there would be more than 4096", positive,
      at_most(kLatest));
    v("top", top, "of those the so many largest", between(1, 1000));
  }
};

struct ObserveSpec {
  std::optional<ObserveLinks> links;
  std::optional<ObserveFlows> flows;
  Json baseline, trace;
  bool critical_path = false;
  std::int64_t top = 20;
  template <class V>
  void visit(V&& v) {
    v("links", links, "bytes, queues and pauses of links over time");
    v("flows", flows, "packet level: rates of flows over time");
    v("critical_path", critical_path, "the chain of operations that set the time");
    v("top", top, "most links and flows in the report", between(0, 10'000'000));
    v("baseline", baseline, "also run without faults or alone", NotYet{"baselines; use --what-if"});
    v("trace", trace, "timeline", NotYet{"traces"});
  }
};

// Constants of the software between the schedule and the wire. Zero by default: the pure fabric.
struct CollectiveCosts {
  Time launch{0};
  Time step{0};
  Time network_step{0};
  template <class V>
  void visit(V&& v) {
    v("launch", launch, "start of a collective", at_most(kMostDelay));
    v("step", step, "per hop of a schedule inside a server, added to the wire's latency",
      at_most(kMostDelay));
    v("network_step", network_step, "per hop of a schedule between servers", at_most(kMostDelay));
  }
};

struct ModelsSpec {
  CollectiveCosts collective;
  bool merge_classes = true, remember_repeats = true, fold = true;
  PacketSpec packet;
  bool repeat_memory = false;
  template <class V>
  void visit(V&& v) {
    v("collective", collective, "software costs of collectives");
    v("merge_classes", merge_classes, "fluid: equal flows are solved as one");
    v("remember_repeats", remember_repeats, "fluid: the same set of flows is solved once");
    v("fold", fold, "replicas of a model that do the same share a timeline");
    v("packet", packet, "packet level: queues, flow control, senders");
    v("repeat_memory", repeat_memory,
      "the last job that runs is not simulated further once its iterations take equally long; the "
      "report says what that may be off by");
  }
};

// Which NCCL runs the collectives that name no algorithm of weft's own. Nothing is read from the process environment.
struct NcclSpec {
  std::string version = "2.27.7";
  std::map<std::string, Json> env;
  std::string harness = "process-per-gpu", algorithm, protocol;

  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("version", version, "release, 2.5 to 2.30: \"2.21\", \"2.18.3\"", not_empty);
    v("env", env, "variables by name: {\"NCCL_CROSS_NIC\": \"0\"}");
    v("harness", harness,
      "how operations are started: process-per-gpu (default), one-process, graph, unknown",
      not_empty);
    v("algorithm", algorithm, "as NCCL_ALGO: ring, tree, nvls, nvls_tree, pat ...");
    v("protocol", protocol, "as NCCL_PROTO: ll, ll128, simple");
  }
};

struct Scenario {
  SchemaVersion weft;
  std::string name, question, note;
  FabricSpec fabric;
  Fidelity fidelity = Fidelity::fluid;
  std::int64_t seed = 1;
  std::vector<JobSpec> jobs;
  std::vector<FaultSpec> faults;
  ObserveSpec observe;
  ModelsSpec models;
  std::optional<NcclSpec> nccl;
  std::vector<ExpectSpec> expect;
  Json document;  // resolved, for the report

  Place place;
};

// Reads a resolved document; problems go to `out`, use the result only when out.ok().
Scenario read_scenario(const Json& document, Diagnostics& out);

// The JSON Schema of a scenario.
Json scenario_schema();

}  // namespace weft
