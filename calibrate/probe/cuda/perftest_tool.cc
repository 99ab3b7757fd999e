// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/cuda/perftest_tool.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrate/import/perftest.hpp"
#include "calibrate/probe/cuda/copies.hpp"

namespace weft::cuda {
namespace {

constexpr int kSeconds = 30;

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// What a shell command prints, and how it ended.
std::pair<std::string, int> output_of(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw TestFailed("no process could be started");
  std::string text;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, count);
  return {std::move(text), ::pclose(pipe)};
}

class PerftestRun final : public PreparedTest {
 public:
  explicit PerftestRun(const MessageToolTest& test) : test_(test) {
    const bool plain = !test.nic.empty() && std::ranges::all_of(test.nic, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
    });
    if (!plain) throw TestFailed(fmt::format("\"{}\" is no name of a device", test.nic));
  }

  std::vector<Time> once() override { return {}; }

  std::vector<MessageTest> messages() override {
    const int port = 18600 + static_cast<int>(::getpid() % 1000);
    std::string call =
        fmt::format("timeout {} {} -d {} -p {} -a -F", kSeconds, test_.program, test_.nic, port);
    if (!test_.gpu.empty()) call += fmt::format(" --use_cuda={}", place_of(test_.gpu).device);
    const auto [text, status] =
        output_of(fmt::format("({0} >/dev/null 2>&1 &) ; sleep 1; {0} localhost 2>&1", call));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      const std::size_t end = text.find_last_not_of('\n');
      const std::size_t begin = end == std::string::npos ? 0 : text.rfind('\n', end) + 1;
      throw TestFailed(fmt::format(
          "{} failed: {}", test_.program,
          end == std::string::npos ? "it printed nothing" : text.substr(begin, end - begin + 1)));
    }
    Diagnostics out;
    const Imported imported = kPerftestImporter.read(text, test_.program, {}, out);
    if (!out.ok()) throw TestFailed(out.text(1));
    Measurement measurement = read_measurement(imported.measurement, out);
    for (MessageTest& message : measurement.messages) {
      message.setup["from"] = test_.nic;
      message.setup["to"] = test_.nic;
      if (!test_.gpu.empty()) message.setup["gpu"] = test_.gpu;
    }
    return measurement.messages;
  }

 private:
  MessageToolTest test_;
};

}  // namespace

std::string why_no_perftest() {
  for (const char* program : {"ib_write_bw", "ib_write_lat", "timeout"}) {
    if (!in_path(program)) return fmt::format("{} is not installed", program);
  }
  return {};
}

std::unique_ptr<PreparedTest> run_perftest(const MessageToolTest& test) {
  return std::make_unique<PerftestRun>(test);
}

}  // namespace weft::cuda
