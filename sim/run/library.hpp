// SPDX-License-Identifier: Apache-2.0
// A library of collectives that chooses for itself: algorithm, channels and costs by its own rules, as NCCL does. sim knows
// none; the caller of a run plugs one in (RunContext::library), and jobs that name no algorithm of weft's own go through it
// when the scenario has the key `nccl`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/run/collective_ops.hpp"
#include "sim/run/scenario.hpp"

namespace weft {

struct PlannedCollective {
  Schedule schedule;  // owns all it needs
  CollectiveOptions options;
  std::string algorithm;  // as reported: "nvls/simple"
  std::uint32_t channels = 1;
  std::vector<std::string> notes;  // what a person should know about this group
};

// One group as a library sees it; what it must know of the machine is found once. Lives no longer than the fabric.
class GroupPlanner {
 public:
  virtual ~GroupPlanner() = default;
  // Throws InputError.
  virtual PlannedCollective plan(CollectiveKind, Bytes, std::uint32_t root) const = 0;
};

struct CollectiveLibrary {
  // Reports what the library does not take, at its place in the file.
  std::function<void(const NcclSpec&, Diagnostics&)> check;
  // Ranks in order. Throws InputError. The spec has been checked.
  std::function<std::shared_ptr<const GroupPlanner>(const Fabric&, std::span<const NodeId> gpus,
                                                    const NcclSpec&)>
      join;
  explicit operator bool() const { return static_cast<bool>(join); }
};

// A job whose operations models make: sim knows its keys, not what a layer is. First it registers what it sends, so that what
// moves in lockstep can be folded; then it appends its operations; after the run it says what they meant.
class Executor;
class Lockstep;
class Routes;
class CollectiveTimer;
struct JobReport;
struct Report;

struct JobSite {
  const Fabric& fabric;
  Routes& routes;
  Lockstep& lockstep;
  Workload& workload;
  const Scenario& scenario;
  const JobSpec& spec;
  std::vector<NodeId> gpus;  // rank order
  // For collectives alone on the fabric, as the scenario's library runs them; launched by the host or, in graphs, with the kernels
  // around them. bare: nothing but links.
  enum class Timing : std::uint8_t { host, graphs, bare };
  std::function<std::unique_ptr<CollectiveTimer>(Timing)> make_timer;
  // For who works long before the run begins; may be empty. A thrown exception ends the run.
  std::function<void(Time now, std::uint64_t done)> progress;
};

// Operations that run one after the other on one stream, for a timeline: "stage 3, 128 replicas".
struct Track {
  std::string name;
  std::vector<OpId> operations;
};

class ModelledJob {
 public:
  virtual ~ModelledJob() = default;
  // One iteration behind `start`.
  virtual void append(Workload& workload, Lockstep& lockstep, OpId start) = 0;
  virtual void report(const Executor& executor, const Report& run, JobReport& out) const = 0;
  // Where it computes, one track per class of ranks that do the same.
  virtual std::vector<Track> tracks() const { return {}; }
};

struct JobLibrary {
  // Null, with the problems reported, when the job cannot be.
  std::function<std::unique_ptr<ModelledJob>(const JobSite&, Diagnostics&)> training, inference;
};

}  // namespace weft
