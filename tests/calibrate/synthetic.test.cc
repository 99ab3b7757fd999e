// SPDX-License-Identifier: Apache-2.0
// Machines whose truth is known: what a fit finds, and what it says of what it cannot find.
#include "tests/calibrate/synthetic.hpp"

#include <cstdlib>

#include <fmt/format.h>

#include "calibrate/log_facts.hpp"

namespace weft::calibrate_test {
namespace {

struct Made {
  std::string fabric;
  std::vector<FitTable> tables;
  int copies = 0;  // GPUs whose pairs are copied
};

std::vector<Made> made() {
  using enum CollectiveKind;
  return {{"hgx-h100", {table_of(all_reduce, 8, 1), table_of(all_gather, 8, 1)}, 8},
          {"hgx-a100", {table_of(all_reduce, 4, 1), table_of(all_reduce, 8, 1)}, 8},
          {"dgx1-v100", {table_of(all_reduce, 8, 1), table_of(all_to_all, 8, 1)}, 8},
          {"pcie-l40sx8", {table_of(all_reduce, 8, 1), table_of(all_reduce, 2, 1)}, 8},
          {"hgx-h100+ib-ndr",
           {table_of(all_reduce, 8, 1), table_of(all_reduce, 16, 2), table_of(all_gather, 16, 2)},
           8}};
}

TEST(SyntheticMachines, AreFoundWithinTheirIntervals) {
  std::size_t responsive = 0, determined = 0, inside = 0;
  std::vector<double> half_widths, errors;
  std::string text;
  std::uint64_t seed = 1;
  for (const Made& one : made()) {
    for (int repeat = 0; repeat < 2; ++repeat, ++seed) {
      const FitMachine machine = machine_of(one.fabric);
      FitData data;
      data.tables = one.tables;
      add_copies(data, one.copies);
      const Truth truth = draw_truth(machine, data, seed);
      measure(data, machine.predict(data, truth.changes()), 0.02, seed);
      // The truth is weft's own form: nothing is off beside the noise.
      const FitResult found = fit(machine, data, {.model_error = 0});
      for (const FittedParameter& p : found.parameters) {
        const auto at = std::ranges::find(truth.parameters, p.parameter.name, &Parameter::name);
        const double real = truth.values[static_cast<std::size_t>(at - truth.parameters.begin())];
        ++responsive;
        const bool in = p.low <= real && real <= p.high;
        text += fmt::format("{} {:<44} {:<12} true {:10.4g} found {:10.4g} [{:.4g}, {:.4g}] {}\n",
                            one.fabric, p.parameter.name, write_config(p.state).text, real, p.value,
                            p.low, p.high, in ? "" : "OUTSIDE");
        if (p.state != ParameterState::determined) continue;
        ++determined;
        inside += in ? 1 : 0;
        half_widths.push_back((p.high - p.low) / 2 / p.value);
      }
      for (const FitResidual& r : found.residuals) errors.push_back(std::abs(r.error()));
    }
  }
  EXPECT_GE(10 * inside, 9 * determined) << text;
  EXPECT_GE(100 * determined, 70 * responsive) << text;
  // Tables alone tell less than a probe does (probed.test.cc: 5 %).
  EXPECT_LE(median(half_widths), 0.06) << text;
  EXPECT_LE(median(errors), 0.03) << text;
  std::printf("%zu responsive, %zu determined, %zu inside, half width %.3f, error %.3f\n",
              responsive, determined, inside, median(half_widths), median(errors));
  if (std::getenv("WEFT_ROWS") != nullptr) std::printf("%s", text.c_str());
}

}  // namespace
}  // namespace weft::calibrate_test
