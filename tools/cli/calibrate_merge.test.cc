// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "calibrate/measurement.hpp"
#include "tools/cli/cli.hpp"

namespace weft {
namespace {

class CalibrateMergeCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("weft-merge-{}", ::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& product, const std::string& to) const {
    Measurement m = new_measurement("box", "weft-probe", "a machine");
    m.hosts.emplace_back().host = "node17";
    m.hosts[0].gpus.push_back({.device = 0, .product = product});
    m.copies.push_back({.from = "cpu0", .to = to, .bytes = 1_MiB, .time = 50_us});
    std::ofstream(path(name)) << to_text(write_measurement(m));
  }
  static std::pair<int, std::string> weft(std::vector<std::string> args) {
    args.insert(args.begin(), "calibrate");
    std::ostringstream out, err;
    const int code = run_cli(args, out, err);
    return {code, out.str() + err.str()};
  }

  std::filesystem::path folder_;
};

TEST_F(CalibrateMergeCommand, UnionIsWrittenAndCanBeInspected) {
  write("a.json", "H100", "gpu0");
  write("b.json", "H100", "gpu1");
  ASSERT_EQ(weft({"merge", path("a.json"), path("b.json"), path("a.json"), "-o", path("c.json"),
                  "--anonymous"})
                .first,
            kOk);
  std::ostringstream text;
  text << std::ifstream(path("c.json")).rdbuf();
  EXPECT_EQ(text.str().find("node17"), std::string::npos);
  const auto [code, said] = weft({"inspect", path("c.json")});
  EXPECT_EQ(code, kOk);
  EXPECT_NE(said.find("2 pairs alone, 1 MiB"), std::string::npos) << said;
  EXPECT_NE(said.find("missing"), std::string::npos);
  EXPECT_EQ(weft({"inspect", path("c.json"), "--json"}).second.front(), '{');
}

TEST_F(CalibrateMergeCommand, OtherMachinesAndBrokenFilesAreRefused) {
  write("a.json", "H100", "gpu0");
  write("b.json", "A100", "gpu0");
  const auto [code, said] = weft({"merge", path("a.json"), path("b.json"), "-o", path("c.json")});
  EXPECT_EQ(code, kBadInput);
  EXPECT_NE(said.find("another machine"), std::string::npos) << said;
  EXPECT_FALSE(std::filesystem::exists(path("c.json")));
  std::ofstream(path("d.json")) << R"({"kind": "measurement", "tool": "x", "copies": [{}]})";
  const auto broken = weft({"inspect", path("d.json")});
  EXPECT_EQ(broken.first, kBadInput);
  EXPECT_NE(broken.second.find("d.json:1:"), std::string::npos) << broken.second;
  EXPECT_EQ(weft({"inspect", path("none.json")}).first, kBadInput);
}

}  // namespace
}  // namespace weft
