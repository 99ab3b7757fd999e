// SPDX-License-Identifier: Apache-2.0
// Many processes as one backend. Each drives its own GPUs in collectives; the lowest of each server also does what concerns that
// server alone (copies, kernels). The first process plans, asks and writes; the others answer until it has ended.
//
//   first                       others
//   <- hello {machine, own}                                 once
//   -> prepare {test, part}     <- ready | failed           per test
//   -> once                     <- times | failed           per run
//   -> drop | end
//
// A run of a collective takes as long as on the process where it took longest.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calibrate/probe/backend.hpp"
#include "calibrate/probe/channel.hpp"
#include "calibrate/probe/launch.hpp"

namespace weft {

// A process's share of a collective.
struct CrewPart {
  std::string context;            // what the library of collectives needs to find the others
  int ranks = 0;                  // of the whole
  std::vector<int> own_ranks;     // of this process
  std::vector<std::string> gpus;  // their GPUs, by the names of this server
};

// What one process can do.
class CrewMember {
 public:
  virtual ~CrewMember() = default;
  virtual ProbeMachine machine() = 0;          // its server, names without a server in front
  virtual std::vector<std::string> own() = 0;  // the GPUs that it drives in collectives
  virtual std::unique_ptr<PreparedTest> prepare(const PlannedTest& test) = 0;
  virtual std::string new_context() = 0;
  virtual std::unique_ptr<PreparedTest> join(const PlannedTest& test, const CrewPart& part) = 0;
  virtual bool broken() const = 0;
};

class Crew final : public ProbeBackend {
 public:
  // Of one process: no connection is made. Throws NoMachine when the processes do not find each other.
  Crew(std::unique_ptr<CrewMember> member, const Launch& launch);
  ~Crew() override;

  bool serve() override;
  ProbeMachine machine() override;
  std::unique_ptr<PreparedTest> prepare(const PlannedTest& test) override;
  bool broken() const override;
  bool restarts() const override { return launch_.size == 1; }
  double now() override;

 private:
  friend class CrewTest;
  static constexpr double kComing = 120, kAnswer = 180;  // seconds
  static constexpr std::size_t kContexts = 3;

  struct Process {
    CrewChannel channel;  // of the others
    ProbeMachine machine;
    std::vector<std::string> own;
    int server = 0;
  };
  struct Owner {
    std::size_t process = 0;
    std::string local;  // its name there
  };

  void gather();
  void learn(Process& process, const Json& hello);
  std::string global_name(int server, const std::string& local) const;
  const Owner& owner(const std::string& gpu) const;
  PlannedTest localised(const PlannedTest& test, std::size_t& process) const;
  std::unique_ptr<PreparedTest> prepare_shared(const PlannedTest& test,
                                               const CollectiveTest& collective);
  std::string context_for(const CollectiveTest& test);
  Json ask(std::size_t process, const Json& message);
  Json answer(const Json& message);

  std::unique_ptr<CrewMember> member_;
  Launch launch_;
  CrewChannel first_;  // of a process that serves
  std::vector<Process> processes_;
  std::vector<std::size_t> hands_;  // of each server: who does what concerns it alone
  std::vector<std::pair<std::string, Owner>> owners_;
  std::vector<std::pair<std::string, std::string>> contexts_;  // latest last
  std::unique_ptr<PreparedTest> serving_;
  bool lost_ = false;
};

}  // namespace weft
