// SPDX-License-Identifier: Apache-2.0
// A machine with a slow link, held out: the link is found in what is kept, named, and in what is predicted.
#include <gmock/gmock.h>

#include "calibrate/fit/page.hpp"
#include "tests/calibrate/synthetic.hpp"

namespace weft::calibrate_test {
namespace {

using ::testing::HasSubstr;

// Four V100 of a mesh; the link of two of them at half its rate.
FitData measured(const FitMachine& machine, bool faulty) {
  FitData data;
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
    data.tables.push_back(table_of(kind, 4, 1));
    std::erase_if(data.tables.back().rows, [](const FitRow& row) { return row.bytes < 64_KiB; });
  }
  add_copies(data, 4);
  FitMachine real(machine.document());
  if (faulty)
    real.tweak = [](FabricSpec& spec) {
      for (LinkEntry& link : spec.groups.front().server.links)
        if (link.a == "gpu0" && link.b == "gpu1") link.link.efficiency = 0.47;
    };
  measure(data, real.predict(data, draw_truth(machine, data, 3).changes()), 0.01, 3);
  return data;
}

TEST(HoldOut, FindsTheFaultThatAFitFinds) {
  const FitMachine machine = machine_of("dgx1-v100");
  const FitData data = measured(machine, true);
  for (const HoldOut& found : {hold_out_collectives(machine, data, {}),
                               hold_out_sizes(machine, data, {64_KiB, 1_MiB, 1_GiB}, {})}) {
    ASSERT_EQ(found.faults.size(), 1U);
    EXPECT_THAT(found.faults.front(), HasSubstr("gpu0:gpu1 at 0.5"));
    EXPECT_FALSE(found.rows.empty());
    EXPECT_LT(found.median, 0.05);
    EXPECT_LT(found.p90, 0.1);
    ASSERT_EQ(fault_notes(found).size(), 1U);
    std::vector<FoundFault> faults;
    const FitResult fitted = fit_and_find_faults(machine, data, {}, faults);
    const std::string page = calibration_page({.title = "t",
                                               .fabric = "f",
                                               .instrument = "i",
                                               .fitted = &fitted,
                                               .left_out = &found,
                                               .how = "h"});
    EXPECT_THAT(page, HasSubstr("<td>faults</td>"));
    EXPECT_THAT(page, HasSubstr("What was left out is predicted with it"));
  }
}

// One GPU has no collectives: copies to and from the host, memory kernels and products.
FitData one_gpu(const FitMachine& machine) {
  FitData data;
  for (const Bytes bytes : {16_KiB, 256_KiB, 1_MiB, 16_MiB, 256_MiB}) {
    for (const bool up : {true, false})
      data.copies.push_back({.from = up ? "cpu0" : "gpu0",
                             .to = up ? "gpu0" : "cpu0",
                             .bytes = bytes,
                             .quantity = CopyQuantity::time,
                             .group = "host copy"});
  }
  for (const Bytes bytes : {64_MiB, 512_MiB, 2_GiB})
    data.kernels.push_back(
        {.gpu = "gpu0", .type = "fp32", .test = KernelTest::copy, .bytes = bytes});
  for (const std::int64_t n : {1024, 2048, 4096, 8192})
    data.kernels.push_back({.gpu = "gpu0", .type = "bf16", .m = n, .n = n, .k = n});
  measure(data, machine.predict(data, draw_truth(machine, data, 5).changes()), 0.01, 5);
  return data;
}

TEST(HoldOut, OfOneGpuHoldsOutSizesOfCopiesAndKernels) {
  const FitMachine machine = machine_of("h100-1gpu");
  const HoldOut found = hold_out_sizes(machine, one_gpu(machine), {1_MiB}, {});
  std::vector<std::string> left;
  for (const HeldOutRow& row : found.rows) left.push_back(row.point.id);
  EXPECT_THAT(left, ::testing::UnorderedElementsAre(
                        "host copy 256 KiB cpu0-gpu0", "host copy 256 KiB gpu0-cpu0",
                        "host copy 16 MiB cpu0-gpu0", "host copy 16 MiB gpu0-cpu0",
                        "copy of 512 MiB on gpu0", "bf16 2048 x 2048 x 2048 on gpu0"));
  EXPECT_EQ(found.fitted, 11U);
  EXPECT_LT(found.median, 0.05);
  EXPECT_GE(found.p90, found.median);
  const std::vector<HeldOutKind> kinds = kinds_of(found);
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].name, "copies");
  EXPECT_EQ(kinds[0].of.rows.size(), 4U);
  EXPECT_EQ(kinds[1].name, "kernels");
}

// Two rows have a ninth decile that is not below their median.
TEST(HoldOut, DecileOfFewRowsIsTheirLargest) {
  HoldOut found;
  for (const double predicted : {1.02, 1.10}) {
    HeldOutRow row;
    row.point.measured = 1;
    row.predicted = predicted;
    found.rows.push_back(row);
  }
  summarise(found);
  EXPECT_NEAR(found.p90, 0.1, 1e-12);
}

TEST(HoldOut, InventsNoFault) {
  const FitMachine machine = machine_of("dgx1-v100");
  const HoldOut found = hold_out_collectives(machine, measured(machine, false), {});
  EXPECT_TRUE(found.faults.empty());
  EXPECT_LT(found.median, 0.05);
}

}  // namespace
}  // namespace weft::calibrate_test
