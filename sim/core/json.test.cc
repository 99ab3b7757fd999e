// SPDX-License-Identifier: Apache-2.0
#include "sim/core/json.hpp"

#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

struct Parsed {
  Diagnostics out;
  Json json;
  explicit Parsed(std::string_view text) : json(parse_json(text, "in.json", out)) {}
};

// "line:column" of a value or problem.
std::string at(Place place) {
  return std::to_string(place.line) + ":" + std::to_string(place.column);
}
std::string first_problem(std::string_view text) {
  const Parsed parsed(text);
  if (parsed.out.problems().empty()) return "none";
  return at(parsed.out.problems()[0].place) + " " + parsed.out.problems()[0].fact;
}
std::string compact(std::string_view text) { return to_text(Parsed(text).json, 0); }

TEST(ParseJson, KeepsValuesAndTheOrderOfKeys) {
  EXPECT_EQ(compact(R"({"z": 1, "a": [true, false, null, "x"], "m": {"n": -2.5}})"),
            R"({"z": 1, "a": [true, false, null, "x"], "m": {"n": -2.5}})");
  EXPECT_EQ(compact("{}"), "{}");
  EXPECT_EQ(compact("[]"), "[]");
  EXPECT_EQ(compact(" 7 "), "7");
}

TEST(ParseJson, WholeNumbersStayWhole) {
  const Parsed parsed(
      "[9223372036854775807, -9223372036854775808, 9223372036854775808, 1.0, 1e2, 0.1, -0]");
  ASSERT_TRUE(parsed.out.ok()) << parsed.out.text();
  const auto& items = parsed.json.items;
  EXPECT_EQ(items[0].integer, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(items[1].integer, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(items[2].kind, Json::Kind::number);
  EXPECT_EQ(items[2].number, 0x1p63);
  EXPECT_EQ(items[3].kind, Json::Kind::number);
  EXPECT_EQ(items[4].number, 100);
  EXPECT_EQ(items[5].number, 0.1);
  EXPECT_EQ(items[6].number, 0);
}

TEST(ParseJson, EveryValueAndKeyKnowsItsPlace) {
  const Parsed parsed(
      "{\"a\": 12,\n  \"bc\": [true, null ,\"x\",\n-3.5e2\n],\n \"d\" : {\"e\":false}, "
      "\"f\":{}}\n");
  ASSERT_TRUE(parsed.out.ok()) << parsed.out.text();
  const Json& j = parsed.json;
  EXPECT_EQ(at(j.place), "1:1");
  EXPECT_EQ(at(j.members[0].place), "1:2");
  EXPECT_EQ(at(j.find("a")->place), "1:7");
  EXPECT_EQ(at(j.members[1].place), "2:3");
  EXPECT_EQ(at(j.find("bc")->place), "2:9");
  EXPECT_EQ(at(j.find("bc")->items[0].place), "2:10");
  EXPECT_EQ(at(j.find("bc")->items[1].place), "2:16");
  EXPECT_EQ(at(j.find("bc")->items[2].place), "2:22");
  EXPECT_EQ(at(j.find("bc")->items[3].place), "3:1");
  EXPECT_EQ(at(j.find("d")->place), "5:8");
  EXPECT_EQ(at(j.find("d")->find("e")->place), "5:13");
  EXPECT_EQ(at(j.find("f")->place), "5:25");
}

TEST(ParseJson, NumbersAreFoundWhateverFollowsThem) {
  for (const char* text :
       {"[ 12]", "[ 12 ]", "[ 12,1]", "[ 12\n]", "[ 12\r\n]", "[ 12\n\n]", "[ 12\t]"}) {
    EXPECT_EQ(at(Parsed(text).json.items[0].place), "1:3") << text;
  }
  EXPECT_EQ(at(Parsed("[1,\n\n   -7\n\n,2]").json.items[1].place), "3:4");
  EXPECT_EQ(at(Parsed("[1,\n\n   -7\n\n,2]").json.items[2].place), "5:2");
  EXPECT_EQ(at(Parsed("\n 12").json.place), "2:2");
  EXPECT_EQ(at(Parsed("[[12]]").json.items[0].items[0].place), "1:3");
}

TEST(ParseJson, ColumnsAreBytes) {
  EXPECT_EQ(at(Parsed("{\"\xc3\xa9\": 1, \"b\": 2}").json.find("b")->place),
            "1:16");  // é is two bytes
  EXPECT_EQ(at(Parsed("[\"\xe2\x82\xac\xe2\x82\xac\", 5]").json.items[1].place),
            "1:12");                                            // € is three
  EXPECT_EQ(at(Parsed("[\t\t5]").json.items[0].place), "1:4");  // a tab is one
}

TEST(ParseJson, WindowsLineEndsCountOnce) {
  const Parsed parsed("{\r\n  \"a\": 1,\r\n  \"b\": \"x\"\r\n}\r\n");
  ASSERT_TRUE(parsed.out.ok());
  EXPECT_EQ(at(parsed.json.find("a")->place), "2:8");
  EXPECT_EQ(at(parsed.json.members[1].place), "3:3");
  EXPECT_EQ(at(parsed.json.find("b")->place), "3:8");
}

TEST(ParseJson, AByteOrderMarkIsSkipped) {
  const Parsed parsed("\xef\xbb\xbf{\"a\": 1}");
  ASSERT_TRUE(parsed.out.ok()) << parsed.out.text();
  EXPECT_EQ(parsed.json.find("a")->integer, 1);
}

TEST(ParseJson, StringsWithQuotesAndEscapesKeepTheirPlace) {
  const Parsed parsed(R"({"a\"b": "c\\", "\\\"": "\u00e9\"\\\"", "d": ""})");
  ASSERT_TRUE(parsed.out.ok()) << parsed.out.text();
  EXPECT_EQ(at(parsed.json.members[0].place), "1:2");
  EXPECT_EQ(at(parsed.json.members[0].value.place), "1:10");
  EXPECT_EQ(at(parsed.json.members[1].place), "1:17");
  EXPECT_EQ(at(parsed.json.members[1].value.place), "1:25");
  EXPECT_EQ(at(parsed.json.members[2].place), "1:41");
  EXPECT_EQ(at(parsed.json.members[2].value.place), "1:46");
  EXPECT_EQ(parsed.json.members[1].value.text, "\xc3\xa9\"\\\"");
}

TEST(ParseJson, DuplicateKeysAreNamedWhereTheyRepeat) {
  EXPECT_EQ(first_problem("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}"),
            "3:2 key \"a\" appears twice in one object");
  EXPECT_EQ(first_problem(R"([{"a": 1}, {"a": 2}])"), "none");
  EXPECT_EQ(Parsed(R"({"a": 1, "a": 2, "b": 1, "b": 1})").out.error_count(), 2u);
}

TEST(ParseJson, NotANumberHasACure) {
  for (const char* text : {"{\"a\": NaN}", "{\"a\": nan}", "{\"a\": -NaN}"}) {
    const Parsed parsed(text);
    ASSERT_EQ(parsed.out.error_count(), 1u) << text;
    EXPECT_NE(parsed.out.text().find("JSON has no NaN"), std::string::npos)
        << text << parsed.out.text();
  }
}

TEST(ParseJson, WhatIsNotJsonIsRefusedWithItsPlace) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "[1",
                           "{\"a\"",
                           "{\"a\":",
                           "{\"a\": 1",
                           "{\"a\": 1,",
                           "\"abc",
                           "tru",
                           "nul",
                           "[1,]",
                           "{\"a\": 1,}",
                           "{a: 1}",
                           "{'a': 1}",
                           "[1] 2",
                           "{} {}",
                           "// note\n{}",
                           "[01]",
                           "[1.]",
                           "[.5]",
                           "[+1]",
                           "[Infinity]",
                           "[-Infinity]",
                           "[1e400]",
                           "[-1e400]",
                           "[\"\\x\"]",
                           "[\"\\ud800\"]",
                           "[\"a\nb\"]",
                           "[\"\xff\"]",
                           "[\"\xc3\"]",
                           "]",
                           "}",
                           ","}) {
    const Parsed parsed(text);
    EXPECT_FALSE(parsed.out.ok()) << text;
    ASSERT_FALSE(parsed.out.problems().empty()) << text;
    EXPECT_GE(parsed.out.problems()[0].place.line, 1u) << text;
    EXPECT_GE(parsed.out.problems()[0].place.column, 1u) << text;
  }
  const Parsed zero(std::string_view("[1]\0", 4));
  ASSERT_FALSE(zero.out.ok());
  EXPECT_EQ(at(zero.out.problems()[0].place), "1:4");
}

TEST(ParseJson, AMistakeIsShownWhereItIs) {
  EXPECT_EQ(first_problem("{\"a\": 1,\n  \"b\" 2}").substr(0, 3), "2:7");
  EXPECT_EQ(first_problem("{\"a\": 1,\n  \"b\" \"xy\"}").substr(0, 3), "2:7");
  EXPECT_EQ(first_problem("{\"a\": 1,\n  \"b\" }").substr(0, 3), "2:7");
  EXPECT_EQ(first_problem("[1,\n 2,\n x]").substr(0, 3), "3:2");
}

TEST(ParseJson, ProblemsArePrintable) {
  for (const char* text : {"[\"\x01\"]", "[\x1b[31m]", "[\"a\nb\"]"}) {
    const Parsed parsed(text);
    for (const Problem& problem : parsed.out.problems()) {
      for (const char c : problem.fact) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text;
    }
  }
}

TEST(ParseJson, DepthIsBounded) {
  constexpr std::size_t kMost = Json::kMostDepth;
  EXPECT_TRUE(Parsed(std::string(kMost, '[') + std::string(kMost, ']')).out.ok());
  const Parsed parsed(std::string(kMost + 1, '[') + std::string(kMost + 1, ']'));
  ASSERT_EQ(parsed.out.error_count(), 1u);
  EXPECT_EQ(at(parsed.out.problems()[0].place), "1:65");
  EXPECT_FALSE(Parsed(std::string(2'000'000, '[')).out.ok());
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(Parsed(objects).out.ok());
}

TEST(ParseJson, ManyKeysAreRefusedQuickly) {
  std::string text = "{";
  for (int i = 0; i < 20'000; ++i) text += "\"k" + std::to_string(i) + "\": 1, ";
  EXPECT_FALSE(Parsed(text + "\"z\": 1}").out.ok());
}

TEST(ParseJson, EveryCutOfADocumentIsAnError) {
  const std::string text = R"({"a": [1, 2.5, "x\n", {"b": true}], "c": null})";
  ASSERT_TRUE(Parsed(text).out.ok());
  for (std::size_t n = 0; n < text.size(); ++n)
    EXPECT_FALSE(Parsed(text.substr(0, n)).out.ok()) << text.substr(0, n);
}

TEST(ParseJson, NoByteSequenceBreaksIt) {
  const std::string good =
      "{\"a\": [1, -2.5e3, \"x\\n\\u00e9\", {\"b\": true}],\r\n \"c\": null}\n";
  std::mt19937 luck(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (int k = 0; k < 3; ++k) {
      const std::size_t where = luck() % text.size();
      switch (luck() % 3) {
        case 0:
          text[where] = static_cast<char>(luck());
          break;
        case 1:
          text.erase(where, 1 + luck() % 4);
          break;
        default:
          text.insert(where, 1, "{}[]\",:\\\n1e-"[luck() % 12]);
          break;
      }
      if (text.empty()) text = " ";
    }
    const Parsed parsed(text);
    if (parsed.out.ok()) {
      const std::string again = to_text(parsed.json, 0);
      EXPECT_EQ(compact(again), again);
    }
  }
}

TEST(JsonText, ReadsBackToTheSame) {
  const std::string text =
      R"({"a": [1, -7, 0.1, 1e+300, 123456789012345], "s": "q\"\\\n\t\u0001é", "o": {"x": [], "y": {}}})";
  for (const int indent : {0, 1, 2, 4}) {
    EXPECT_EQ(compact(to_text(Parsed(text).json, indent)), compact(text)) << indent;
  }
}

TEST(JsonText, DoublesUseTheFewestDigitsThatReadBack) {
  for (const double v :
       {0.1, 1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308, 123456.789, 2.0, -0.5}) {
    Json list = Json::array();
    list.push(v);
    EXPECT_EQ(Parsed(to_text(list, 0)).json.items[0].number, v) << to_text(list, 0);
  }
  EXPECT_EQ(to_text(Json(0.1)), "0.1");
  EXPECT_EQ(to_text(Json(std::numeric_limits<double>::quiet_NaN())), "null");
  EXPECT_EQ(to_text(Json(std::numeric_limits<double>::infinity())), "null");
}

TEST(JsonText, ShortGroupsStayOnOneLine) {
  Json json = Json::object();
  json.set("a", 1);
  EXPECT_EQ(to_text(json), "{\"a\": 1}");
  json.set("b", std::string(100, 'x'));
  EXPECT_EQ(to_text(json), "{\n  \"a\": 1,\n  \"b\": \"" + std::string(100, 'x') + "\"\n}");
  EXPECT_EQ(to_text(json, 0).find('\n'), std::string::npos);
}

TEST(JsonText, BadUtf8IsReplacedNotThrown) {
  EXPECT_EQ(to_text(Json("a\xff")), "\"a\xef\xbf\xbd\"");
}

TEST(Json, SetReplacesOrAppends) {
  Json json = Json::object();
  json.set("a", 1);
  json.set("b", 2);
  json.set("a", "x");
  EXPECT_EQ(to_text(json, 0), R"({"a": "x", "b": 2})");
  EXPECT_EQ(json.find("c"), nullptr);
  EXPECT_EQ(Json(3).find("a"), nullptr);
}

TEST(Diagnostics, AreSortedByPlaceAndCounted) {
  Diagnostics out;
  const auto file = out.add_file("f.json");
  out.error({file, 9, 1}, "/b", "second", "cure");
  out.warning({file, 2, 4}, "", "first");
  EXPECT_EQ(out.text(), "f.json:2:4: warning: first\nf.json:9:1: error: /b: second\n    cure\n");
  EXPECT_EQ(out.text(1), "f.json:2:4: warning: first\n... and 1 more problems\n");
  EXPECT_EQ(out.error_count(), 1u);
  EXPECT_THROW(out.throw_if_errors(), InputError);
  Diagnostics warned;
  warned.warning({}, "", "only this");
  EXPECT_TRUE(warned.ok());
  EXPECT_NO_THROW(warned.throw_if_errors());
}

}  // namespace
}  // namespace weft
