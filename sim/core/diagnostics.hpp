// SPDX-License-Identifier: Apache-2.0
// Problems of the input: each has a place, a fact and a cure. They are collected, never thrown one by one, so that a person
// sees every problem of a file at once.
//
//   scenarios/moe.json:14:19: error: /fabric/spine/uplink: "400 Gbit" is not a bandwidth
//       write a number and a unit, e.g. "400 Gb/s" (bits) or "50 GB/s" (bytes)
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Where a value was written. `file` indexes Diagnostics::files; line and column count from 1, column in bytes.
struct Place {
  std::uint32_t file = 0;
  std::uint32_t line = 0;  // 0: no place (a value given on the command line, or a default)
  std::uint32_t column = 0;
};

struct Problem {
  enum class Severity { warning, error };
  Severity severity = Severity::error;
  Place place;
  std::string pointer;
  std::string fact;
  std::string cure;
};

// The input cannot be used; what() is the whole text to print. Exit code 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Diagnostics {
 public:
  // Registers a source by the name a person knows it by and returns its index for Place::file.
  std::uint32_t add_file(std::string name);
  const std::string& file_name(std::uint32_t file) const { return files_[file]; }

  void error(Place place, std::string pointer, std::string fact, std::string cure = {});
  void warning(Place place, std::string pointer, std::string fact, std::string cure = {});

  bool ok() const { return errors_ == 0; }
  std::size_t error_count() const { return errors_; }
  const std::vector<Problem>& problems() const { return problems_; }

  // All problems in the order of their places, one paragraph each; at most `limit` of them, the rest are counted.
  std::string text(std::size_t limit = 50) const;
  std::string text_of(const Problem& problem) const;

  // Throws InputError with text() when there is an error.
  void throw_if_errors() const;

 private:
  std::vector<std::string> files_{"<command line>"};
  std::vector<Problem> problems_;
  std::size_t errors_ = 0;
};

}  // namespace weft
