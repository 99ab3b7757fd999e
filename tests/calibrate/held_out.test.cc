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

TEST(HoldOut, InventsNoFault) {
  const FitMachine machine = machine_of("dgx1-v100");
  const HoldOut found = hold_out_collectives(machine, measured(machine, false), {});
  EXPECT_TRUE(found.faults.empty());
  EXPECT_LT(found.median, 0.05);
}

}  // namespace
}  // namespace weft::calibrate_test
