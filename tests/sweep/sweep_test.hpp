// SPDX-License-Identifier: Apache-2.0
// Sweeps run as a process of their own, which may be killed or given little room.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/cli.hpp"

namespace weft::sweep_test {

namespace fs = std::filesystem;

struct Outcome {
  int code = 0;
  std::string out, err;
};

inline Outcome weft_cli(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  Outcome outcome;
  outcome.code = run_cli(args, out, err);
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

// A child that runs one command; `first` is called in it before.
class Child {
 public:
  explicit Child(const std::vector<std::string>& args, const std::function<void()>& first = {}) {
    pid_ = fork();
    if (pid_ == 0) {
      if (first) first();
      _exit(weft_cli(args).code);
    }
  }
  void send(int signal) const { ::kill(pid_, signal); }
  // Exit code, or minus the signal that ended it.
  int wait() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

inline std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline std::size_t lines(const fs::path& path) {
  const std::string text = read(path);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Waits until a log has so many lines; two minutes at most.
inline bool reaches(const fs::path& path, std::size_t wanted) {
  for (int i = 0; i < 120'000 && lines(path) < wanted; ++i) usleep(1000);
  return lines(path) >= wanted;
}

class SweepTest : public testing::Test {
 protected:
  SweepTest() : root_(fs::path(testing::TempDir()) / ("weft_sweep_" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~SweepTest() override { fs::remove_all(root_); }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name, std::ios::binary) << text;
    return path(name);
  }
  std::string log(const std::string& store, const std::string& name = "shard-0-of-1.ndjson") const {
    return path(store) + "/" + name;
  }
  // The table of a store, with a failure when something about the store is odd.
  std::string csv(const std::string& store) const {
    const Outcome outcome = weft_cli({"sweep", "csv", path(store)});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }

 private:
  fs::path root_;
};

// 24 quick points of a machine of eight GPUs.
inline std::string small_sweep(const std::string& more = {}) {
  return R"({"weft": {"schema": 1}, "kind": "sweep", "name": "small",
  "scenario": {"fabric": {"use": "dgx1-v100"}, "fidelity": "analytic",
               "workload": {"collective": "all_reduce", "size": "1 MiB", "algorithm": "ring"}},
  "axes": [{"pointer": "/workload/gpus", "values": [2, 4, 8]},
           {"pointer": "/workload/size", "log_range": {"from": "1 KiB", "to": "16 GiB", "factor": 10}}])" +
         more + "}";
}

}  // namespace weft::sweep_test
