// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "sim/core/diagnostics.hpp"
#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::Folder;
using testing::ElementsAre;
using testing::HasSubstr;

std::string read_back(const std::string& path) {
  std::stringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

std::string refused(const std::vector<OutputFile>& files) {
  try {
    write_files(files);
  } catch (const InputError& problem) {
    return problem.what();
  }
  return "written";
}

TEST(Output, FilesThatBelongTogetherAppearTogether) {
  const Folder folder;
  EXPECT_EQ(refused({{folder.path("a/b/one"), "1", true}, {folder.path("two"), "2"}}), "written");
  EXPECT_THAT(folder.names(), ElementsAre("a", "two"));
  EXPECT_EQ(read_back(folder.path("a/b/one")), "1");
  EXPECT_EQ(refused({{folder.path("new/../three"), "3", true}}), "written");
  EXPECT_EQ(read_back(folder.path("three")), "3");
}

TEST(Output, WhenOneCannotBeWrittenNoneIsAndOldOnesStay) {
  const Folder folder;
  folder.file("one", "old");
  std::filesystem::create_directory(folder.path("taken"));
  for (const std::string& last : {folder.path("taken"), folder.path("no/folder")}) {
    EXPECT_THAT(
        refused(
            {{folder.path("one"), "new"}, {folder.path("made/for/two"), "2", true}, {last, "3"}}),
        HasSubstr(last));
    EXPECT_THAT(folder.names(), ElementsAre("one", "taken"));
    EXPECT_EQ(read_back(folder.path("one")), "old");
  }
  EXPECT_THAT(refused({{folder.path("one/two"), "2", true}}), HasSubstr("cannot make this folder"));
}

TEST(Output, ALinkStaysOneAndADeviceIsWrittenInPlace) {
  const Folder folder;
  folder.file("real", "old");
  std::filesystem::create_symlink("real", folder.path("link"));
  write_file(folder.path("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(read_back(folder.path("real")), "new");
  write_file("/dev/null", "gone");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_THAT(refused({{"/dev/full", "x"}}), HasSubstr("cannot write this file"));
}

TEST(Output, WhatIsReadIsNotOverwritten) {
  const Folder folder;
  folder.file("in.json", "{}");
  std::filesystem::create_symlink("in.json", folder.path("link.json"));
  EXPECT_NO_THROW(refuse_overwriting(folder.path("out.json"), {folder.path("in.json")}));
  EXPECT_NO_THROW(refuse_overwriting("", {folder.path("in.json")}));
  for (const char* output : {"in.json", "link.json"}) {
    EXPECT_THROW(refuse_overwriting(folder.path(output), {folder.path("in.json")}), InputError);
  }
}

// Two that begin at once, as shards of a sweep do, find a folder missing and there from one moment to the next.
TEST(Output, SeveralMayMakeOneFolder) {
  for (int round = 0; round < 100; ++round) {
    const Folder folder;
    std::atomic<int> ready = 0;
    const auto write = [&](const std::string& name) {
      ++ready;
      while (ready < 2) std::this_thread::yield();
      EXPECT_EQ(refused({{folder.path("a/b/" + name), "x", true}}), "written");
    };
    std::thread other(write, "one");
    write("two");
    other.join();
    EXPECT_EQ(read_back(folder.path("a/b/one")) + read_back(folder.path("a/b/two")), "xx");
  }
}

}  // namespace
}  // namespace weft
