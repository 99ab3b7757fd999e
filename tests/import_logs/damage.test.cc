// SPDX-License-Identifier: Apache-2.0
// Damaged captures: whatever happens to one, what is read is a part of what the whole one says, or an error. Nothing is
// half-read.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "tests/import_logs/import_log_test.hpp"

namespace weft::import_test {
namespace {

namespace fs = std::filesystem;

// Everything that was measured, one text each, without what only describes it.
std::set<std::string> values_of(const Measurement& measurement) {
  std::set<std::string> out;
  const auto add = [&](const std::string& group, Json value) {
    std::erase_if(value.members, [](const JsonMember& m) { return m.key == "line"; });
    out.insert(group + to_text(value, 0));
  };
  for (const MeasuredRun& run : measurement.runs) {
    for (const CollectiveSample& sample : run.samples) add("", write_config(sample));
  }
  for (const MeasuredMatrix& matrix : measurement.matrices) {
    const std::string group =
        fmt::format("{} {} {} ", matrix.name, static_cast<int>(matrix.traffic), matrix.halved);
    for (const MeasuredPair& pair : matrix.pairs) add(group, write_config(pair));
  }
  for (const MessageTest& test : measurement.messages) {
    for (const MessageSample& sample : test.samples) add("", write_config(sample));
  }
  for (ExpertSample sample : measurement.experts) {
    sample.nodes = 0;  // known or not, but never another: see NodesOfExperts
    add("", write_config(sample));
  }
  return out;
}

struct Capture {
  std::string name, kind, text;
};
void PrintTo(const Capture& capture, std::ostream* out) { *out << capture.name; }

// So far apart that some 120 places of a text are tried, and not the same ones in every line.
std::size_t stride(const std::string& text) { return text.size() / 120 + 1; }

std::vector<Capture> captures() {
  std::vector<Capture> out;
  for (const auto& entry :
       fs::directory_iterator(std::string(WEFT_SOURCE_DIR) + "/tests/import_logs/data")) {
    const std::string name = entry.path().filename().string();
    std::string kind;
    if (name.ends_with(".log")) kind = "nccl-tests";
    if (name.starts_with("nvbandwidth")) kind = "nvbandwidth";
    if (name.starts_with("p2p")) kind = "p2p";
    if (name.starts_with("ib_")) kind = "perftest";
    if (name.starts_with("moe")) kind = "moe-log";
    if (!kind.empty()) out.push_back({name, kind, data(name)});
  }
  std::ranges::sort(out, {}, &Capture::name);
  return out;
}

class Damage : public ::testing::TestWithParam<Capture> {
 protected:
  void SetUp() override {
    options_.force = true;
    whole_ = values_of(import_text(GetParam().kind, GetParam().text, options_).measurement);
  }
  // How many values are left; fails when one of them is not in the whole capture.
  std::size_t expect_part(const std::string& text, const std::string& how) {
    for (const Importer* importer : importers()) {
      if (importer->name != GetParam().kind) continue;
      Diagnostics out;
      const Imported imported = importer->read(text, "damaged", options_, out);
      if (!out.ok()) return 0;
      Diagnostics problems;
      const auto values = values_of(read_measurement(imported.measurement, problems));
      EXPECT_TRUE(problems.ok()) << how << "\n" << problems.text();
      for (const std::string& value : values) {
        if (!whole_.contains(value)) {
          ADD_FAILURE() << how << " made\n  " << value;
          break;
        }
      }
      return values.size();
    }
    ADD_FAILURE() << "no importer";
    return 0;
  }

  ImportOptions options_;
  std::set<std::string> whole_;
};

TEST_P(Damage, CutAtEveryByte) {
  const std::string& text = GetParam().text;
  std::size_t most = 0;
  for (std::size_t size = 0; size < text.size(); ++size)
    most = std::max(most, expect_part(text.substr(0, size), fmt::format("the first {} B", size)));
  // Not vacuous: most of what there is survives a cut near the end. A report in JSON is whole or nothing.
  if (!whole_.empty() && !text.starts_with("{")) {
    EXPECT_GT(2 * most, whole_.size());
  }
}

TEST_P(Damage, BeginningLostAtEveryByte) {
  const std::string& text = GetParam().text;
  for (std::size_t first = 0; first < text.size(); ++first)
    expect_part(text.substr(first), fmt::format("from byte {} on", first));
}

TEST_P(Damage, BlanksLost) {
  const std::string& text = GetParam().text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ' ' || (i > 0 && text[i - 1] == ' ')) continue;
    const std::size_t end = std::min(text.find_first_not_of(' ', i), text.size());
    expect_part(text.substr(0, i) + text.substr(end), fmt::format("blanks lost at byte {}", i));
  }
}

TEST_P(Damage, LineBreaksLost) {
  const std::string& text = GetParam().text;
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
    expect_part(text.substr(0, at) + text.substr(at + 1), fmt::format("line break at byte {}", at));
}

TEST_P(Damage, LinesLost) {
  const std::string& text = GetParam().text;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find('\n', first), text.size() - 1) + 1;
    // A line that heads others decides what they are: without it they are not used, or as they were.
    expect_part(text.substr(0, first) + text.substr(end), fmt::format("line at byte {}", first));
    first = end;
  }
}

TEST_P(Damage, EscapeCodesAnywhere) {
  const std::string& text = GetParam().text;
  for (const std::string code :
       {"\x1b[31m", "\x1b[0K", "\x1b[", "\x1b", "\x1b]0;title\x07", "\b"}) {
    for (std::size_t at = 0; at < text.size(); at += stride(text))
      expect_part(text.substr(0, at) + code + text.substr(at),
                  fmt::format("{} B of a code at byte {}", code.size(), at));
  }
}

TEST_P(Damage, WrappedAtAnyWidth) {
  const std::string& text = GetParam().text;
  for (std::size_t width = 8; width < 140; ++width) {
    std::string out;
    std::size_t column = 0;
    for (const char c : text) {
      if (column == width && c != '\n') {
        out += '\n';
        column = 0;
      }
      out += c;
      column = c == '\n' ? 0 : column + 1;
    }
    expect_part(out, fmt::format("wrapped at {}", width));
  }
}

TEST_P(Damage, LinesOfOthersInTheMiddle) {
  const std::string& text = GetParam().text;
  for (const std::string noise : {"\nnode-a:81:81 [0] NCCL INFO Launch mode Parallel\n",
                                  "\n[node-a:02943] 15 more processes\n", "\n12 34\n"}) {
    for (std::size_t at = 0; at < text.size(); at += stride(text))
      expect_part(text.substr(0, at) + noise + text.substr(at),
                  fmt::format("noise at byte {}", at));
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, Damage, ::testing::ValuesIn(captures()),
                         [](const auto& capture) {
                           std::string name = capture.param.name;
                           std::ranges::replace_if(
                               name,
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name;
                         });

TEST(DamagedExperts, NumberOfNodesIsRightOrUnknown) {
  const std::string text = data("moe-dispatch-2node-vs-4node.txt");
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged.erase(i, 1);
    Diagnostics out, problems;
    for (const Importer* importer : importers()) {
      if (importer->name != "moe-log") continue;
      const Imported imported = importer->read(damaged, "damaged", {}, out);
      if (!out.ok()) continue;
      for (const ExpertSample& sample : read_measurement(imported.measurement, problems).experts) {
        if (!sample.network) continue;
        const int nodes = sample.network->gbytes_per_s() > 20 ? 2 : 4;
        EXPECT_TRUE(sample.nodes == nodes || sample.nodes == 0 ||
                    sample.network->gbytes_per_s() < 10)
            << i << ": " << sample.nodes;
      }
    }
  }
}

}  // namespace
}  // namespace weft::import_test
