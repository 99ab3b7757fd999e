// SPDX-License-Identifier: Apache-2.0
// Collectives of NCCL among GPUs of this process and of others.
//
// A communicator is made once and kept: making one takes longer than most tests. What is forced (NCCL_ALGO, NCCL_PROTO) is read
// by NCCL when a communicator is made, so it is set for that moment only; what the user has set stays.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/probe/backend.hpp"
#include "calibrate/probe/cuda/libraries.hpp"
#include "calibrate/probe/cuda/machine.hpp"
#include "calibrate/probe/cuda/runtime.hpp"

namespace weft::cuda {

// A rank of a communicator that this process drives.
struct LocalRank {
  int rank = 0, device = 0;
};

class Communicator {
 public:
  Communicator(const ncclUniqueId& id, int ranks, const std::vector<LocalRank>& local,
               const std::string& algorithm, const std::string& protocol);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int ranks() const { return ranks_; }
  const std::vector<LocalRank>& local() const { return local_; }
  ncclComm_t get(std::size_t i) const { return comms_[i]; }
  // What went wrong in the background; empty: nothing.
  std::string trouble() const;

 private:
  int ranks_;
  std::vector<LocalRank> local_;
  std::shared_ptr<std::vector<ncclComm_t>> shared_;
  std::vector<ncclComm_t> comms_;
};

class Communicators {
 public:
  // `key`: who takes part and what is forced; the same among all that take part.
  std::shared_ptr<Communicator> get(const std::string& key, const std::string& id, int ranks,
                                    const std::vector<LocalRank>& local,
                                    const CollectiveTest& test);
  void clear() { kept_.clear(); }

 private:
  std::list<std::pair<std::string, std::shared_ptr<Communicator>>> kept_;  // latest first
};

// A fresh id as hexadecimal text.
std::string new_unique_id();

std::unique_ptr<PreparedTest> prepare_collective(const CollectiveTest& test,
                                                 std::shared_ptr<Communicator> communicator);
std::unique_ptr<PreparedTest> prepare_overlap(const OverlapTest& test,
                                              std::shared_ptr<Communicator> communicator);

}  // namespace weft::cuda
