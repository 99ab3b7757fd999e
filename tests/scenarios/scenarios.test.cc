// SPDX-License-Identifier: Apache-2.0
// Every file of scenarios/ runs, twice with the same fingerprint, and meets what it expects.
#include "tests/scenarios/scenario_test.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(WEFT_SOURCE_DIR) / "scenarios";

std::vector<std::string> scenario_files() {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(kFolder)) {
    if (entry.path().extension() == ".json")
      out.push_back(fs::relative(entry.path(), kFolder).string());
  }
  std::ranges::sort(out);
  return out;
}

class ScenarioFile : public ::testing::TestWithParam<std::string> {};

TEST_P(ScenarioFile, MeetsItsExpectationsTheSameWayTwice) {
  const std::string path = (kFolder / GetParam()).string();
  const scenario_test::Answer first = scenario_test::weft({"check", "--run", "--json", path});
  EXPECT_EQ(first.code, kOk) << scenario_test::weft({"check", "--run", path}).out << first.err;
  const Json* expect = find_at(first.json, "/files/0/expect");
  ASSERT_NE(expect, nullptr) << first.err;
  EXPECT_FALSE(expect->items.empty()) << "a scenario says what its answer must be";
  const scenario_test::Answer again = scenario_test::weft({"run", path, "--json", "--quick"});
  EXPECT_EQ(find_at(first.json, "/files/0/fingerprint")->text,
            find_at(again.json, "/fingerprint")->text);
  EXPECT_EQ(find_at(again.json, "/scenario")->text, fs::path(path).stem().string())
      << "the name is the file's stem";
  EXPECT_FALSE(find_at(again.json, "/question")->text.empty());
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string out = fs::path(info.param).stem().string();
  std::ranges::replace(out, '-', '_');
  return out;
}

INSTANTIATE_TEST_SUITE_P(Scenarios, ScenarioFile, ::testing::ValuesIn(scenario_files()), test_name);

TEST(CheckRun, AMissedBandExitsWithFour) {
  const auto path = fs::path(::testing::TempDir()) / "missed.json";
  std::ofstream(path)
      << R"({"fabric": "hgx-h100", "workload": {"collective": "all_reduce", "size": "1 MiB"},
    "expect": [{"what": "it takes a day", "pointer": "/time_s", "min": 86400}]})";
  const scenario_test::Answer answer = scenario_test::weft({"check", "--run", path.string()});
  EXPECT_EQ(answer.code, kLimit);
  EXPECT_NE(answer.out.find("FAILED    it takes a day"), std::string::npos) << answer.out;
  EXPECT_EQ(scenario_test::weft({"check", path.string()}).code, kOk)
      << "without --run nothing runs";
}

TEST(CheckRun, AVariantThatDoesNotReadIsBadInput) {
  const auto path = fs::path(::testing::TempDir()) / "variant.json";
  std::ofstream(path)
      << R"({"fabric": "hgx-h100", "workload": {"collective": "all_reduce", "size": "1 MiB"},
    "expect": [{"what": "x", "pointer": "/time_s", "min": 0, "against": {"set": {"/workload/size": "much"}}}]})";
  const scenario_test::Answer answer = scenario_test::weft({"check", "--run", path.string()});
  EXPECT_EQ(answer.code, kBadInput);
  EXPECT_NE(answer.err.find("\"much\" is not"), std::string::npos) << answer.err;
}

}  // namespace
}  // namespace weft
