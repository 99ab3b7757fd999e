// SPDX-License-Identifier: Apache-2.0
// Text for people: tables of aligned columns without boxes, a progress line, colour. Both of the last two only on a
// terminal; NO_COLOR and TERM=dumb are respected.
//
//   tier        class       links   raw GB/s
//   access      infiniband   1024       50.0
//   leaf-spine  infiniband   1024       50.0
#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Standard output and standard error are terminals or not; any other stream is not.
bool is_terminal(const std::ostream& stream);
bool wants_colour(const std::ostream& stream);

enum class Colour { bold, dim, red, green, yellow };
std::string paint(std::string_view text, Colour colour, bool enabled);

std::string seconds_text(double seconds);              // "1.24 ms"
std::string change_text(double before, double after);  // "+3.2 %"

// A column whose every cell is a number (or empty) is aligned to the right. Widths count characters, not bytes.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  std::string text(std::string_view indent = {}) const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

// One line on standard error that is rewritten at most ten times a second and vanishes in the end.
class Progress {
 public:
  explicit Progress(std::ostream& err);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();
  void show(std::string_view line);

 private:
  std::ostream& err_;
  bool enabled_;
  std::size_t shown_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

// While it lives, `call` runs whenever work on this thread would show its progress. It may throw to end that work.
class ProgressHook {
 public:
  explicit ProgressHook(std::function<void()> call);
  ProgressHook(const ProgressHook&) = delete;
  ProgressHook& operator=(const ProgressHook&) = delete;
  ~ProgressHook();
};

}  // namespace weft
