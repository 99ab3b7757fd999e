// SPDX-License-Identifier: Apache-2.0
// trace.json.gz against what trace viewers want: Chrome's trace events by key and type, slices of a track in a row, arrows with both
// ends, and no more slices than asked for.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <zlib.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using namespace cli_test;

struct Slice {
  std::int64_t start = 0, end = 0;  // picoseconds
};

std::string unpacked(const std::string& path) {
  std::string text;
  const gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  if (file == nullptr) return text;
  char part[1 << 16];
  for (int got = gzread(file, part, sizeof part); got != 0; got = gzread(file, part, sizeof part)) {
    EXPECT_GT(got, 0) << path;
    if (got < 0) break;
    text.append(part, static_cast<std::size_t>(got));
  }
  EXPECT_EQ(gzclose(file), Z_OK);
  return text;
}

std::int64_t picoseconds(const Json& event, const char* key) {
  const Json* micros = event.find(key);
  EXPECT_TRUE(micros != nullptr && micros->is_number()) << key << to_text(event, 0);
  return micros == nullptr ? 0 : std::llround(micros->number * 1e6);
}

// One run's trace, with everything checked that holds for any.
class Trace {
 public:
  Trace(const std::string& scenario, std::vector<std::string> flags) {
    const Folder folder;
    flags.insert(flags.begin(),
                 {"run", scenario, "--quick", "--json", "--out", folder.path("out")});
    const Outcome outcome = weft_cli(flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    end_ = std::llround(number_at(document(outcome), {"time_s"}) * 1e12);
    bytes_ = std::filesystem::file_size(folder.path("out/trace.json.gz"));
    Diagnostics out;
    document_ = parse_json(unpacked(folder.path("out/trace.json.gz")), "trace.json", out);
    EXPECT_TRUE(out.ok()) << out.text();
    read();
  }

  std::size_t slices() const { return slices_; }
  std::size_t tracks() const { return by_track_.size(); }
  std::size_t arrows() const { return starts_.size(); }
  std::size_t counters() const { return counters_; }
  std::uintmax_t bytes() const { return bytes_; }
  std::int64_t left_out() const { return document_.find("otherData")->find("left_out")->integer; }

 private:
  using Track = std::pair<std::int64_t, std::int64_t>;

  void read() {
    ASSERT_TRUE(document_.is_object());
    const Json* events = document_.find("traceEvents");
    ASSERT_TRUE(events != nullptr && events->is_array());
    const Json* unit = document_.find("displayTimeUnit");
    ASSERT_TRUE(unit != nullptr && (unit->text == "ns" || unit->text == "ms"));
    for (const Json& event : events->items) read(event);
    for (auto& [track, slices] : by_track_) {
      EXPECT_TRUE(names_.contains(track)) << "a track without a name";
      std::ranges::sort(slices, {}, &Slice::start);
      for (std::size_t i = 1; i < slices.size(); ++i)
        ASSERT_LE(slices[i - 1].end, slices[i].start)
            << "track " << track.first << "/" << track.second << " at " << slices[i].start;
    }
    EXPECT_EQ(starts_, ends_) << "arrows have both ends";
  }

  void read(const Json& event) {
    ASSERT_TRUE(event.is_object());
    const Json *phase = event.find("ph"), *name = event.find("name"), *process = event.find("pid");
    ASSERT_TRUE(phase != nullptr && name != nullptr && process != nullptr) << to_text(event, 0);
    ASSERT_TRUE(name->is_string() && process->kind == Json::Kind::integer) << to_text(event, 0);
    const Json* thread = event.find("tid");
    const Track track{process->integer, thread != nullptr ? thread->integer : -1};
    if (phase->text == "M") {
      ASSERT_TRUE(name->text == "process_name" || name->text == "thread_name") << name->text;
      ASSERT_TRUE(event.find("args")->find("name")->is_string());
      if (thread != nullptr) names_.insert(track);
    } else if (phase->text == "X") {
      ASSERT_NE(thread, nullptr);
      const std::int64_t start = picoseconds(event, "ts"), length = picoseconds(event, "dur");
      EXPECT_GE(start, 0);
      EXPECT_GT(length, 0);
      EXPECT_LE(start + length, end_ + 1);  // seconds of a report are rounded
      by_track_[track].push_back({start, start + length});
      ++slices_;
    } else if (phase->text == "s" || phase->text == "f") {
      ASSERT_TRUE(event.find("id") != nullptr && thread != nullptr) << to_text(event, 0);
      EXPECT_GE(picoseconds(event, "ts"), 0);
      (phase->text == "s" ? starts_ : ends_).insert(event.find("id")->integer);
    } else {
      ASSERT_EQ(phase->text, "C") << "a phase that is not written";
      EXPECT_GE(picoseconds(event, "ts"), 0);
      const Json* values = event.find("args");
      ASSERT_TRUE(values != nullptr && values->is_object() && !values->members.empty());
      for (const JsonMember& value : values->members) EXPECT_TRUE(value.value.is_number());
      ++counters_;
    }
  }

  Json document_;
  std::int64_t end_ = 0;
  std::uintmax_t bytes_ = 0;
  std::size_t slices_ = 0, counters_ = 0;
  std::map<Track, std::vector<Slice>> by_track_;
  std::set<Track> names_;
  std::multiset<std::int64_t> starts_, ends_;
};

std::string in_tree(const std::string& path) { return std::string(WEFT_SOURCE_DIR) + "/" + path; }

TEST(TraceFile, OfATrainingStep) {
  const Trace trace(in_tree("scenarios/30-training-step.json"), {});
  EXPECT_GT(trace.slices(), 1000U);
  EXPECT_GT(trace.tracks(),
            8U);  // four stages, each with a lane to compute and lanes to communicate
  EXPECT_GT(trace.arrows(), 100U);
  EXPECT_GT(trace.counters(), 100U);
}

// Overlaps of all kinds: chunks, experts, a fault, several jobs, packets.
TEST(TraceFile, OfEveryKindOfRun) {
  for (const char* name :
       {"30-training-step", "31-slow-gpu", "34-fsdp", "37-expert-parallel", "38-context-parallel",
        "11-noisy-neighbour", "12-spine-link-down", "07-hierarchical-all-to-all",
        "20-ecn-before-pfc", "18-nccl-two-nodes"}) {
    SCOPED_TRACE(name);
    const Trace trace(in_tree(std::string("scenarios/") + name + ".json"),
                      {"--trace-slices", "20000"});
    EXPECT_GT(trace.slices(), 0U);
    EXPECT_LE(trace.slices(), 20000U);
  }
}

TEST(TraceFile, IsAsLargeAsAskedFor) {
  const std::string step = in_tree("scenarios/30-training-step.json");
  const Trace whole(step, {});
  std::uintmax_t bytes = whole.bytes();
  for (const std::size_t most : {std::size_t{1000}, std::size_t{50}, std::size_t{1}}) {
    const Trace cut(step, {"--trace-slices", std::to_string(most)});
    EXPECT_LE(cut.slices(), most);
    EXPECT_GT(cut.slices(), most / 2);
    EXPECT_GT(cut.left_out(), 0);
    EXPECT_LT(cut.bytes(), bytes);
    bytes = cut.bytes();
  }
  EXPECT_EQ(weft_cli({"run", step, "--trace-slices", "0"}).code, 2);
}

}  // namespace
}  // namespace weft
