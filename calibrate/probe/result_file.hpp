// SPDX-License-Identifier: Apache-2.0
// The measurement file of a run that may end at any moment.
//
//   box.json          a whole measurement, replaced as one (written beside it, then renamed) every now and then
//   box.json.journal  one line per test, appended as soon as the test is done; gone when the run has ended
//
// Whatever kills the program, box.json can be read, and what it lacks is in the journal; a run that is resumed reads both. A
// line that was cut off is dropped: its test runs again.
//
// When nothing can be written (a full disk), results stay in memory, the trouble is told once, and each later test tries
// again. finish() tries other folders before it gives up.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "calibrate/measurement_merge.hpp"

namespace weft {

// The path cannot be used; nothing was measured yet. Exit code 2.
struct UnusablePath : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ResultFile {
 public:
  enum class Open { fresh, replace, resume };
  // `head` is what is known before the first test: tool, hosts, date. Throws UnusablePath: the folder cannot be written, the
  // file is there and `fresh` was asked for, what is to be resumed is of another machine or another way to run, or another
  // process writes it.
  ResultFile(std::string path, const Measurement& head, Open how);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  // Tests that an earlier run has finished, failed ones included.
  bool has(const std::string& test) const { return known_.contains(test); }
  std::size_t resumed() const { return resumed_; }

  void add(const Measurement& part);

  struct Written {
    bool whole = false;    // everything is in a file
    std::string path;      // where; another one than asked for when that cannot be written
    std::string trouble;   // empty: none
    std::string document;  // when it could not be written anywhere
  };
  // Writes what there is; the journal goes when that worked.
  Written finish();

  // What went wrong with writing since the last call; empty: nothing.
  std::string take_trouble();
  const Measurement& result() const { return all_.result(); }

 private:
  void open_journal(const Measurement& head, Open how);
  void read_back(const Measurement& head);
  void refuse_other_run(const Measurement& head, const Measurement& before) const;
  void take(const Measurement& part);
  bool append(const std::string& line);
  void checkpoint();
  void remember(std::string trouble);

  std::string path_, journal_;
  MeasurementUnion all_;
  std::unordered_set<std::string> known_;
  std::size_t resumed_ = 0;
  std::vector<std::string> unwritten_;  // lines that are in memory only
  int file_ = -1;
  std::int64_t length_ = 0;  // of the journal's whole lines
  std::string trouble_;
  std::unordered_set<std::string> told_;
  double checkpoint_at_ = 0;
};

// Writes `text` to a new file beside `path` and renames it. Returns what went wrong; empty: nothing.
std::string replace_file(const std::string& path, std::string_view text);

}  // namespace weft
