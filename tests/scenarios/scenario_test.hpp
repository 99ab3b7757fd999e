// SPDX-License-Identifier: Apache-2.0
// Runs scenarios inside the test as the command line does.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/run/expect.hpp"
#include "tools/cli/cli.hpp"

namespace weft::scenario_test {

struct Answer {
  int code = 0;
  std::string out, err;
  Json json;  // of --json, when it went well

  double number(const std::string& pointer) const {
    const Json* found = find_at(json, pointer);
    if (found == nullptr || !found->is_number()) {
      ADD_FAILURE() << "no number at " << pointer << "\n" << err;
      return 0;
    }
    return found->number;
  }
};

inline Answer weft(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  Answer answer;
  answer.code = run_cli(args, out, err);
  answer.out = out.str();
  answer.err = err.str();
  if (answer.code != kBadInput && std::ranges::find(args, "--json") != args.end()) {
    Diagnostics problems;
    answer.json = parse_json(answer.out, "answer", problems);
  }
  return answer;
}

// A scenario given as text, run with --json; further arguments follow the file's name.
inline Answer run_text(const std::string& text, std::vector<std::string> more = {}) {
  const auto path = std::filesystem::path(::testing::TempDir()) /
                    fmt::format("weft_scenario_{}.json", ::getpid());
  std::ofstream(path) << text;
  std::vector<std::string> args{"run", path.string(), "--json", "--quick"};
  args.insert(args.end(), more.begin(), more.end());
  Answer answer = weft(args);
  std::filesystem::remove(path);
  return answer;
}

// One collective on a fabric given by name or as JSON.
inline Answer collective(const std::string& fabric, const std::string& job,
                         std::vector<std::string> more = {}) {
  const std::string reference = fabric.starts_with('{') ? fabric : fmt::format(R"("{}")", fabric);
  return run_text(fmt::format(R"({{"fabric": {}, "workload": {{{}}}}})", reference, job),
                  std::move(more));
}

}  // namespace weft::scenario_test
