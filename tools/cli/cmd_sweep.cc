// SPDX-License-Identifier: Apache-2.0
// weft sweep: runs every point of a sweep into a store, and shows what a store holds.
#include <chrono>
#include <ostream>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/output.hpp"
#include "tools/sweep/interrupt.hpp"
#include "tools/sweep/page.hpp"
#include "tools/sweep/progress.hpp"
#include "tools/sweep/table.hpp"
#include "tools/sweep/work.hpp"

namespace weft {
namespace {

constexpr int kInterrupted = 130;  // as a shell counts SIGINT

Shard read_shard(const std::string& text) {
  Shard shard;
  if (text.empty()) return shard;
  const auto bad = [&](const std::string& why, std::size_t count) {
    return InputError(fmt::format(
        "error: --shard \"{0}\": {1}\n    shards count from 0: --shard 0/{2} to --shard {3}/{2}\n",
        text, why, count, count - 1));
  };
  const std::size_t slash = text.find('/');
  const std::string index = text.substr(0, slash);
  const std::string count = slash == std::string::npos ? "" : text.substr(slash + 1);
  constexpr std::size_t kMostDigits = 6;
  for (const std::string& part : {index, count}) {
    if (part.empty() || part.size() > kMostDigits ||
        part.find_first_not_of("0123456789") != std::string::npos)
      throw bad("not I/N, two whole numbers of at most six digits", 4);
  }
  shard = {std::stoul(index), std::stoul(count)};
  if (shard.count == 0) throw bad("no shards at all", 4);
  if (shard.index >= shard.count)
    throw bad(fmt::format("there is no shard {} of {}", shard.index, shard.count), shard.count);
  return shard;
}

void report_damage(const std::vector<Damage>& damage, std::string_view what, std::ostream& err) {
  for (const Damage& d : damage) err << fmt::format("weft: {}; {}\n", to_text(d), what);
}

struct Counts {
  std::size_t planned = 0, ok = 0, failed = 0;
  std::size_t left() const { return planned - ok - failed; }
};
Counts count(const Manifest& manifest, const std::vector<Row>& rows) {
  Counts out{.planned = manifest.points.size()};
  for (const Row& row : rows) ++(row.found->ok ? out.ok : out.failed);
  return out;
}

Json to_json(const Manifest& manifest, const Counts& counts) {
  Json out = Json::object();
  out.set("weft", json_head());
  out.set("name", manifest.name);
  out.set("points", std::uint64_t{counts.planned});
  out.set("ok", std::uint64_t{counts.ok});
  out.set("failed", std::uint64_t{counts.failed});
  out.set("left", std::uint64_t{counts.left()});
  return out;
}

// A store with its table.
struct Opened {
  Manifest manifest;
  StoreContents contents;
  std::vector<Row> rows;

  Opened(const std::string& folder, Io& io)
      : manifest(read_manifest(folder)),
        contents(read_store(folder)),
        rows(rows_of(manifest, contents)) {
    report_damage(contents.damage, "its points run again with --resume", io.err);
  }
};

class SweepCommand final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("sweep", sweep_, "a sweep file");
    app.add_option("--out", store_, "the folder that keeps what is finished");
    app.add_option("--jobs", jobs_, "threads; default: one per core")->check(CLI::Range(1, 4096));
    app.add_option("--shard", shard_, "only part I of N, counted from 0; shards share the store")
        ->type_name("I/N");
    app.add_flag("--resume", resume_, "go on where an earlier run stopped, or with a grown sweep");
    app.add_flag("--retry-failed", retry_, "with --resume: run failed points again");
    add_json_flag(app, json_);
    app.require_subcommand(0, 1);
    const auto sub = [&](const char* name, const char* what) {
      CLI::App* made = app.add_subcommand(name, what);
      made->add_option("store", store_, "the folder of a sweep")->required();
      return made;
    };
    status_ = sub("status", "how far a sweep is");
    add_json_flag(*status_, json_);
    csv_ = sub("csv", "the table as text");
    csv_->add_option("-o,--output", file_, "default: standard output");
    merge_ = sub("merge", "the table as a file of SQLite");
    merge_->add_option("-o,--output", file_, "default: STORE/sweep.sqlite");
    page_ = sub("page", "a page with charts of it");
    page_->add_option("-o,--output", file_, "the page to write")->required();
  }

  int run(Io& io) override {
    if (status_->parsed()) return status(io);
    if (csv_->parsed()) return csv(io);
    if (merge_->parsed()) return merge(io);
    if (page_->parsed()) return page(io);
    if (sweep_.empty() || store_.empty())
      throw InputError(
          "error: `weft sweep` needs a sweep file and --out, or status, csv, merge or page with a "
          "store\n    see `weft sweep --help`\n");
    if (retry_ && !resume_) throw InputError("error: --retry-failed goes with --resume\n");
    return fill(io);
  }

 private:
  int fill(Io& io) {
    const Shard shard = read_shard(shard_);
    expect_writable(store_ + "/sweep.json", true);
    const unsigned threads = jobs_ > 0 ? jobs_ : std::max(1U, std::thread::hardware_concurrency());
    const Interrupts interrupts;
    Configs files(find_configs_root());
    const Sweep sweep = read_sweep(sweep_, files);
    Manifest manifest;
    try {
      manifest = make_manifest(sweep, keys_of(sweep, threads, &Interrupts::seen));
    } catch (const Interrupted&) {
      io.err << "weft: interrupted before the first point\n";
      return kInterrupted;
    }
    StoreContents before = open_store(store_, manifest, shard.log_name(), resume_);
    ShardLog log(store_, shard.log_name());
    report_damage(log.repaired(), "repaired, its points run again", io.err);
    const std::vector<std::size_t> todo = points_to_run(manifest, before, shard, retry_);
    SweepProgress progress(io.err, todo.size());
    PoolHooks hooks;
    std::size_t at = 0;
    hooks.next = [&] { return at < todo.size() ? std::optional(todo[at++]) : std::nullopt; };
    hooks.stop = &Interrupts::seen;
    hooks.tick = [&](const Tally& tally) { progress.show(tally.finished, tally.failed); };
    const Tally tally = run_points(sweep, log, threads, hooks);
    progress.clear();
    return finish(manifest, tally, todo.size(), io);
  }

  int finish(const Manifest& manifest, const Tally& tally, std::size_t wanted, Io& io) const {
    const StoreContents contents = read_store(store_);
    const Counts counts = count(manifest, rows_of(manifest, contents));
    if (tally.failed > 0)
      io.err << fmt::format("weft: {} of {} points failed; the first:\n{}\n", tally.failed,
                            tally.finished, tally.first_error);
    if (!tally.full.empty()) io.err << fmt::format("weft: stopped: {}\n", tally.full);
    if (tally.stopped)
      io.err << fmt::format("weft: interrupted; {} points are kept, --resume goes on\n",
                            counts.ok + counts.failed);
    if (json_) {
      Json out = to_json(manifest, counts);
      out.set("ran", std::uint64_t{tally.finished});
      io.out = to_text(out) + "\n";
    } else {
      io.out = fmt::format("{}: {} points: {} ok, {} failed, {} left; {} ran now\n", manifest.name,
                           counts.planned, counts.ok, counts.failed, counts.left(), tally.finished);
    }
    if (tally.stopped) return kInterrupted;
    if (!tally.full.empty()) return kLimit;
    return wanted > 0 && tally.failed == wanted ? kBadInput : kOk;
  }

  int status(Io& io) {
    const Opened store(store_, io);
    const Counts counts = count(store.manifest, store.rows);
    double wall = 0;
    for (const auto& [key, record] : store.contents.records) wall += record.wall_s;
    if (json_) {
      Json out = to_json(store.manifest, counts);
      out.set("wall_s", wall);
      Json files = Json::array();
      for (const StoreFile& file : store.contents.files) {
        Json f = Json::object();
        f.set("name", file.name);
        f.set("records", std::uint64_t{file.records});
        f.set("failed", std::uint64_t{file.failed});
        files.push(std::move(f));
      }
      out.set("files", std::move(files));
      Json damage = Json::array();
      for (const Damage& d : store.contents.damage) damage.push(to_text(d));
      out.set("damage", std::move(damage));
      io.out = to_text(out) + "\n";
      return kOk;
    }
    io.out = fmt::format("{}: {} points: {} ok, {} failed, {} left; {:.1f} s of computing\n",
                         store.manifest.name, counts.planned, counts.ok, counts.failed,
                         counts.left(), wall);
    Table table({"file", "records", "failed"});
    for (const StoreFile& file : store.contents.files)
      table.row({file.name, std::to_string(file.records), std::to_string(file.failed)});
    if (!table.empty()) io.out += table.text();
    for (const Row& row : store.rows) {
      if (row.found->ok) continue;
      io.out += fmt::format("\nfirst failed point, {}:\n{}\n", row.point, row.found->error);
      break;
    }
    return kOk;
  }

  void tell_left(const Opened& store, Io& io) const {
    const Counts counts = count(store.manifest, store.rows);
    if (counts.left() > 0)
      io.err << fmt::format("weft: {} of {} points are not there yet\n", counts.left(),
                            counts.planned);
  }

  int csv(Io& io) {
    expect_writable(file_);
    const Opened store(store_, io);
    tell_left(store, io);
    std::string text = to_csv(store.manifest, store.rows);
    if (file_.empty()) {
      io.out = std::move(text);
    } else {
      refuse_own_file(store_, file_);
      write_file(file_, text);
    }
    return kOk;
  }

  int merge(Io& io) {
    const Opened store(store_, io);
    tell_left(store, io);
    const std::string path = file_.empty() ? store_ + "/sweep.sqlite" : file_;
    refuse_own_file(store_, path);
    write_sqlite(path, store.manifest, store.rows);
    io.out = fmt::format("{}: {} rows\n", path, store.rows.size());
    return kOk;
  }

  int page(Io& io) {
    expect_writable(file_);
    const Opened store(store_, io);
    tell_left(store, io);
    const std::optional<std::string> text = sweep_page(to_json(store.manifest, store.rows));
    if (!text) throw Missing(kNoSweepPage);
    refuse_own_file(store_, file_);
    write_file(file_, *text);
    io.out = fmt::format("page: {}\n", file_);
    return kOk;
  }

  std::string sweep_, store_, shard_, file_;
  unsigned jobs_ = 0;
  bool resume_ = false, retry_ = false, json_ = false;
  CLI::App *status_ = nullptr, *csv_ = nullptr, *merge_ = nullptr, *page_ = nullptr;
};

}  // namespace

extern const Verb kSweep;
const Verb kSweep{"sweep", "runs a scenario along axes, resumable; tables and charts of it",
                  make_command<SweepCommand>};

}  // namespace weft
