// SPDX-License-Identifier: Apache-2.0
#include "sim/core/config.hpp"

#include <regex>
#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

enum class Policy { fair, strict };
constexpr std::array<EnumName<Policy>, 2> enum_names(Policy) {
  return {{{Policy::fair, "fair"}, {Policy::strict, "strict"}}};
}

struct Queue {
  Bytes depth = 64_KiB;
  Policy policy = Policy::fair;
  template <class V>
  void visit(V& v) {
    v("depth", depth, "how much waits at most", positive);
    v("policy", policy, "who goes first");
  }
};

struct Params {
  Bandwidth rate = 400_Gbps;
  Time delay = 500_ns;
  FlopRate peak{1e12};
  Power power{400};
  Frequency clock{1.41e9};
  Rate messages{200e6};
  double gain = 0.25;
  std::int32_t count = 4;
  std::uint8_t lanes = 1;
  bool enabled = true;
  std::string name = "x";
  std::optional<Time> timeout;
  std::vector<Queue> queues;
  std::map<std::string, std::int64_t> weights;
  Queue queue;
  Json extra;
  std::string later;
  Place place;
  template <class V>
  void visit(V& v) {
    v("rate", rate, "raw, per direction", required, positive);
    v("delay", delay, "one way");
    v("peak", peak, "dense");
    v("power", power, "at load");
    v("clock", clock, "boost");
    v("messages", messages, "at most");
    v("gain", gain, "weight of a fresh mark", between(0, 1));
    v("count", count, "how many", positive);
    v("lanes", lanes, "wires");
    v("enabled", enabled, "on or off");
    v("name", name, "for people", not_empty);
    v("timeout", timeout, "when to give up", positive);
    v("queues", queues, "one per class", not_empty);
    v("weights", weights, "by class");
    v("queue", queue, "the default one");
    v("extra", extra, "kept as it is");
    v("later", later, "a promise", NotYet{"chiplets"});
  }
};

struct Holder {
  Queue link;
  template <class V>
  void visit(V&& v) {
    v("link", link, "the cable");
  }  // either form of visit will do
};

struct Read {
  Diagnostics out;
  Params params;
  explicit Read(std::string_view text) {
    const Json json = parse_json(text, "p.json", out);
    read_config(json, {}, params, out);
  }
};

std::string problems(std::string_view text) { return Read(text).out.text(); }

TEST(ReadConfig, AbsentKeysKeepTheirDefaults) {
  const Read read(R"({"rate": "50 GB/s"})");
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  EXPECT_EQ(read.params.rate, 400_Gbps);
  EXPECT_EQ(read.params.delay, 500_ns);
  EXPECT_EQ(read.params.timeout, std::nullopt);
}

TEST(ReadConfig, EveryTypeIsRead) {
  const Read read(
      R"({"rate": "25.78125 Gb/s", "delay": "1.5 us", "peak": "312 TFLOP/s", "power": "700 W",
    "clock": "1980 MHz", "messages": "150 M/s", "gain": 1, "count": 8, "lanes": 16.0, "enabled": false, "name": "n",
    "timeout": "4 ms", "queues": [{"depth": "1 MiB"}, {"policy": "strict"}], "weights": {"a": 1, "b": -2},
    "queue": {"policy": "strict"}, "extra": {"any": ["thing"]}})");
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  const Params& p = read.params;
  EXPECT_EQ(p.rate, Bandwidth{25'781'250'000});
  EXPECT_EQ(p.delay, 1500_ns);
  EXPECT_EQ(p.peak, FlopRate{312e12});
  EXPECT_EQ(p.power, Power{700});
  EXPECT_EQ(p.clock, Frequency{1.98e9});
  EXPECT_EQ(p.messages, Rate{150e6});
  EXPECT_EQ(p.gain, 1);
  EXPECT_EQ(p.count, 8);
  EXPECT_EQ(p.lanes, 16);
  EXPECT_FALSE(p.enabled);
  EXPECT_EQ(p.timeout, 4_ms);
  ASSERT_EQ(p.queues.size(), 2u);
  EXPECT_EQ(p.queues[0].depth, 1_MiB);
  EXPECT_EQ(p.queues[1].depth, 64_KiB);
  EXPECT_EQ(p.queues[1].policy, Policy::strict);
  EXPECT_EQ(p.weights.at("b"), -2);
  EXPECT_EQ(p.queue.policy, Policy::strict);
  EXPECT_EQ(to_text(p.extra, 0), R"({"any": ["thing"]})");
}

TEST(ReadConfig, AStructThatWantsItsPlaceGetsIt) {
  const Read read("\n  {\"rate\": \"1 Gb/s\"}");
  EXPECT_EQ(read.params.place.line, 2u);
  EXPECT_EQ(read.params.place.column, 3u);
}

TEST(ReadConfig, UnknownKeysNameTheNearest) {
  EXPECT_EQ(problems("{\"rate\": \"1 Gb/s\",\n \"dealy\": \"1 ns\"}"),
            "p.json:2:2: error: /dealy: unknown key, did you mean \"delay\"?\n");
  EXPECT_EQ(problems(R"({"rate": "1 Gb/s", "queues": [{}, {"polcy": "fair"}]})"),
            "p.json:1:36: error: /queues/1/polcy: unknown key, did you mean \"policy\"?\n");
  EXPECT_NE(
      problems(R"({"rate": "1 Gb/s", "queue": {"zzz": 1}})").find("known keys: depth, policy"),
      std::string::npos);
}

TEST(ReadConfig, BareNumbersAndWrongUnitsShowTheCure) {
  EXPECT_EQ(problems(R"({"rate": 400})"),
            "p.json:1:10: error: /rate: 400 has no unit, a bandwidth is needed\n"
            "    write a number and a unit, e.g. \"400 Gb/s\" (bits) or \"50 GB/s\" (bytes), per "
            "direction\n");
  EXPECT_NE(problems(R"({"rate": "400 Gbit"})")
                .find("1:10: error: /rate: \"400 Gbit\" is not a bandwidth"),
            std::string::npos);
  EXPECT_NE(problems(R"({"rate": "500 ns"})").find("is not a bandwidth"), std::string::npos);
  EXPECT_NE(problems(R"({"rate": null})").find("null where a bandwidth is needed"),
            std::string::npos);
}

TEST(ReadConfig, WrongTypesAreRefused) {
  for (const char* member : {R"("gain": "0.5")",
                             R"("gain": true)",
                             R"("count": 1.5)",
                             R"("count": "4")",
                             R"("count": 3000000000)",
                             R"("count": 1e300)",
                             R"("lanes": 256)",
                             R"("lanes": -1)",
                             R"("enabled": 1)",
                             R"("enabled": "true")",
                             R"("name": 3)",
                             R"("name": null)",
                             R"("queues": {})",
                             R"("queues": ["x"])",
                             R"("weights": [])",
                             R"("weights": {"a": "1"})",
                             R"("queue": [])",
                             R"("queue": "fair")",
                             R"("timeout": null)",
                             R"("queue": {"policy": "Strict"})",
                             R"("queue": {"policy": 1})",
                             R"("delay": "-1 ns")"}) {
    const Read read("{\"rate\": \"1 Gb/s\", " + std::string(member) + "}");
    EXPECT_EQ(read.out.error_count(), 1u) << member << "\n" << read.out.text();
  }
  EXPECT_EQ(Read("[]").out.error_count(), 1u);
  EXPECT_EQ(Read("3").out.error_count(), 1u);
}

TEST(ReadConfig, ConstraintsHold) {
  for (const char* member :
       {R"("gain": 1.01)", R"("gain": -0.01)", R"("count": 0)", R"("count": -3)", R"("name": "")",
        R"("queues": [])", R"("timeout": "0 ns")", R"("queue": {"depth": "0 B"})",
        R"("rate": "0 b/s")"}) {
    const std::string rate =
        std::string(member).starts_with("\"rate\"") ? "" : "\"rate\": \"1 Gb/s\", ";
    const Read read("{" + rate + member + "}");
    EXPECT_EQ(read.out.error_count(), 1u) << member << "\n" << read.out.text();
  }
}

TEST(ReadConfig, AMissingRequiredKeyIsReportedAtItsObject) {
  EXPECT_EQ(problems("\n {}"),
            "p.json:2:2: error: the key \"rate\" is missing\n    raw, per direction\n");
}

TEST(ReadConfig, ChoicesAreListed) {
  EXPECT_EQ(
      problems(R"({"rate": "1 Gb/s", "queue": {"policy": "strct"}})"),
      "p.json:1:40: error: /queue/policy: \"strct\" is not known here, did you mean \"strict\"?\n"
      "    one of fair, strict\n");
}

TEST(ReadConfig, AFeatureToComeIsRefusedByName) {
  EXPECT_NE(problems(R"({"rate": "1 Gb/s", "later": "x"})")
                .find("1:20: error: /later: not yet: chiplets"),
            std::string::npos);
}

TEST(ReadConfig, EveryProblemIsReportedInOnePass) {
  const Read read(
      R"({"dealy": "1 ns", "gain": 7, "count": "x", "queues": [{"depth": 5}, {"polcy": 1, "depth": "0 B"}],
    "queue": {"policy": "none"}})");
  EXPECT_EQ(read.out.error_count(), 8u) << read.out.text();  // and the missing rate
}

TEST(ReadConfig, KeysWithSlashesAreEscapedInPointers) {
  EXPECT_NE(problems(R"({"rate": "1 Gb/s", "a/b~c": 1})").find("/a~1b~0c: unknown key"),
            std::string::npos);
}

TEST(WriteConfig, ReadsBackToTheSame) {
  const Read read(
      R"({"rate": "25.78125 Gb/s", "delay": "1.2345 us", "peak": "312.7 TFLOP/s", "power": "712.5 W",
    "clock": "1.98 GHz", "messages": "0.1 M/s", "gain": 0.1, "timeout": "7 ps", "queues": [{"policy": "strict"}],
    "weights": {"a": 9007199254740993}, "extra": [1, {"b": null}]})");
  ASSERT_TRUE(read.out.ok()) << read.out.text();
  const std::string once = to_text(write_config(read.params));
  const Read again(once);
  ASSERT_TRUE(again.out.ok()) << again.out.text() << once;
  EXPECT_EQ(to_text(write_config(again.params)), once);
  EXPECT_EQ(again.params.rate, read.params.rate);
  EXPECT_EQ(again.params.delay, read.params.delay);
  EXPECT_EQ(again.params.peak, read.params.peak);
  EXPECT_EQ(again.params.power, read.params.power);
  EXPECT_EQ(again.params.clock, read.params.clock);
  EXPECT_EQ(again.params.messages, read.params.messages);
  EXPECT_EQ(again.params.timeout, 7_ps);
  EXPECT_EQ(again.params.weights.at("a"), 9007199254740993);
}

TEST(WriteConfig, AbsentOptionsAndFutureFeaturesStayOut) {
  const Json json = write_config(Params{});
  EXPECT_EQ(json.find("timeout"), nullptr);
  EXPECT_EQ(json.find("later"), nullptr);
  EXPECT_NE(json.find("delay"), nullptr);
}

TEST(Schema, FollowsTheVisitor) {
  const Json schema = schema_of<Params>();
  EXPECT_EQ(to_text(*schema.find("required"), 0), R"(["rate"])");
  EXPECT_EQ(schema.find("additionalProperties")->boolean, false);
  const Json& properties = *schema.find("properties");
  EXPECT_EQ(
      to_text(*properties.find("gain"), 0),
      R"({"type": "number", "minimum": 0, "maximum": 1, "description": "weight of a fresh mark"})");
  EXPECT_EQ(to_text(*properties.find("count"), 0),
            R"({"type": "integer", "exclusiveMinimum": 0, "description": "how many"})");
  EXPECT_EQ(properties.find("enabled")->find("type")->text, "boolean");
  EXPECT_EQ(properties.find("queues")->find("minItems")->integer, 1);
  const Json& item = *properties.find("queues")->find("items");
  EXPECT_EQ(to_text(*item.find("properties")->find("policy")->find("enum"), 0),
            R"(["fair", "strict"])");
  EXPECT_EQ(properties.find("later"), nullptr);
  EXPECT_EQ(properties.find("timeout")->find("type")->text, "string");
}

// The schema and the reader must accept the same texts.
template <class T>
void expect_pattern_agrees(std::initializer_list<const char*> texts,
                           std::optional<T> (*parse)(std::string_view)) {
  const std::regex pattern(
      std::string(config_detail::scalar_of(static_cast<const T*>(nullptr)).pattern));
  for (const char* text : texts) {
    EXPECT_EQ(std::regex_search(text, pattern), parse(text).has_value()) << text;
  }
}

TEST(Schema, PatternsAgreeWithTheParsers) {
  expect_pattern_agrees<Time>({"1 ps", "1 ns", "1 us", "1 ms", "1 s", "1 min", "1 h", "1ns",
                               "1.5e-3 s", "1 m", "1", "-1 s", "1  s", "1. s", "1 sec"},
                              parse_time);
  expect_pattern_agrees<Bytes>({"1 B", "1 KB", "1 MB", "1 GB", "1 TB", "1 PB", "1 KiB", "1 MiB",
                                "1 GiB", "1 TiB", "1 PiB", "1 iB", "1 b", "1 Kb", "1 kB"},
                               parse_bytes);
  expect_pattern_agrees<Bandwidth>(
      {"1 b/s", "1 Kb/s", "1 Mb/s", "1 Gb/s", "1 Tb/s", "1 Kib/s", "1 Gib/s", "1 Tib/s", "1 B/s",
       "1 KB/s", "1 MB/s", "1 GB/s", "1 TB/s", "1 KiB/s", "1 TiB/s", "1 ib/s", "1 iB/s", "1 Pb/s",
       "1 Gb"},
      parse_bandwidth);
  expect_pattern_agrees<FlopRate>({"1 FLOP/s", "1 KFLOP/s", "1 MFLOP/s", "1 GFLOP/s", "1 TFLOP/s",
                                   "1 PFLOP/s", "1 EFLOP/s", "1 ZFLOP/s", "1 FLOPS"},
                                  parse_flop_rate);
  expect_pattern_agrees<Power>({"1 W", "1 kW", "1 MW", "1 KW", "1 mW"}, parse_power);
  expect_pattern_agrees<Frequency>({"1 Hz", "1 kHz", "1 MHz", "1 GHz", "1 THz", "1 KHz"},
                                   parse_frequency);
  expect_pattern_agrees<Rate>({"1 /s", "1 K/s", "1 M/s", "1 G/s", "1 T/s", "1/s", "1 k/s"},
                              parse_rate);
}

TEST(Schema, AComponentFieldAlsoTakesANameOrAUse) {
  const Json schema = schema_of<Holder>();
  const Json& choices = *schema.find("properties")->find("link")->find("anyOf");
  ASSERT_EQ(choices.items.size(), 3u);
  EXPECT_EQ(choices.items[0].find("type")->text, "string");
  EXPECT_NE(choices.items[1].find("properties")->find("use"), nullptr);
}

}  // namespace
}  // namespace weft
