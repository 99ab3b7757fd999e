// SPDX-License-Identifier: Apache-2.0
// weft-mpi: a sweep over the ranks of an MPI job. Rank 0 knows what is to do and hands out points as ranks ask for them, so a slow
// point holds up nobody; every rank, also rank 0, runs points and appends records to a log of its own in the shared store.
//
//   mpirun -n 64 weft-mpi SWEEP --out STORE [--resume] [--retry-failed]
//
// A rank asks for several points at once while there are many, and for one at a time towards the end. Only the main thread of a
// rank calls MPI.
#include <algorithm>
#include <deque>
#include <iostream>
#include <mutex>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <mpi.h>

#include "sim/core/hash.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/sweep/interrupt.hpp"
#include "tools/sweep/progress.hpp"
#include "tools/sweep/table.hpp"
#include "tools/sweep/work.hpp"

namespace weft {
namespace {

constexpr int kAsk = 1, kPoints = 2;     // tags
constexpr std::size_t kMostAtOnce = 32;  // points of one answer
constexpr int kInterrupted = 130;        // as a shell counts SIGINT
constexpr std::chrono::milliseconds kPoll{1};

struct Options {
  std::string sweep, store;
  bool resume = false, retry = false;
};

// What a rank tells rank 0 when it asks, and at the end.
struct Message {
  std::uint64_t finished = 0, failed = 0, wants_more = 1;
};

class Rank {
 public:
  Rank() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int index() const { return rank_; }
  int size() const { return size_; }
  std::string log_name() const { return fmt::format("mpi-{}.ndjson", rank_); }

 private:
  int rank_ = 0, size_ = 1;
};

// True on all ranks when `ok` is true on all.
bool all_agree(bool ok) {
  int mine = ok ? 1 : 0, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

// Rank 0's side of the handing out.
class Hand {
 public:
  Hand(std::vector<std::size_t> todo, int ranks)
      : todo_(todo.begin(), todo.end()), total_(todo.size()), open_(ranks - 1), told_(ranks) {}

  std::vector<std::uint64_t> take(std::size_t most) {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> out;
    while (out.size() < most && !todo_.empty()) {
      out.push_back(todo_.front());
      todo_.pop_front();
    }
    return out;
  }
  void drop() {
    const std::lock_guard lock(mutex_);
    todo_.clear();
  }
  // Answers whoever asks now.
  void serve() {
    int waiting = 1;
    while (open_ > 0) {
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, kAsk, MPI_COMM_WORLD, &waiting, &status);
      if (waiting == 0) return;
      Message message;
      MPI_Recv(&message, sizeof message, MPI_BYTE, status.MPI_SOURCE, kAsk, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      told_[static_cast<std::size_t>(status.MPI_SOURCE)] = message;
      if (message.wants_more == 0) drop();  // a disk is full, or somebody stopped it
      const std::vector<std::uint64_t> points = take(at_once());
      MPI_Send(points.data(), static_cast<int>(points.size()), MPI_UINT64_T, status.MPI_SOURCE,
               kPoints, MPI_COMM_WORLD);
      if (points.empty()) --open_;
    }
  }
  bool ended() const { return open_ == 0; }
  Message others() const {
    Message sum;
    for (const Message& message : told_) {
      sum.finished += message.finished;
      sum.failed += message.failed;
    }
    return sum;
  }

 private:
  std::size_t at_once() {
    const std::lock_guard lock(mutex_);
    return std::clamp(todo_.size() / (4 * told_.size()), std::size_t{1}, kMostAtOnce);
  }

  std::mutex mutex_;
  std::deque<std::size_t> todo_;
  std::size_t total_;
  int open_;
  std::vector<Message> told_;
};

Tally work_as_rank_0(const Sweep& sweep, ShardLog& log, std::vector<std::size_t> todo, int ranks) {
  SweepProgress progress(std::cerr, todo.size());
  Hand hand(std::move(todo), ranks);
  PoolHooks hooks;
  hooks.every = kPoll;
  hooks.stop = &Interrupts::seen;
  hooks.next = [&]() -> std::optional<std::size_t> {
    const std::vector<std::uint64_t> points = hand.take(1);
    return points.empty() ? std::nullopt : std::optional<std::size_t>(points.front());
  };
  Tally mine;
  const auto show = [&] {
    const Message others = hand.others();
    progress.show(mine.finished + others.finished, mine.failed + others.failed);
  };
  hooks.tick = [&](const Tally& tally) {
    mine = tally;
    if (Interrupts::seen()) hand.drop();
    hand.serve();
    show();
  };
  mine = run_points(sweep, log, 1, hooks);
  if (!mine.full.empty() || mine.stopped) hand.drop();
  while (!hand.ended()) {
    if (Interrupts::seen()) hand.drop();
    hand.serve();
    show();
    std::this_thread::sleep_for(kPoll);
  }
  return mine;
}

Tally work_as_another(const Sweep& sweep, ShardLog& log) {
  std::deque<std::uint64_t> points;
  Tally told;
  const auto ask = [&](const Tally& tally, bool more) {
    const Message message{tally.finished, tally.failed, more ? 1U : 0U};
    MPI_Send(&message, sizeof message, MPI_BYTE, 0, kAsk, MPI_COMM_WORLD);
    std::uint64_t answer[kMostAtOnce];
    MPI_Status status;
    MPI_Recv(answer, kMostAtOnce, MPI_UINT64_T, 0, kPoints, MPI_COMM_WORLD, &status);
    int count = 0;
    MPI_Get_count(&status, MPI_UINT64_T, &count);
    points.assign(answer, answer + count);
    return count > 0;
  };
  PoolHooks hooks;
  hooks.stop = &Interrupts::seen;
  hooks.next = [&]() -> std::optional<std::size_t> {
    if (points.empty()) return std::nullopt;
    const std::uint64_t point = points.front();
    points.pop_front();
    return point;
  };
  while (ask(told, told.full.empty() && !told.stopped)) {
    if (!told.full.empty() || told.stopped) continue;  // until rank 0 has dropped the rest
    const Tally now = run_points(sweep, log, 1, hooks);
    told.finished += now.finished;
    told.failed += now.failed;
    if (told.first_error.empty()) told.first_error = now.first_error;
    told.full = now.full;
    told.stopped = now.stopped;
  }
  return told;
}

// An error of one rank, told once and by all as an exit code.
int run_rank(const Rank& rank, const Options& options) {
  Configs files(find_configs_root());
  std::optional<Sweep> sweep;
  std::optional<ShardLog> log;
  Manifest manifest;
  std::vector<std::size_t> todo;
  std::string problem;
  std::uint64_t digest[2] = {0, 0};  // rank 0's first
  try {
    sweep = read_sweep(options.sweep, files);
    PointRunner runner(*sweep, files, {});
    digest[1] =
        stable_hash(runner.key(0) + runner.key(sweep->points.size() - 1), sweep->points.size());
    if (rank.index() == 0) {
      manifest = make_manifest(*sweep, keys_of(*sweep, 1, &Interrupts::seen));
      const StoreContents before =
          open_store(options.store, manifest, rank.log_name(), options.resume);
      todo = points_to_run(manifest, before, {}, options.retry);
    }
  } catch (const InputError& error) {
    problem = error.what();
  } catch (const Interrupted&) {
    problem = "interrupted before the first point";
  }
  if (rank.index() == 0) digest[0] = digest[1];
  MPI_Bcast(digest, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (problem.empty() && digest[0] != digest[1])
    problem =
        fmt::format("rank {} sees another sweep, catalogue or version than rank 0", rank.index());
  if (problem.empty() && rank.index() > 0 && !holds_store(options.store))
    problem = fmt::format("rank {} does not see {}: the store must lie on a shared file system",
                          rank.index(), options.store);
  try {
    if (problem.empty()) log.emplace(options.store, rank.log_name());
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (!problem.empty()) std::cerr << problem << (problem.ends_with('\n') ? "" : "\n");
  if (!all_agree(problem.empty())) return kBadInput;
  for (const Damage& damage : log->repaired())
    std::cerr << fmt::format("weft: {}; repaired, its points run again\n", to_text(damage));
  const Tally tally = rank.index() == 0 ? work_as_rank_0(*sweep, *log, std::move(todo), rank.size())
                                        : work_as_another(*sweep, *log);
  if (!tally.full.empty()) std::cerr << fmt::format("weft: stopped: {}\n", tally.full);
  std::uint64_t mine[2] = {tally.finished, tally.failed}, all[2] = {0, 0};
  MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  const bool room = all_agree(tally.full.empty()), whole = all_agree(!tally.stopped);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank.index() == 0) {
    const StoreContents contents = read_store(options.store);
    std::size_t ok = 0, failed = 0;
    const Record* first = nullptr;
    for (const Row& row : rows_of(manifest, contents)) {
      ++(row.found->ok ? ok : failed);
      if (!row.found->ok && first == nullptr) first = row.found;
    }
    if (all[1] > 0 && first != nullptr)
      std::cerr << fmt::format("weft-mpi: {} of {} points failed; the first:\n{}\n", all[1], all[0],
                               first->error);
    std::cout << fmt::format("{}: {} points: {} ok, {} failed, {} left; {} ranks\n", manifest.name,
                             manifest.points.size(), ok, failed,
                             manifest.points.size() - ok - failed, rank.size());
  }
  if (!whole) return kInterrupted;
  if (!room) return kLimit;
  return all[0] > 0 && all[1] == all[0] ? kBadInput : kOk;
}

int main_of(int argc, char** argv, const Rank& rank) {
  CLI::App app{"Runs a sweep on the ranks of an MPI job; `weft sweep` shows what its store holds.",
               "weft-mpi"};
  Options options;
  app.set_version_flag("--version", std::string("weft-mpi " WEFT_VERSION));
  app.add_option("sweep", options.sweep, "a sweep file")->required();
  app.add_option("--out", options.store,
                 "the folder that keeps what is finished, seen by all ranks")
      ->required();
  app.add_flag("--resume", options.resume, "go on where an earlier run stopped");
  app.add_flag("--retry-failed", options.retry, "with --resume: run failed points again");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    const bool asked = problem.get_exit_code() == 0;
    if (rank.index() == 0) app.exit(problem, std::cout, std::cerr);
    return asked ? kOk : kBadInput;
  }
  const Interrupts interrupts;
  return run_rank(rank, options);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  int code = weft::kBug;
  try {
    code = weft::main_of(argc, argv, weft::Rank());
  } catch (const std::exception& problem) {
    std::cerr << "weft-mpi: " << problem.what() << "\n";
    MPI_Abort(MPI_COMM_WORLD, weft::kBug);
  }
  MPI_Finalize();
  return code;
}
