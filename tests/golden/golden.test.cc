// SPDX-License-Identifier: Apache-2.0
// Whole reports compared bit for bit with committed ones, so that a number that moves is seen and explained. On a difference
// the new report is left beside the old as NAME.report.json.new; WEFT_UPDATE=1 replaces the old.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.hpp"

namespace weft {
namespace {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// What a run found, without what the machine it ran on and the input say.
std::string stable_text(const Report& report) {
  Json json = to_json(report);
  Json out = Json::object();
  for (const JsonMember& member : json.members) {
    if (member.key != "wall_s" && member.key != "peak_rss_bytes" && member.key != "effective" &&
        member.key != "weft") {
      out.set(member.key, member.value);
    }
  }
  return to_text(out) + "\n";
}

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, ReportIsTheCommittedOne) {
  const std::string stem = fmt::format("{}/tests/golden/{}", WEFT_SOURCE_DIR, GetParam());
  const auto scenario_text = read_file(stem + ".scenario.json");
  ASSERT_TRUE(scenario_text) << stem;
  RunContext context = test::context();
  context.explain = true;
  Diagnostics out;
  const std::string now =
      stable_text(run_scenario(test::scenario_from(*scenario_text, out), context, out));
  const std::string path = stem + ".report.json";
  const char* update = std::getenv("WEFT_UPDATE");
  if (update != nullptr && std::string_view(update) == "1") {
    write_file(path, now);
    return;
  }
  const auto before = read_file(path);
  if (before == now) {
    std::remove((path + ".new").c_str());
    return;
  }
  write_file(path + ".new", now);
  ADD_FAILURE() << "the report moved; compare\n  " << path << "\n  " << path
                << ".new\nWEFT_UPDATE=1 accepts it";
}

INSTANTIATE_TEST_SUITE_P(Reports, Golden,
                         ::testing::Values("all_reduce_in_the_switch", "staged_copies",
                                           "incast_with_a_fault", "mesh_rings", "rails_all_to_all",
                                           "jobs_side_by_side"));

}  // namespace
}  // namespace weft
