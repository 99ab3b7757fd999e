// SPDX-License-Identifier: Apache-2.0
// The page of a calibration: everything that a person needs to judge it, and nothing from elsewhere.
#include <gmock/gmock.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::Folder;
using cli_test::import_log;
using cli_test::weft_cli;
using ::testing::HasSubstr;
using ::testing::Not;

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t out = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++out;
  return out;
}

const std::vector<std::string> kBox{import_log("rtx4090-4gpu-p2p-driver-allreduce.log"), "--fabric",
                                    "pcie-rtx4090x8", "--set", "/peer_access/pcie=all"};

std::vector<std::string> with(const char* verb, const std::vector<std::string>& more) {
  std::vector<std::string> out{"calibrate", verb};
  out.insert(out.end(), kBox.begin(), kBox.end());
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(CalibrationPage, ShowsCurvesErrorsParametersAndWhatIsNotKnown) {
  const Folder folder;
  const std::string path = folder.path("fit.html"), patch = folder.path("node.json");
  const auto outcome = weft_cli(with("fit", {"-o", patch, "--page", path}));
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(path));
  const std::string page = read(path);
  EXPECT_EQ(count(page, "<svg"), 5U);  // time, bandwidth, errors, all rows, parameters
  EXPECT_EQ(count(page, "</svg>"), 5U);
  for (const char* said : {"node, as measured", "21 of 21", "all_reduce of 4", "us against bytes",
                           "GB/s against bytes", "ll_step of kernels of rtx-4090",
                           "What these measurements do not tell", "nothing measured depends on",
                           "rows hardly depend on it", "95 % interval"})
    EXPECT_THAT(page, HasSubstr(said));
  // 21 dots each of time and bandwidth, of errors, of all rows; legends and determined parameters have some, too.
  EXPECT_GE(count(page, "<circle"), 4U * 21);
  for (const char* foreign : {"<script", "src=", "href=", "@import", "nan", "inf\""})
    EXPECT_THAT(page, Not(HasSubstr(foreign)));
  EXPECT_EQ(count(page, "http"), count(page, "http://www.w3.org/2000/svg"));
}

TEST(CalibrationPage, OfACheckShowsWhatWasLeftOut) {
  const Folder folder;
  const std::string path = folder.path("check.html");
  ASSERT_EQ(weft_cli(with("check", {"--page", path})).code, kOk);
  const std::string page = read(path);
  for (const char* said :
       {"What was left out", "rows predicted without them", "in their 90 % interval", "18 rows"})
    EXPECT_THAT(page, HasSubstr(said));
}

TEST(CalibrationPage, TextOfAFileIsText) {
  const Folder folder;
  const std::string path = folder.path("fit.html");
  const std::string file = folder.file(
      "m.json",
      R"({"weft": {"schema": 1}, "kind": "measurement", "name": "<script>", "tool": "<script>",
 "copies": [{"from": "gpu0", "to": "gpu1", "bytes": "256 MiB", "time": "690 us", "pattern": "<script>"},
  {"from": "gpu0", "to": "gpu1", "bytes": "1 MiB", "time": "6 us", "pattern": "<script>"},
  {"from": "gpu0", "to": "gpu1", "bytes": "64 MiB", "time": "180 us", "pattern": "<script>"}],
 "sources": {"": "measured: by hand"}})");
  const auto outcome = weft_cli({"calibrate", "fit", file, "--fabric", "hgx-h100", "--page", path});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(read(path), Not(HasSubstr("<script")));
  EXPECT_THAT(read(path), HasSubstr("&lt;script&gt;"));
}

TEST(CalibrationPage, IsNeitherThePatchNorWhatIsRead) {
  const Folder folder;
  const std::string path = folder.path("one.json");
  EXPECT_EQ(weft_cli(with("fit", {"-o", path, "--page", path})).code, kBadInput);
  EXPECT_FALSE(std::filesystem::exists(path));
  const std::string log = folder.file("box.log", read(kBox.front()));
  EXPECT_EQ(weft_cli({"calibrate", "check", log, "--fabric", "pcie-rtx4090x8", "--page", log}).code,
            kBadInput);
  EXPECT_EQ(read(log), read(kBox.front()));
}

}  // namespace
}  // namespace weft
