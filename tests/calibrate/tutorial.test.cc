// SPDX-License-Identifier: Apache-2.0
// The steps of docs/calibration.md on the synthetic backend, and that the page shows what is true.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "calibrate/measurement_merge.hpp"
#include "calibrate/probe/session.hpp"
#include "calibrate/probe/synthetic.hpp"
#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::document;
using cli_test::Folder;
using cli_test::number_at;
using cli_test::weft_cli;
using ::testing::HasSubstr;

// What `weft-probe --backend synthetic --quick` writes.
std::string probe(const std::string& fabric, std::uint64_t seed) {
  Diagnostics problems;
  SyntheticBackend backend(load_fabric(fabric, {}, problems).document, {.seed = seed}, problems);
  Measurement head = new_measurement("box", "weft-probe", "a made-up machine");
  const ProbeMachine machine = backend.machine();
  head.hosts = machine.hosts;
  MeasurementUnion all;
  all.add(head);
  for (const PlannedTest& test : make_plan(machine, {.quick = true}).tests) {
    try {
      const auto prepared = backend.prepare(test);
      std::vector<std::vector<Time>> runs;
      for (int i = 0; i < 7; ++i) runs.push_back(prepared->once());
      all.add(measurement_of(test, runs, {}));
    } catch (const TestFailed&) {
      continue;
    }
  }
  return to_text(write_measurement(all.result()));
}

TEST(Tutorial, FromALabMachineToAWhatIf) {
  const Folder folder;
  const std::string box = folder.file("box.json", probe("dgx1-v100", 7)),
                    patch = folder.path("node7.json");
  const auto fitted = weft_cli({"calibrate", "fit", box, "--fabric", "dgx1-v100", "-o", patch});
  ASSERT_EQ(fitted.code, kOk) << fitted.err;
  EXPECT_THAT(fitted.out, HasSubstr("parameters determined"));
  const std::string scenario = folder.file(
      "eight.json",
      R"({"weft": {"schema": 1}, "name": "eight", "question": "How long?", "fabric": "node7.json",
          "nccl": {}, "jobs": [{"name": "grads", "collective": "all_reduce", "size": "64 MiB"}]})");
  const Json report = document(weft_cli({"run", scenario, "--intervals", "--json"}));
  const double low = number_at(report, {"intervals_90", "grads", "low"}),
               high = number_at(report, {"intervals_90", "grads", "high"});
  EXPECT_LT(low, high);
  EXPECT_LT(high / low, 1.2);
  EXPECT_EQ(
      weft_cli({"run", scenario, "--what-if", "/fabric/nodes/0/model/kernels/simple_step=\"4 us\""})
          .code,
      kOk);
  EXPECT_EQ(weft_cli({"nccl-tests", "all_reduce_perf", "--fabric", patch, "--intervals"}).code,
            kOk);
  EXPECT_EQ(weft_cli({"calibrate", "suggest", scenario, "--fabric", patch}).code, kOk);
  const Json check = document(weft_cli(
      {"calibrate", "check", box, "--fabric", "dgx1-v100", "--leave-out", "groups", "--json"}));
  EXPECT_LT(number_at(check, {"median_abs_rel_error"}), 0.05);
}

// "From a published table to a what-if", and what the page says of it.
TEST(Tutorial, FromAPublishedTableToAWhatIf) {
  const Folder folder;
  const std::string log = cli_test::import_log("rtx4090-4gpu-p2p-driver-allreduce.log"),
                    patch = folder.path("cards.json");
  const std::vector<std::string> box{"--fabric", "pcie-rtx4090x8", "--set",
                                     "/peer_access/pcie=all"};
  const auto calibrate = [&](std::vector<std::string> args) {
    args.insert(args.begin(), "calibrate");
    args.insert(args.end(), box.begin(), box.end());
    return weft_cli(args);
  };
  const Json check = document(calibrate({"check", log, "--json"}));
  EXPECT_NEAR(100 * number_at(check, {"median_abs_rel_error"}), 10.5, 0.1);
  ASSERT_EQ(calibrate({"fit", log, "-o", patch, "--page", folder.path("cards.html")}).code, kOk);
  EXPECT_TRUE(std::filesystem::exists(folder.path("cards.html")));
  const auto row = [&](const char* gpus, const std::vector<std::string>& more) {
    std::vector<std::string> args{
        "nccl-tests", "all_reduce_perf", "--fabric",    patch,   "-g", gpus, "-b", "1G", "-e", "1G",
        "--harness",  "one-process",     "--intervals", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    return document(weft_cli(args));
  };
  const Json eight = row("8", {});
  EXPECT_NEAR(number_at(eight, {"rows", "0", "busbw_gbs"}), 25.3, 0.1);
  EXPECT_NEAR(number_at(eight, {"rows", "0", "time_us_low"}), 71e3, 500);
  EXPECT_NEAR(number_at(eight, {"rows", "0", "time_us_high"}), 78e3, 500);
  // Measured by others: 2.59.
  const Json without = row("4", {"--set", "/peer_access/pcie=none"});
  EXPECT_NEAR(number_at(without, {"rows", "0", "busbw_gbs"}), 2.59, 0.13);
}

}  // namespace
}  // namespace weft
