// SPDX-License-Identifier: Apache-2.0
// From the jobs and faults of a scenario to operations and changes of capacity, with what the report needs to name them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/run/collective_ops.hpp"
#include "sim/run/collective_timer.hpp"
#include "sim/run/executor.hpp"
#include "sim/run/library.hpp"
#include "sim/run/lockstep.hpp"
#include "sim/run/scenario.hpp"
#include "sim/workload/placement.hpp"

namespace weft {

struct FlowPlan {
  std::string id;
  NodeId src, dst;
  Bytes size;
  OpId first, last;
};

struct GroupPlan {
  std::vector<NodeId> gpus;
  OpId first, last;
};

struct JobPlan {
  const JobSpec* spec = nullptr;
  ExecutorJob run;
  std::vector<GroupPlan> groups;
  std::vector<FlowPlan> flows;
  std::string algorithm;
  std::size_t channels = 0, ranks = 0;
  double bytes = 0;
  std::vector<std::string> notes;
  std::unique_ptr<ModelledJob> modelled;  // training, inference
  std::vector<NodeId> modelled_on;        // by rank
};

class JobBuilder {
 public:
  // `planned_on`: the machine that the library of collectives sees; differs from `fabric` in a what-if that must not change
  // its choices.
  JobBuilder(const Fabric& fabric, const Fabric& planned_on, const Scenario& scenario,
             std::span<const AlgorithmEntry* const> algorithms, const CollectiveLibrary& library,
             const JobLibrary& models, CollectivePlanner planner,
             CollectiveTimer::MakeNetwork make_network,
             std::function<void(Time, std::uint64_t)> progress, Diagnostics& out)
      : fabric_(fabric),
        planned_on_(planned_on),
        scenario_(scenario),
        algorithms_(algorithms),
        library_(library),
        models_(models),
        make_network_(std::move(make_network)),
        progress_(std::move(progress)),
        out_(out),
        routes_(fabric),
        builder_(routes_, workload_),
        lockstep_(routes_, workload_, std::move(planner), scenario.fidelity == Fidelity::packet) {}

  // Throws InputError with every problem of every job.
  void build();

  Workload& workload() { return workload_; }
  const Workload& workload() const { return workload_; }
  const std::vector<JobPlan>& jobs() const { return jobs_; }
  const std::vector<ScheduledChange>& changes() const { return changes_; }
  const std::vector<Rerouting>& reroutes() const { return reroutes_; }
  // The resource that carries what this one does, see ResourceClasses.
  std::uint32_t representative(std::uint32_t resource) const {
    return lockstep_.representative(resource);
  }

 private:
  void error(const Place& place, const std::string& pointer, std::string fact,
             std::string cure = {}) {
    out_.error(place, pointer, std::move(fact), std::move(cure));
  }
  void plan();
  void apply_faults();
  void plan_reroutes();
  const Workload* plan_without(const std::set<LinkId>& links, const FaultSpec& fault);
  void check_slow(const FaultSpec& fault);
  std::vector<LinkId> links_of(const FaultSpec& fault);
  void add_job(const JobSpec& spec, Placement& placement);
  std::optional<std::vector<NodeId>> take_gpus(const JobSpec& spec, Placement& placement);
  const AlgorithmEntry* find_algorithm(const JobSpec& spec, const GroupShape& shape);
  void add_collective(const JobSpec& spec, JobPlan& job, Placement& placement);
  bool add_group(const JobSpec& spec, JobPlan& job, GroupPlan& group);
  bool take_contexts(const GroupPlan& group, const CollectiveOptions& options, JobPlan& job);
  bool add_planned_group(const JobSpec& spec, JobPlan& job, GroupPlan& group);
  void check_library();
  void add_modelled(const JobSpec& spec, JobPlan& job, Placement& placement);
  void append_modelled();
  std::unique_ptr<CollectiveTimer> make_timer(JobSite::Timing timing);
  std::optional<NodeId> find_gpu(const std::string& name, const Place& place,
                                 const std::string& pointer);
  FlowPlan add_transfer(const Transfer& transfer, Bytes size);
  void add_p2p(const JobSpec& spec, JobPlan& job);
  bool add_flow(const JobSpec& spec, JobPlan& job, NodeId src, NodeId dst, Bytes size, Time start);
  void add_flows(const JobSpec& spec, JobPlan& job);
  void add_pattern(const JobSpec& spec, JobPlan& job, Placement& placement);

  const Fabric& fabric_;
  const Fabric& planned_on_;
  const Scenario& scenario_;
  std::span<const AlgorithmEntry* const> algorithms_;
  const CollectiveLibrary& library_;
  const JobLibrary& models_;
  CollectiveTimer::MakeNetwork make_network_;  // of what is timed alone
  std::function<void(Time, std::uint64_t)> progress_;
  Diagnostics& out_;
  Routes routes_;
  Workload workload_;
  CollectiveBuilder builder_;
  Lockstep lockstep_;
  std::vector<JobPlan> jobs_;
  std::vector<ScheduledChange> changes_;
  struct Other;
  std::vector<std::shared_ptr<Other>> others_;  // the jobs on machines without some links
  std::vector<Rerouting> reroutes_;
  std::uint32_t label_ = 0;                  // of the running job
  std::map<NodeId, std::int64_t> contexts_;  // in use, by switch that reduces
};

}  // namespace weft
