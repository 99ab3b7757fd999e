// SPDX-License-Identifier: Apache-2.0
// Runs weft-probe as a person does, in a folder of its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "calibrate/measurement.hpp"

namespace weft {

struct ProgramResult {
  int code = -1;  // exit code; -1 when a signal ended it
  std::string out, err;
};

class ProbeProgram : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // After `kill_after_ms`, counted from when `once_there` exists, it gets `signal`. `file_limit`: most bytes of a file that it may write.
  struct How {
    int kill_after_ms = -1, signal = 0;
    long file_limit = -1;
    std::string once_there{};
  };
  ProgramResult run(std::vector<std::string> args, How how);
  ProgramResult run(std::vector<std::string> args) { return run(std::move(args), {}); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string text(const std::string& path);
  // Fails the test when the file is no measurement.
  static Measurement read(const std::string& path);
  static Measurement parse(const std::string& text);

  std::filesystem::path folder_;
};

}  // namespace weft
