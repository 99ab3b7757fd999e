// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/work.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "tools/cli/file_source.hpp"

namespace weft {
namespace {

constexpr std::chrono::seconds kSyncEvery{2};

// Threads of one task: the first exception stops all and is thrown by join().
class Crew {
 public:
  template <class Work>
  Crew(unsigned threads, Work work) {
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([this, work] {
        try {
          work();
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!problem_) problem_ = std::current_exception();
          failed_ = true;
        }
        const std::lock_guard lock(mutex_);
        ++ended_;
        changed_.notify_all();
      });
    }
  }
  bool failed() const { return failed_; }
  bool wait_for(std::chrono::milliseconds time) {  // true when all have ended
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return ended_ == threads_.size(); });
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    if (problem_) std::rethrow_exception(std::exchange(problem_, nullptr));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr problem_;
  std::atomic<bool> failed_ = false;
  std::size_t ended_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

std::string Shard::log_name() const { return fmt::format("shard-{}-of-{}.ndjson", index, count); }

std::vector<std::string> keys_of(const Sweep& sweep, unsigned threads, const Stop& stop) {
  std::vector<std::string> keys(sweep.points.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    Configs files(find_configs_root());
    PointRunner runner(sweep, files, {});
    for (std::size_t i = next++; i < keys.size(); i = next++) {
      if (stop && stop()) throw Interrupted{};
      keys[i] = runner.key(i);
    }
  };
  Crew(threads, work).join();
  return keys;
}

StoreContents open_store(const std::string& folder, const Manifest& manifest,
                         const std::string& log, bool resume) {
  if (holds_store(folder) && !resume) {
    const Manifest old = read_manifest(folder);
    if (to_text(to_json(old), 0) != to_text(to_json(manifest), 0))
      throw InputError(
          fmt::format("{}: error: this store holds another sweep, \"{}\" with {} points\n"
                      "    give another --out, or --resume to let it serve this sweep: finished "
                      "points that both share are kept\n",
                      folder, old.name, old.points.size()));
    std::error_code error;
    const auto path = std::filesystem::path(folder) / log;
    if (std::filesystem::exists(path, error))
      throw InputError(
          fmt::format("{}: error: this part of the sweep was begun before\n"
                      "    give --resume to go on, or another --out\n",
                      path.string()));
  }
  // What is there may be somebody's sweep and no store.
  if (holds_store(folder) && resume) read_manifest(folder);
  write_manifest(folder, manifest);
  return read_store(folder);
}

std::vector<std::size_t> points_to_run(const Manifest& manifest, const StoreContents& contents,
                                       const Shard& shard, bool retry_failed) {
  std::set<std::string_view> seen;
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < manifest.points.size(); ++i) {
    const std::string& key = manifest.points[i].key;
    if (!seen.insert(key).second || i % shard.count != shard.index) continue;
    const auto found = contents.records.find(key);
    if (found == contents.records.end() || (retry_failed && !found->second.ok)) out.push_back(i);
  }
  return out;
}

Tally run_points(const Sweep& sweep, ShardLog& log, unsigned threads, const PoolHooks& hooks) {
  std::mutex hand, records;
  Tally tally;
  std::atomic<bool> halted = false;
  const auto stop = [&] { return halted || (hooks.stop && hooks.stop()); };
  const auto work = [&] {
    Configs files(find_configs_root());
    PointRunner runner(sweep, files, stop);
    while (!stop()) {
      std::optional<std::size_t> point;
      {
        const std::lock_guard lock(hand);
        point = hooks.next();
      }
      if (!point) return;
      Record record;
      try {
        record = runner.run(*point);
      } catch (const Interrupted&) {
        return;
      }
      const std::lock_guard lock(records);
      if (!tally.full.empty()) return;
      try {
        log.append(record);
      } catch (const StoreFull& problem) {
        tally.full = problem.what();
        halted = true;
        return;
      }
      ++tally.finished;
      if (!record.ok && ++tally.failed == 1) tally.first_error = record.error;
    }
  };
  const auto now = [&] {
    const std::lock_guard lock(records);
    return tally;
  };
  Crew crew(threads, work);
  auto synced = std::chrono::steady_clock::now();
  const auto sync = [&] {
    try {
      log.sync();
    } catch (const StoreFull& problem) {
      const std::lock_guard lock(records);
      tally.full = problem.what();
      halted = true;
    }
    synced = std::chrono::steady_clock::now();
  };
  while (!crew.wait_for(hooks.every)) {
    if (crew.failed()) halted = true;
    if (hooks.tick) hooks.tick(now());
    if (std::chrono::steady_clock::now() - synced > kSyncEvery) sync();
  }
  crew.join();
  sync();
  tally.stopped = hooks.stop && hooks.stop();
  return tally;
}

}  // namespace weft
