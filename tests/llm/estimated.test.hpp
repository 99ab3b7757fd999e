// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/llm/estimate.hpp"
#include "models/llm/fabric_times.hpp"
#include "models/llm/host.hpp"
#include "sim/run/collective_timer.hpp"
#include "sim/run/jobs.hpp"
#include "tests/support/tiny.hpp"

namespace weft::test {

// Seconds of a step as `weft plan` estimates it, on the fabric of the scenario.
inline double estimated_step_s(const std::string& text) {
  Diagnostics out;
  const Scenario read = scenario_from(text, out);
  const RunContext context = test::context();
  const Fabric fabric = build_fabric(read.fabric, context.link_classes, out);
  TrainingSpec training = *read.jobs.front().training;
  const std::vector<NodeId> gpus(fabric.gpus().begin(), fabric.gpus().end());
  training.host = host_facts(fabric, gpus);
  const Architecture model(training.model);
  check_plan(model, training, out);
  const StageLayout layout = stage_layout(model, training.plan, out);
  EXPECT_TRUE(out.ok()) << out.text();
  const KernelTimes kernels(fabric.gpu_spec(gpus.front()), training.software);
  Routes routes(fabric);
  CollectiveTimer timer(fabric, routes,
                        collective_planner(fabric, read, context.algorithms, context.library),
                        [&](std::span<const Bandwidth> capacities) {
                          return context.make_network(Fidelity::fluid, capacities, {});
                        });
  FabricTimes times(fabric, timer, gpus);
  return Estimator(model, kernels, times).step(training, layout).step_s;
}

}  // namespace weft::test
