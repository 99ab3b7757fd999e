// SPDX-License-Identifier: Apache-2.0
// A capture that was hurt on its way is read with a warning or refused with its line; it never means another machine.
#include <algorithm>
#include <random>

#include "sim/core/text.hpp"
#include "tests/import_machines/import_machine_test.hpp"

namespace weft::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using Kind = ImportNote::Kind;

// The rows of a capture, without legend.
std::string matrix_of(const std::string& name) {
  const std::string text = capture(name);
  return text.substr(0, text.find("Legend"));
}
// A capture with one text in it replaced, which must be there.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

class Mesh : public testing::Test {
 protected:
  std::string text_ = matrix_of("v100-8gpu-hybridmesh-1nic.txt");
  std::string matrix_ = to_text(at(import_text("topo-m", text_).facts(), "/distances"));

  // Refused with a line, or the same matrix.
  void expect_no_other_meaning(const std::string& text, const std::string& what,
                               bool may_lack_devices = false) {
    const Reading reading = import_text("topo-m", text);
    if (!reading.ok()) {
      EXPECT_THAT(reading.diagnostics.text(), HasSubstr("capture:")) << what;
      return;
    }
    const std::string matrix = to_text(at(reading.facts(), "/distances"));
    if (may_lack_devices && count_at(reading.facts(), "/counts/nics") == 0) return;
    EXPECT_EQ(matrix, matrix_) << what << "\n" << text;
  }
};

TEST_F(Mesh, CutAnywhereItIsRefusedOrTheSame) {
  for (std::size_t length = 0; length < text_.size(); ++length)
    expect_no_other_meaning(text_.substr(0, length), "cut at " + std::to_string(length));
}

TEST_F(Mesh, WithoutOneCharacterItIsRefusedOrTheSame) {
  const std::size_t rows = text_.find('\n');
  for (std::size_t at = rows + 1; at < text_.size(); ++at) {
    std::string text = text_;
    text.erase(at, 1);
    expect_no_other_meaning(text, "without character " + std::to_string(at));
  }
}

TEST_F(Mesh, WithoutOneCellItIsRefusedOrTheSame) {
  std::vector<std::pair<std::size_t, std::size_t>> words;
  for (std::size_t at = text_.find('\n'); at < text_.size();) {
    const std::size_t first = text_.find_first_not_of(" \n", at);
    if (first == std::string::npos) break;
    const std::size_t last = std::min(text_.find_first_of(" \n", first), text_.size());
    words.emplace_back(first, last - first);
    at = last;
  }
  ASSERT_GT(words.size(), 80U);
  for (const auto& [first, length] : words) {
    std::string text = text_;
    text.erase(first, length);
    expect_no_other_meaning(text, "without the word at " + std::to_string(first));
  }
}

TEST_F(Mesh, WithoutOneLineItIsRefusedOrTheSame) {
  for (std::size_t first = 0; first < text_.size();) {
    const std::size_t next = text_.find('\n', first) + 1;
    std::string text = text_;
    text.erase(first, next - first);
    expect_no_other_meaning(text, "without the line at " + std::to_string(first));
    first = next;
  }
}

TEST_F(Mesh, GluedCellsAreTakenApartWithAWarning) {
  const Reading reading =
      import_text("topo-m", with(text_, "SYS     SYS     SYS     NODE", "SYSSYS     SYS     NODE"));
  ASSERT_TRUE(reading.ok()) << reading.diagnostics.text();
  EXPECT_EQ(to_text(at(reading.facts(), "/distances")), matrix_);
  EXPECT_THAT(notes(reading, Kind::warning), Contains(HasSubstr("\"SYSSYS\" is read as 2 cells")));
}

TEST_F(Mesh, ADamagedCellIsTakenFromTheOtherRow) {
  const Reading reading =
      import_text("topo-m", with(text_, "NV2     NV2     SYS", "NV?     NV2     SYS"));
  ASSERT_TRUE(reading.ok()) << reading.diagnostics.text();
  EXPECT_EQ(to_text(at(reading.facts(), "/distances")), matrix_);
  EXPECT_THAT(notes(reading, Kind::warning), Contains(HasSubstr("\"NV?\" is no code")));
}

TEST_F(Mesh, CellsThatDisagreeAreRefusedWithBothLines) {
  const Reading reading =
      import_text("topo-m", with(text_, "NV2     NV2     SYS", "NV1     NV2     SYS"));
  ASSERT_FALSE(reading.ok());
  EXPECT_THAT(
      reading.diagnostics.text(),
      AllOf(HasSubstr("capture:5:"), HasSubstr("GPU0 and GPU3 are NV2 here and NV1 in line 2")));
}

TEST_F(Mesh, AShiftedRowIsRefused) {
  const Reading reading = import_text(
      "topo-m", with(text_, "GPU3    NV2     NV1     NV2      X", "GPU3    NV2     NV2      X"));
  ASSERT_FALSE(reading.ok());
  EXPECT_THAT(reading.diagnostics.text(),
              AllOf(HasSubstr("capture:5:"), HasSubstr("GPU3 has its X in the wrong column")));
}

TEST_F(Mesh, RowsThatATerminalWrappedAreJoined) {
  std::string wrapped;
  std::istringstream lines(text_);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 48) line.insert(48, "\n");
    wrapped += line + "\n";
  }
  const Reading reading = import_text("topo-m", wrapped);
  ASSERT_TRUE(reading.ok()) << reading.diagnostics.text();
  EXPECT_EQ(to_text(at(reading.facts(), "/distances")), matrix_);
  EXPECT_EQ(text_at(reading.facts(), "/gpus/7/cpus"), "12-23,36-47");
  EXPECT_THAT(notes(reading, Kind::warning), Contains(HasSubstr("the capture was wrapped")));
}

TEST_F(Mesh, TagsOfALauncherAndPromptsAreTakenOff) {
  std::string tagged = "$ nvidia-smi topo -m\n";
  std::istringstream lines(text_);
  for (std::string line; std::getline(lines, line);) tagged += "[1,0]<stdout>:" + line + "\r\n";
  const Reading reading = import_text("topo-m", tagged + "$ exit\n");
  ASSERT_TRUE(reading.ok()) << reading.diagnostics.text();
  EXPECT_EQ(to_text(at(reading.facts(), "/distances")), matrix_);
  EXPECT_THAT(notes(reading, Kind::ignored),
              Contains(HasSubstr("2 lines that are no part of the matrix")));
}

TEST_F(Mesh, TwoMatricesAreRefused) {
  const Reading reading = import_text("topo-m", text_ + text_);
  ASSERT_FALSE(reading.ok());
  EXPECT_THAT(reading.diagnostics.text(), HasSubstr("a second matrix begins here"));
}

TEST(TopoM, TextOfAnotherKindIsRefused) {
  for (const char* text :
       {"", "\n\n", "hello\n", "GPU 0: Tesla V100 (UUID: GPU-0)\n", "\x1b[4m", "NIC0 X SYS\n"}) {
    const Reading reading = import_text("topo-m", text);
    EXPECT_FALSE(reading.ok()) << text;
    EXPECT_THAT(reading.diagnostics.text(), HasSubstr("no header line that begins with GPU"));
  }
}

TEST(TopoM, SpacesAndTabsReadTheSame) {
  const std::string tabs = capture("hgx-h100-10nic-tabs.txt");
  std::string spaces;
  for (const char c : tabs) spaces += c == '\t' ? std::string(2, ' ') : std::string(1, c);
  const Reading a = import_text("topo-m", tabs), b = import_text("topo-m", spaces);
  ASSERT_TRUE(b.ok()) << b.diagnostics.text();
  EXPECT_EQ(to_text(a.facts()), to_text(b.facts()));
}

TEST(TopoM, AMissingAffinityCellIsPlacedByItsColumn) {
  const Reading reading =
      import_text("topo-m",
                  "        GPU0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
                  "GPU0     X                      3               N/A\n");
  ASSERT_TRUE(reading.ok()) << reading.diagnostics.text();
  EXPECT_EQ(at(reading.facts(), "/gpus/0/cpus").kind, Json::Kind::null);
  EXPECT_EQ(text_at(reading.facts(), "/gpus/0/numa"), "3");
}

TEST(TopoM, APartWithFewerLinksThanNvidiaSmiShowsIsReportedByTheServerCheck) {
  const Reading reading = import_file("dgx-a100-10nic-8numa.txt", {{"gpu", "v100-sxm2"}});
  Files files({{"server/imported", to_text(reading.imported.server)}});
  Diagnostics problems;
  Loader loader(files, problems);
  build_fabric(read_fabric(loader.load_component("server", "imported"), {}, problems),
               link_classes(), problems);
  EXPECT_TRUE(problems.ok());
  EXPECT_THAT(problems.text(), HasSubstr("is joined by 12 NVLinks, its model v100-sxm2 has 6"));
}

TEST(TopoM, AGpuWithoutNvlinkIsNotBelieved) {
  const Reading reading = import_file("dgx-a100-10nic-8numa.txt", {{"gpu", "l40s"}});
  EXPECT_FALSE(reading.imported.server.is_object());
  EXPECT_THAT(reading.imported.open_questions,
              Contains(HasSubstr("l40s has no NVLink, the capture shows 12 a GPU")));
}

TEST(TopoM, APcieAnswerThatIsNoPcieLinkIsRefused) {
  const Reading reading = import_file("dgx-a100-10nic-8numa.txt", {{"pcie", "nvlink3"}});
  EXPECT_FALSE(reading.imported.server.is_object());
  EXPECT_THAT(reading.imported.open_questions, Contains(HasSubstr("\"nvlink3\" is no PCIe link")));
}

TEST(NcclXml, AnAnswerAgainstTheCaptureIsSaid) {
  const Reading reading =
      import_file("h200-baremetal-one-numa-node.xml", {{"gpu", "h100-sxm5"}, {"nvlink", "none"}});
  EXPECT_THAT(notes(reading, Kind::warning),
              Contains(HasSubstr("PCI device id says h200-sxm5, --gpu says h100-sxm5")));
  EXPECT_THAT(notes(reading, Kind::ignored), Contains(HasSubstr("--nvlink")));
}

TEST(TopoM, AnswersSettleWhatTheMatrixLeavesOpen) {
  const Reading reading =
      import_file("b300-8gpu-8nic-dualport-bonds.txt",
                  {{"gpu", "b300-sxm6"}, {"nic", "cx8-roce-800g"}, {"pcie", "pcie6-x16"}});
  const Fabric fabric = fabric_of(reading);
  EXPECT_DOUBLE_EQ(nvlink_raw_gbs(fabric, "gpu0"), 900);
  EXPECT_EQ(fabric.types().front().nic_specs.front().name, "cx8-roce-800g");
  EXPECT_EQ(fabric.types().front().nic_specs.front().ports, 2);
  for (const std::string& line : notes(reading, Kind::unknown))
    EXPECT_EQ(line.find("--"), std::string::npos) << line;
}

}  // namespace
}  // namespace weft::test
