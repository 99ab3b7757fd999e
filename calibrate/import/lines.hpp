// SPDX-License-Identifier: Apache-2.0
// What a log looks like once everything is taken off that is not the tool's own text: escape codes of a terminal, the tags
// launchers put before each line, carriage returns.
//
//   "\x1b[1m[1,0]<stdout>:#  Rank  0"   ->   "#  Rank  0"
//   "2024-07-18T15:41:05Z 1048576"       ->   "1048576"
//   "worker-3 | 0: 1048576"              ->   "1048576"
//
// Nothing that could be a value is taken off: an escape code that does not end as such codes do leaves the line `damaged`, and
// readers take no numbers from a damaged line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/import/import.hpp"
#include "sim/core/diagnostics.hpp"

namespace weft {

struct LogLine {
  std::uint32_t number = 0;  // from 1
  std::uint32_t offset = 0;  // bytes of the captured line before `text`
  std::string text;
  bool tagged = false;   // a launcher's tag was taken off
  bool finished = true;  // a line break follows: the end of the line was not cut off
  bool damaged = false;  // holds a broken escape code or a control character
};

struct Word {
  std::string_view text;
  std::size_t at = 0;  // in the line's text
};

std::vector<LogLine> clean_lines(std::string_view text);
std::vector<Word> words_of(std::string_view text);
// The words of an index that was glued to numbers by a launcher are taken off: "-1[0]" is "-1", a word "[0]" alone vanishes.
std::vector<Word> words_without_tags(std::string_view text);

std::string_view trimmed(std::string_view text);
bool begins_with_digit(std::string_view text);
// The part of `text` after `key`, if it begins with that, blanks before and after the key aside.
std::optional<std::string_view> after(std::string_view text, std::string_view key);

// "1 row", "2 rows".
std::string counted(std::int64_t count, std::string_view what);

// Whether the text is JSON rather than a log: it begins with a brace.
bool looks_like_json(std::string_view text);

// A number as printed: "1119.8" stands for every value within half a unit of its last digit.
struct PrintedNumber {
  double value = 0;
  double half_unit = 0;
  int decimals = 0;
};
// The whole word is one finite number.
std::optional<PrintedNumber> parse_printed(std::string_view word);
std::optional<std::int64_t> parse_whole(std::string_view word);

// Notes about lines that were not used; only the first of many are kept one by one.
class IgnoredLines {
 public:
  explicit IgnoredLines(Imported& out) : out_(out) {}
  void noise(const LogLine& line);                      // text of another program
  void row(const LogLine& line, std::string_view why);  // looked like data but cannot be trusted
  std::size_t rows() const { return rows_; }
  const std::string& first_reason() const { return first_reason_; }
  void finish();

 private:
  static constexpr std::size_t kMostNotes = 20;
  Imported& out_;
  std::size_t rows_ = 0, noise_ = 0;
  std::uint32_t first_noise_ = 0;
  std::string first_reason_;
};

Place place_in(const LogLine& line, std::uint32_t file, std::size_t at = 0);

}  // namespace weft
