// SPDX-License-Identifier: Apache-2.0
// Inputs that are better made than stored: empty, binary, deep, long, in other encodings, growing by inclusion.
#include <gmock/gmock.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::weft_cli;
using testing::HasSubstr;

const std::string kGood =
    R"({"fabric": "dgx1-p100", "workload": {"collective": "all_reduce", "size": "1 MiB"}})";

class Generated : public testing::Test {
 protected:
  void expect_refused(const std::string& text, const std::string& where, const std::string& fact,
                      const std::string& cure) {
    const auto outcome = weft_cli({"check", folder_.file("input.json", text)});
    SCOPED_TRACE(outcome.err.substr(0, 2000));
    EXPECT_EQ(outcome.code, kBadInput);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("input.json:" + where + ": error: "));
    EXPECT_THAT(outcome.err, HasSubstr(fact));
    EXPECT_THAT(outcome.err, HasSubstr(cure));
    EXPECT_LT(outcome.err.size(), 100'000U);
    EXPECT_LT(outcome.seconds, 10);
    EXPECT_LT(cli_test::peak_gib(), 2);
  }
  cli_test::Folder folder_;
};

TEST_F(Generated, EmptyFile) {
  expect_refused("", "1:1", "the file is empty", "a JSON object is needed");
}

TEST_F(Generated, OnlyBlanks) {
  expect_refused(" \n\t\n", "3:1", "not JSON", "a missing comma, quote or bracket");
}

TEST_F(Generated, BinaryFile) {
  std::string text =
      "\x7f"
      "ELF";
  for (int i = 0; i < 4096; ++i) text += static_cast<char>(i * 37);
  expect_refused(text, "1:5", "not JSON: a zero byte", "UTF-8 text");
}

TEST_F(Generated, InvalidUtf8) {
  expect_refused("{\"name\": \"caf\xe9\"}", "1:15", "not JSON", "UTF-8 text");
}

TEST_F(Generated, Utf16) {
  std::string text = "\xff\xfe";
  for (const char c : kGood) text += std::string{c, '\0'};
  expect_refused(text, "1:4", "a zero byte", "UTF-8 text");
}

TEST_F(Generated, DeepNesting) {
  expect_refused(std::string(100'000, '['), "1:65", "nested deeper than 64 levels", "flatten");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  expect_refused(objects, "1:321", "nested deeper than 64 levels", "flatten");
}

TEST_F(Generated, ManyKeysInOneObject) {
  std::string text = "{";
  for (int i = 0; i < 20'000; ++i) text += "\"key" + std::to_string(i) + "\": 1,\n";
  expect_refused(text + "\"last\": 1}", "10001:1", "more than 10000 keys", "use an array");
}

TEST_F(Generated, ManyProblemsAreCutAndCounted) {
  std::string text = "{\"kind\": \"server\", \"nodes\": [";
  for (int i = 0; i < 50'000; ++i)
    text += std::string(i > 0 ? "," : "") + "\n{\"id\": 1, \"knid\": \"gpu\"}";
  expect_refused(text + "]}", "2:8", "1 where a string is needed", "more problems");
}

TEST_F(Generated, LongString) {
  expect_refused("{\"kind\": \"" + std::string(1'000'000, 'x') + "\"}", "1:10", "there is no kind",
                 "kinds: ");
}

TEST_F(Generated, LongNumber) {
  expect_refused("{\"kind\": \"link\", \"class\": \"xgmi\", \"rate\": \"" +
                     std::string(1'000'000, '9') + " Gb/s\"}",
                 "1:43", "is not a bandwidth", "write a number and a unit");
}

TEST_F(Generated, ByteOrderMarkIsNoReasonToRefuse) {
  const auto outcome = weft_cli({"check", folder_.file("input.json", "\xef\xbb\xbf" + kGood)});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
}

TEST_F(Generated, LinesMayEndAsOnWindows) {
  const auto good = weft_cli(
      {"check",
       folder_.file(
           "input.json",
           "{\r\n\"fabric\": \"dgx1-p100\",\r\n"
           "\"workload\": {\"collective\": \"all_reduce\", \"size\": \"1 MiB\"}\r\n}\r\n")});
  EXPECT_EQ(good.code, kOk) << good.err;
  expect_refused("{\r\n  \"fabric\": \"dgx1-p100\",\r\n  \"wrkload\": 1\r\n}\r\n", "3:3",
                 "did you mean \"workload\"?", "");
}

// 2^24 values from a few hundred bytes.
TEST_F(Generated, InclusionThatDoubles) {
  folder_.file("b0.json", R"({"nodes": [{"id": "g", "kind": "gpu", "model": {}}]})");
  for (int i = 1; i < 24; ++i) {
    const std::string use = R"({"server": "b)" + std::to_string(i - 1) + ".json\"}";
    folder_.file("b" + std::to_string(i) + ".json", "{\"a\": " + use + ", \"b\": " + use + "}");
  }
  const auto outcome = weft_cli(
      {"check", folder_.file("input.json", R"({"kind": "fabric", "server": "b23.json"})")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("included files grow beyond"));
  EXPECT_LT(outcome.seconds, 10);
  EXPECT_LT(cli_test::peak_gib(), 2);
}

// Each file is within the depth of JSON; together they are not.
TEST_F(Generated, InclusionThatDeepens) {
  std::string open, close;
  for (int i = 0; i < 50; ++i) {
    open += "[";
    close += "]";
  }
  folder_.file("d0.json", "{\"a\": 1}");
  for (int i = 1; i < 60; ++i) {
    folder_.file(
        "d" + std::to_string(i) + ".json",
        "{\"a\": " + open + "{\"link\": \"d" + std::to_string(i - 1) + ".json\"}" + close + "}");
  }
  const auto outcome =
      weft_cli({"check", folder_.file("input.json", R"({"kind": "link", "link": "d59.json"})")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("nest deeper than"));
}

// "set" reaches into what an earlier "set" has put there.
TEST_F(Generated, ChangesThatDeepen) {
  std::string deep = "1";
  for (int i = 0; i < 60; ++i) deep = "{\"a\": " + deep + "}";
  std::string pointer, sets;
  for (int i = 0; i < 100; ++i) {
    sets += std::string(i > 0 ? ",\n" : "") + "\"" + (pointer.empty() ? "/x" : pointer) +
            "\": " + (i == 0 ? "{\"a\": " + deep + "}" : deep);
    if (pointer.empty()) pointer = "/x";
    for (int k = 0; k < 61; ++k) pointer += "/a";
  }
  const auto outcome = weft_cli(
      {"check",
       folder_.file("input.json",
                    "{\"kind\": \"fabric\", \"server\": {\"use\": \"dgx1-p100\", \"set\": {" +
                        sets + "}}}")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("a pointer of more than 64 keys"));
}

TEST_F(Generated, AFolderADeviceAndAPipeAreNotFiles) {
  for (const std::string& path :
       {folder_.path(""), std::string("/dev/zero"), std::string("/dev/stdin"),
        folder_.path("none.json"), std::string("/proc/self/mem"), std::string()}) {
    const auto outcome = weft_cli({"check", path});
    EXPECT_EQ(outcome.code, kBadInput) << path;
    EXPECT_EQ(outcome.out, "") << path;
    EXPECT_THAT(outcome.err, HasSubstr("error: ")) << path;
    EXPECT_LT(outcome.seconds, 10) << path;
  }
}

TEST_F(Generated, AReportIsNoScenario) {
  const auto report = weft_cli({"run", folder_.file("input.json", kGood), "--json", "--quick"});
  ASSERT_EQ(report.code, kOk) << report.err;
  const auto outcome = weft_cli({"run", folder_.file("report.json", report.out)});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace weft
