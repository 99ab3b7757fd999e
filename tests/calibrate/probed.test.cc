// SPDX-License-Identifier: Apache-2.0
// The whole loop without a GPU: weft-probe's plan on made-up machines whose truth is hidden (calibrate/probe/synthetic.hpp: copies
// packet by packet, terms that no fit knows of, 2 % noise), fitted, and looked up in the truth.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "calibrate/fit/check.hpp"
#include "calibrate/fit/faults.hpp"
#include "calibrate/fit/tables.hpp"
#include "calibrate/log_facts.hpp"
#include "calibrate/measurement_merge.hpp"
#include "calibrate/probe/session.hpp"
#include "calibrate/probe/synthetic.hpp"
#include "sim/core/hash.hpp"
#include "tests/calibrate/synthetic.hpp"

namespace weft::calibrate_test {
namespace {

struct Probed {
  std::string fabric;
  Settings sets;
  ProbeFault fault = ProbeFault::none;
};

// 1 to 16 GPUs, two servers; meshes, switches, PCIe trees.
std::vector<Probed> probed() {
  using enum ProbeFault;
  const Settings two{{"/servers", Json(2)}};
  return {{"hgx-h100", {}, none},
          {"hgx-h100", {}, slow_link},
          {"hgx-h100", {}, half_width},
          {"hgx-a100", {}, none},
          {"hgx-a100", {}, slow_link},
          {"dgx1-v100", {}, none},
          {"dgx1-v100", {}, slow_link},
          {"dgx1-v100", {}, wrong_affinity},
          {"dgx1-p100", {}, none},
          {"dgx1-p100", {}, slow_link},
          {"dgx2", {}, none},
          {"dgx2", {}, slow_link},
          {"pcie-l40sx8", {}, none},
          {"pcie-l40sx8", {}, slow_link},
          {"pcie-titanrtx8", {}, half_width},
          {"polaris-node", {}, slow_link},
          {"nvlink-bridge-pairs", {}, slow_link},
          {"sli-rtx2080", {}, none},
          {"hgx-a100", {}, half_width},
          {"hgx-h100+ib-ndr", two, none}};
}

Measurement measure(SyntheticBackend& backend) {
  const ProbeMachine machine = backend.machine();
  const ProbePlan plan = make_plan(machine, {.quick = true});
  Measurement head = new_measurement("box", "weft-probe", "a made-up machine");
  head.hosts = machine.hosts;
  MeasurementUnion all;
  all.add(head);
  for (const PlannedTest& test : plan.tests) {
    try {
      const auto prepared = backend.prepare(test);
      std::vector<std::vector<Time>> runs;
      for (int i = 0; i < 9; ++i) runs.push_back(prepared->once());
      all.add(measurement_of(test, runs, {}));
    } catch (const TestFailed&) {
      continue;
    }
  }
  return all.result();
}

struct Tally {
  std::size_t took_part = 0, determined = 0, inside = 0, faults = 0, named = 0, invented = 0;
  std::vector<double> half_widths, errors, held_out;
  std::string text;
};

// What the fault's words name: gpu7, plx0, ...
bool names(const FoundFault& found, const std::string& truth) {
  for (std::size_t at = truth.find("gpu"); at != std::string::npos; at = truth.find("gpu", at + 1))
    if (found.parts.find(truth.substr(at, 4)) != std::string::npos) return true;
  for (std::size_t at = truth.find("nic"); at != std::string::npos; at = truth.find("nic", at + 1))
    if (found.parts.find(truth.substr(at, 4)) != std::string::npos) return true;
  return false;
}

void run(const Probed& which, std::uint64_t seed, Tally& tally) {
  const FitMachine machine = machine_of(which.fabric, which.sets);
  Diagnostics problems;
  SyntheticBackend backend(machine.document(), {.seed = seed, .noise = 0.02, .fault = which.fault},
                           problems);
  ASSERT_TRUE(problems.ok()) << which.fabric << problems.text();
  FitData data;
  std::vector<std::string> notes;
  const auto fabric = machine.build({}, 1);
  add_measurement({.measurement = measure(backend)}, *fabric, {}, data, notes, problems);
  ASSERT_TRUE(problems.ok()) << problems.text();
  std::vector<FoundFault> faults;
  const FitResult found = fit_and_find_faults(machine, data, {}, faults);
  const HiddenMachine& truth = backend.truth();
  const Json sound = hide_machine(machine.document(), seed, ProbeFault::none, problems).document;
  const bool planted = !truth.fault.empty();
  const bool named = !faults.empty() && names(faults.front(), truth.fault);
  tally.faults += planted ? 1 : 0;
  tally.named += planted && named ? 1 : 0;
  tally.invented += !planted && !faults.empty() ? 1 : 0;
  tally.text += fmt::format("{} seed {}: {} rows; {}; found {}\n", which.fabric, seed,
                            found.residuals.size(), planted ? truth.fault : "no fault",
                            faults.empty() ? "none" : faults.front().text());
  for (const FittedParameter& p : found.parameters) {
    const Json* value = find_value(sound, p.parameter.pointers.front());
    double real = value != nullptr ? parameter_number(p.parameter.unit, *value) : 0;
    if (real == 0) real = p.parameter.prior;  // not hidden: as the catalogue has it
    ++tally.took_part;
    const bool in = p.low <= real && real <= p.high;
    const bool sure = p.state == ParameterState::determined;
    if (!in || std::getenv("WEFT_ROWS") != nullptr)
      tally.text +=
          fmt::format("    {:<46} {} true {:.4g} found {:.4g} [{:.4g}, {:.4g}]\n", p.parameter.name,
                      sure ? "determined" : "", real, p.value, p.low, p.high);
    if (!sure) continue;
    ++tally.determined;
    tally.inside += in ? 1 : 0;
    tally.half_widths.push_back((p.high - p.low) / 2 / p.value);
  }
  for (const FitResidual& r : found.residuals)
    if (r.fitted) tally.errors.push_back(std::abs(r.error()));
  // Fitted to half of the rows, the others predicted; transfers at the same time stay together.
  std::uint64_t alone = 0, together = 0;
  std::map<std::string, bool> kept;
  const auto keep = [&](const MeasuredPoint& row) {
    const bool one = !row.group.starts_with("all-") && !row.group.starts_with("both-");
    if (one) return mix64(alone++) % 2 == 0;
    const auto [group, fresh] = kept.try_emplace(row.group);
    if (fresh) group->second = together++ % 2 == 0;
    return group->second;
  };
  const HoldOut held = hold_out(machine, data, keep, {});
  for (const HeldOutRow& row : held.rows) tally.held_out.push_back(std::abs(row.error()));
  tally.text += fmt::format("    {} rows left out: median error {:.1f} %, p90 {:.1f} %\n",
                            held.rows.size(), 100 * held.median, 100 * held.p90);
}

// All twenty with WEFT_FULL=1, which takes minutes; one of each kind otherwise.
TEST(ProbedMachines, AreFoundWithinTheirIntervalsAndTheirFaultsAreNamed) {
  Tally tally;
  std::uint64_t seed = 11;
  const bool full = std::getenv("WEFT_FULL") != nullptr;
  for (const Probed& which : probed()) {
    const bool quick = which.fabric.starts_with("dgx1") || which.fabric.starts_with("pcie") ||
                       which.fabric.starts_with("sli");
    if (!full && !quick) {
      ++seed;
      continue;
    }
    run(which, seed++, tally);
    std::printf("%s", tally.text.c_str());
    std::fflush(stdout);
    tally.text.clear();
  }
  std::printf(
      "%zu parameters took part, %zu determined, %zu inside; half width %.3f; error of rows %.3f, "
      "of "
      "%zu rows left out %.3f; %zu of %zu faults named, %zu invented\n",
      tally.took_part, tally.determined, tally.inside, median(tally.half_widths),
      median(tally.errors), tally.held_out.size(), median(tally.held_out), tally.named,
      tally.faults, tally.invented);
  EXPECT_GE(tally.inside * 20, (full ? 18 : 17) * tally.determined);
  EXPECT_LE(median(tally.half_widths), 0.05);
  EXPECT_LE(median(tally.errors), 0.05);
  EXPECT_LE(median(tally.held_out), 0.05);
  EXPECT_EQ(tally.named, tally.faults);
  EXPECT_EQ(tally.invented, 0U);
}

}  // namespace
}  // namespace weft::calibrate_test
