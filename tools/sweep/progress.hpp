// SPDX-License-Identifier: Apache-2.0
// How far a sweep is and how long it still takes, on a terminal only: "812 of 2000 points, 3 failed, 410/s, 3 s left".
#pragma once

#include <chrono>
#include <iosfwd>
#include <optional>

#include "tools/cli/terminal.hpp"

namespace weft {

class SweepProgress {
 public:
  SweepProgress(std::ostream& err, std::size_t total) : line_(std::in_place, err), total_(total) {}
  void show(std::size_t finished, std::size_t failed);
  void clear() { line_.reset(); }

 private:
  std::optional<Progress> line_;
  std::size_t total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// "45 s", "3 min 20 s", "5 h 12 min", "2 d 3 h".
std::string rough_time(double seconds);

}  // namespace weft
