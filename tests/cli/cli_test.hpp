// SPDX-License-Identifier: Apache-2.0
// Runs the command line inside the test, as main does, and keeps what it printed.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sim/core/json.hpp"
#include "tools/cli/cli.hpp"

namespace weft::cli_test {

struct Outcome {
  int code = 0;
  std::string out, err;
  double seconds = 0;
};

inline Outcome weft_cli(const std::vector<std::string>& args) {
  const auto start = std::chrono::steady_clock::now();
  std::ostringstream out, err;
  Outcome outcome;
  outcome.code = run_cli(args, out, err);
  outcome.out = out.str();
  outcome.err = err.str();
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

// A log or capture as people post them.
inline std::string import_log(const std::string& name) {
  return std::string(WEFT_SOURCE_DIR) + "/tests/import_logs/data/" + name;
}

inline std::string data(const std::string& name) {
  return std::string(WEFT_SOURCE_DIR) + "/tests/cli/data/" + name;
}

// The most memory this process has ever held.
inline double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

// Parses standard output, which must be one JSON document.
inline Json document(const Outcome& outcome) {
  Diagnostics problems;
  Json json = parse_json(outcome.out, "stdout", problems);
  EXPECT_TRUE(problems.ok()) << problems.text() << outcome.out;
  EXPECT_TRUE(json.is_object());
  return json;
}

inline double number_at(const Json& json, std::initializer_list<std::string> path) {
  const Json* at = &json;
  for (const std::string& key : path) {
    at = at->is_array() ? &at->items.at(std::stoul(key)) : at->find(key);
    if (at == nullptr) {
      ADD_FAILURE() << "no key " << key;
      return 0;
    }
  }
  EXPECT_TRUE(at->is_number());
  return at->number;
}

// A folder of the test's own that vanishes with it.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::path(testing::TempDir()) /
              ("weft_cli_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path(name);
  }
  // Names of everything inside, folders not entered.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      out.push_back(entry.path().filename().string());
    std::ranges::sort(out);
    return out;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace weft::cli_test
