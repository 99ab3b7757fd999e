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

}  // namespace
}  // namespace weft
