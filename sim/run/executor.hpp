// SPDX-License-Identifier: Apache-2.0
// Runs operations in simulated time over a network model.
//
// A job is a row of operations that may run several times. Iteration k starts when iteration k-1 has finished; a job that
// repeats until the end starts no new iteration once every other job has finished, and its unfinished one is dropped; one
// whose iterations take no time runs once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/core/hash.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/run/network_model.hpp"
#include "sim/workload/workload.hpp"

namespace weft {

struct ExecutorJob {
  std::uint32_t first_op = 0, end_op = 0;  // one iteration
  Time start{0};
  std::uint32_t iterations = 1;
  bool until_end = false;
  std::uint8_t traffic_class = 1;
};

struct JobTimes {
  Time started{0}, finished{0};
  std::vector<Time> iterations;  // how long each took
};

// Something that happens to the machine at a time, before what starts at that time: a capacity changes.
struct ScheduledChange {
  Time when;
  std::uint32_t resource = 0;
  Bandwidth capacity;
};

// From a time on operations take the ways of another plan, which has the same operations.
struct Rerouting {
  Time when;
  const Workload* plan = nullptr;
};

// Of the last iteration of an operation.
struct OperationTimes {
  Time started{-1}, finished{-1};
  OpId cause;  // whose end let it start; none for the first
};

class Executor {
 public:
  Executor(Workload& workload, NetworkModel& network) : workload_(workload), network_(network) {}

  // Called now and then with the simulated time; a thrown exception ends the run.
  std::function<void(Time now, std::uint64_t events)> progress;

  // Called when an iteration of the only job left has ended while no link changes any more, with a fingerprint of when its
  // operations ended and the number of iterations to come: how many of these are taken to last so long each, without being run.
  struct Skip {
    std::uint32_t iterations = 0;
    Time each{0};
  };
  std::function<Skip(std::uint32_t job, std::uint64_t fingerprint, Time took, std::uint32_t left)>
      skip;

  // Called when the network has come to `next_look` and before anything else happens then; returns when to look again.
  std::function<Time(Time now)> look;
  Time next_look = Time::never();

  // Runs all jobs. Throws LimitReached and names the unfinished operations when nothing can happen any more.
  void run(const std::vector<ExecutorJob>& jobs, std::vector<ScheduledChange> changes,
           std::vector<Rerouting> reroutes = {});

  Time makespan() const { return makespan_; }
  Time simulated() const { return simulated_; }  // the rest was skipped
  const std::vector<JobTimes>& jobs() const { return times_; }
  const OperationTimes& times(OpId op) const { return operations_[op]; }
  std::uint64_t events() const { return events_; }
  std::string fingerprint() const { return fingerprint_.hex(); }

 private:
  enum : std::uint32_t { kStartJob, kFinishOp, kReadyOp };

  void start_iteration(std::uint32_t job, Time now);
  void ready(OpId op, Time now);
  void begin(OpId op, Time now);
  void begin_delay(OpId op, Time now);
  void finish_delay(OpId op, std::uint64_t stamp);
  void spell(std::uint32_t pace, bool opens, Time now);
  FlowRequest request_of(OpId op) const;
  void reroute(const Rerouting& rerouting, Time now);
  void settle(Time now);  // what the operations in finished_ set free
  void finish_job(std::uint32_t job, Time now);
  Time skip_iterations(std::uint32_t job, Time now);
  bool only_endless_left() const { return unfinished_ == 0; }

  Workload& workload_;
  NetworkModel& network_;
  std::vector<ExecutorJob> jobs_;
  std::vector<JobTimes> times_;
  std::vector<std::uint32_t> job_of_;   // by operation
  std::vector<std::uint32_t> left_;     // operations of the running iteration, by job
  std::vector<Time> iteration_start_;   // by job
  std::vector<std::uint32_t> done_;     // iterations, by job
  std::vector<std::uint32_t> waiting_;  // operations still to come before it, by operation
  IdVector<OpId, OperationTimes> operations_;
  std::vector<ScheduledChange> changes_;
  const Workload* plan_ = nullptr;                      // whose ways are taken
  std::map<const Workload*, std::uint32_t> first_way_;  // ways of all plans are numbered in a row
  std::uint32_t way_base_ = 0;                          // of plan_
  IdVector<OpId, FlowId> flows_;                        // running ones; with reroutes only
  std::vector<OpId> finished_;                          // at this instant, not yet settled
  // Delays that may be slowed down, by pace; an end that was put off leaves its event behind, known by its stamp.
  struct Paced {
    OpId op;
    Time left, since;
    std::uint64_t stamp = 0;
  };
  struct Pace {
    std::uint32_t open = 0;
    std::vector<Paced> running;
  };
  std::vector<Pace> paces_;
  std::uint64_t stamp_ = 0;
  EventQueue<> queue_;
  Fingerprint fingerprint_;
  std::uint64_t iteration_print_ = 0;  // of the running iteration, when somebody wants it
  bool settled_ = false;               // no link changes any more, and no job repeats until the end
  Time makespan_{0}, simulated_{0};
  std::uint64_t events_ = 0;
  std::size_t unfinished_ = 0;  // jobs that end by themselves
};

}  // namespace weft
