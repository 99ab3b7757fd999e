// SPDX-License-Identifier: Apache-2.0
// The work of a sweep: which points are to do, and threads that do them. Threads share nothing but a hand that gives out points
// and the log that takes records; what a point finds depends on its scenario alone, so any number of threads, shards and ranks in
// any order make the same table.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/sweep/store.hpp"

namespace weft {

using Stop = std::function<bool()>;

// The key of every point. Stops early, with Interrupted, when told to.
std::vector<std::string> keys_of(const Sweep& sweep, unsigned threads, const Stop& stop);

struct Shard {
  std::size_t index = 0, count = 1;
  std::string log_name() const;
};

// Opens a store for a sweep: writes its manifest and reads what is finished. Without `resume` a store that holds another sweep, or
// a log named `log`, is refused with InputError.
StoreContents open_store(const std::string& folder, const Manifest& manifest,
                         const std::string& log, bool resume);

// Points that a shard has to run: of points with one key the first, not yet recorded (or recorded as failed, with
// `retry_failed`).
std::vector<std::size_t> points_to_run(const Manifest& manifest, const StoreContents& contents,
                                       const Shard& shard, bool retry_failed);

struct Tally {
  std::size_t finished = 0, failed = 0;
  std::string first_error;
  bool stopped = false;  // somebody asked
  std::string full;      // the disk is; why
};

struct PoolHooks {
  std::function<std::optional<std::size_t>()> next;  // called by one thread at a time
  Stop stop;                                         // called by any thread
  std::function<void(const Tally&)> tick;            // called by the caller's thread, now and then
  std::chrono::milliseconds every{100};
};

// Runs points until there are no more, or stop says so, or the disk is full; then waits for the threads. Points that were under way
// when it stopped are not recorded.
Tally run_points(const Sweep& sweep, ShardLog& log, unsigned threads, const PoolHooks& hooks);

}  // namespace weft
