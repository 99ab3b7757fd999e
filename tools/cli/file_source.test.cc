// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/file_source.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft {
namespace {

namespace fs = std::filesystem;

class ConfigsTest : public testing::Test {
 protected:
  ConfigsTest() : root_(fs::path(testing::TempDir()) / ("configs_" + std::to_string(::getpid()))) {
    fs::create_directories(root_ / "gpus");
    write("gpus/b.json", "{\"name\": \"b\"}");
    write("gpus/a.json", "{}");
    write("gpus/notes.txt", "not a component");
    fs::create_directories(root_ / "gpus/folder.json");
  }
  ~ConfigsTest() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
  }
  std::string path(const std::string& name) const { return (root_ / name).string(); }

  fs::path root_;
};

TEST_F(ConfigsTest, NamesAreTheStemsOfTheJsonFilesSorted) {
  Configs configs(root_.string());
  EXPECT_EQ(configs.names("gpu"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(configs.names("nic").empty());
  EXPECT_TRUE(configs.names("no such kind").empty());
}

TEST_F(ConfigsTest, FindsAComponentByKindAndName) {
  Configs configs(root_.string());
  const auto found = configs.find("gpu", "b");
  ASSERT_TRUE(found);
  EXPECT_EQ(configs.read(*found), "{\"name\": \"b\"}");
  EXPECT_FALSE(configs.find("gpu", "c"));
  EXPECT_FALSE(configs.find("nic", "b"));
  EXPECT_FALSE(configs.find("gpu", "../gpus/b"));
}

TEST_F(ConfigsTest, RefusesWhatIsNotARegularFileOfBearableSize) {
  Configs configs(root_.string());
  EXPECT_FALSE(configs.read(path("gpus")));
  EXPECT_FALSE(configs.read(path("gpus/none.json")));
  ASSERT_EQ(::mkfifo(path("pipe.json").c_str(), 0600), 0);
  EXPECT_FALSE(configs.read(path("pipe.json")));
  write("large.json", "");
  fs::resize_file(path("large.json"), Configs::kLargestFile + 1);  // sparse: takes no space
  EXPECT_FALSE(configs.read(path("large.json")));
  EXPECT_FALSE(configs.read("/dev/zero"));
}

TEST(FindConfigsRoot, IsAFolderWithTheCatalogue) {
  Configs configs(find_configs_root());
  const auto gpus = configs.names("gpu");
  EXPECT_TRUE(std::ranges::binary_search(gpus, "h100-sxm5"));
}

TEST(ReadCapture, TellsWhyItCannotBeRead) {
  const auto why = [](std::string_view text) {
    const std::string path = ::testing::TempDir() + "capture.txt";
    std::ofstream(path, std::ios::binary) << text;
    Configs files(find_configs_root());
    Diagnostics out;
    const bool read = read_capture(files, path, out).has_value();
    EXPECT_EQ(read, out.ok());
    std::filesystem::remove(path);
    return out.text();
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(why("8 GB/s\n"), "");
  EXPECT_NE(why("\xFF\xFE"
                "8\0\n\0"sv)
                .find("capture.txt: error: the text is UTF-16"),
            std::string::npos);
  Configs files(find_configs_root());
  Diagnostics out;
  EXPECT_FALSE(read_capture(files, "/no/such", out));
  EXPECT_EQ(out.text(), "/no/such: error: cannot read this file\n");
}

}  // namespace
}  // namespace weft
