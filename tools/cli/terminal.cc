// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/terminal.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include <fmt/format.h>
#include <unistd.h>

#include "sim/core/seconds.hpp"

namespace weft {
namespace {

bool dumb_terminal() {
  const char* term = std::getenv("TERM");
  return term == nullptr || std::string_view(term) == "dumb";
}

// Characters of UTF-8 text: bytes that do not continue another.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_number(std::string_view cell) {
  if (cell.starts_with('-') || cell.starts_with('+')) cell.remove_prefix(1);
  return !cell.empty() && cell.front() >= '0' && cell.front() <= '9';
}

}  // namespace

bool is_terminal(const std::ostream& stream) {
  if (&stream == &std::cout) return isatty(STDOUT_FILENO) != 0;
  if (&stream == &std::cerr) return isatty(STDERR_FILENO) != 0;
  return false;
}

bool wants_colour(const std::ostream& stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  return is_terminal(stream) && !dumb_terminal() && (no_colour == nullptr || *no_colour == '\0');
}

std::string paint(std::string_view text, Colour colour, bool enabled) {
  if (!enabled) return std::string(text);
  std::string_view code;
  switch (colour) {
    case Colour::bold:
      code = "1";
      break;
    case Colour::dim:
      code = "2";
      break;
    case Colour::red:
      code = "31";
      break;
    case Colour::green:
      code = "32";
      break;
    case Colour::yellow:
      code = "33";
      break;
  }
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string Table::text(std::string_view indent) const {
  std::size_t columns = header_.size();
  for (const auto& row : rows_) columns = std::max(columns, row.size());
  std::vector<std::size_t> width(columns, 0);
  std::vector<bool> right(columns, !rows_.empty());
  for (std::size_t c = 0; c < header_.size(); ++c) width[c] = width_of(header_[c]);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      width[c] = std::max(width[c], width_of(row[c]));
      if (!row[c].empty() && !is_number(row[c])) right[c] = false;
    }
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text(indent);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string padding(width[c] - width_of(cells[c]), ' ');
      if (c > 0) text += "  ";
      text += right[c] ? padding + cells[c] : cells[c] + padding;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  if (std::ranges::any_of(header_, [](const std::string& cell) { return !cell.empty(); }))
    line(header_);
  for (const auto& row : rows_) line(row);
  return out;
}

Progress::Progress(std::ostream& err) : err_(err), enabled_(is_terminal(err) && !dumb_terminal()) {}

Progress::~Progress() {
  if (shown_ > 0) err_ << '\r' << std::string(shown_, ' ') << '\r' << std::flush;
}

namespace {
thread_local std::function<void()> progress_hook;
}

ProgressHook::ProgressHook(std::function<void()> call) { progress_hook = std::move(call); }

ProgressHook::~ProgressHook() { progress_hook = nullptr; }

void Progress::show(std::string_view line) {
  if (progress_hook) progress_hook();
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (shown_ > 0 && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  const std::size_t width = width_of(line);
  err_ << '\r' << line << std::string(shown_ > width ? shown_ - width : 0, ' ') << std::flush;
  shown_ = std::max(width, std::size_t{1});
}

std::string seconds_text(double seconds) { return to_text(time_from_seconds(seconds)); }

std::string change_text(double before, double after) {
  if (before == 0) return after == 0 ? "same" : "new";
  return fmt::format("{:+.1f} %", 100 * (after / before - 1));
}

}  // namespace weft
