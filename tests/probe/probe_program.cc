// SPDX-License-Identifier: Apache-2.0
#include "tests/probe/probe_program.hpp"

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft {

void ProbeProgram::SetUp() {
  folder_ = std::filesystem::temp_directory_path() /
            fmt::format("weft-probe-{}-{}", ::getpid(),
                        ::testing::UnitTest::GetInstance()->current_test_info()->name());
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directory(folder_);
}

void ProbeProgram::TearDown() { std::filesystem::remove_all(folder_); }

std::string ProbeProgram::text(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

Measurement ProbeProgram::parse(const std::string& text) {
  Diagnostics out;
  Measurement m = read_measurement(parse_json(text, "m.json", out), out);
  EXPECT_TRUE(out.ok()) << out.text();
  return m;
}

Measurement ProbeProgram::read(const std::string& path) { return parse(text(path)); }

ProgramResult ProbeProgram::run(std::vector<std::string> args, How how) {
  args.insert(args.begin(), WEFT_PROBE);
  std::vector<char*> words;
  for (std::string& arg : args) words.push_back(arg.data());
  words.push_back(nullptr);
  const std::string err = path("stderr");
  int out_pipe[2];
  EXPECT_EQ(::pipe2(out_pipe, O_CLOEXEC), 0);
  const int err_file = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const pid_t child = ::fork();
  if (child == 0) {
    if (how.file_limit >= 0) {
      const rlimit limit{static_cast<rlim_t>(how.file_limit), static_cast<rlim_t>(how.file_limit)};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      ::setenv("TMPDIR", folder_.c_str(), 1);
      ::setenv("HOME", folder_.c_str(), 1);
    }
    ::dup2(out_pipe[1], 1);
    ::dup2(err_file, 2);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  ::close(out_pipe[1]);
  ::close(err_file);
  if (how.kill_after_ms >= 0) {
    for (int i = 0; i < 20'000 && !how.once_there.empty(); ++i) {
      if (std::filesystem::exists(how.once_there)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(how.kill_after_ms));
    ::kill(child, how.signal);
  }
  ProgramResult result;
  char buffer[65536];
  for (ssize_t count = 0; (count = ::read(out_pipe[0], buffer, sizeof buffer)) > 0;)
    result.out.append(buffer, static_cast<std::size_t>(count));
  ::close(out_pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  result.err = text(err);
  return result;
}

}  // namespace weft
