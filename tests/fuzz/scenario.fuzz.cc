// SPDX-License-Identifier: Apache-2.0
// From JSON to a report: a scenario is refused, reaches a limit, or runs to a report that obeys its own bound.
#include <algorithm>
#include <cmath>

#include "models/catalog.hpp"
#include "models/llm/inference.hpp"
#include "sim/run/run.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/limits.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostGpus = 64, kMostNodes = 1'000, kMostPairs = 10'000, kMostFlows = 10'000;
constexpr std::int64_t kMostRepeats = 20, kMostRequests = 200, kMostTokens = 500, kMostChunks = 200;

bool is_small(const InferenceSpec& job) {
  const std::int64_t chunk = job.serving.chunk.value_or(1'000'000);
  const auto small = [&](std::int64_t prompt, std::int64_t output) {
    return output <= kMostTokens && prompt / chunk <= kMostChunks;
  };
  const RequestsSpec& r = job.requests;
  return r.count <= kMostRequests && r.trace.size() <= kMostRequests && r.spread <= 1 &&
         small(r.prompt, r.output) && std::ranges::all_of(r.trace, [&](const RequestEntry& entry) {
           return small(entry.prompt, entry.output);
         });
}

bool is_small(const Scenario& scenario) {
  const fuzz::FabricSize sizes = fuzz::size_of(scenario.fabric);
  if (sizes.gpus > kMostGpus || sizes.nodes > kMostNodes || sizes.pairs > kMostPairs) return false;
  std::size_t flows = 0;
  for (const JobSpec& job : scenario.jobs) {
    flows +=
        job.flows.size() + (job.pattern ? sizes.gpus * sizes.gpus : 0) + (job.expand ? 1'000 : 0);
    if (job.repeat.kind == Json::Kind::integer && job.repeat.integer > kMostRepeats) return false;
    if (job.inference && !is_small(*job.inference)) return false;
  }
  return flows <= kMostFlows && scenario.jobs.size() <= 8 && scenario.faults.size() <= 20;
}

void check_report(const Scenario& scenario, const Report& report) {
  FUZZ_CHECK(std::isfinite(report.time_s) && report.time_s >= 0);
  FUZZ_CHECK(std::isfinite(report.bound_s) && report.bound_s >= 0);
  bool endless = false;
  for (const JobSpec& job : scenario.jobs) endless = endless || job.repeat.is_string();
  if (!endless) FUZZ_CHECK(report.bound_s <= report.time_s * (1 + 1e-6) + 1e-9);
  FUZZ_CHECK(report.jobs.size() == scenario.jobs.size());
  Diagnostics out;
  parse_json(to_text(to_json(report)), "report.json", out);
  FUZZ_CHECK(out.ok());
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  fuzz::CatalogueAndInput files{std::string(fuzz::view(data, size))};
  Diagnostics out;
  Loader loader(files, out);
  const Json document = loader.load_file("input.json");
  if (!out.ok()) return 0;
  const Scenario scenario = read_scenario(document, out);
  fuzz::check_problems(out);
  if (!out.ok() || !is_small(scenario)) return 0;
  RunContext context;
  context.link_classes = link_classes();
  context.algorithms = collective_algorithms();
  context.make_network = make_network;
  context.models.inference = make_inference;
  context.version = "fuzz";
  try {
    check_report(scenario, run_scenario(scenario, context, out));
  } catch (const InputError& problem) {
    FUZZ_CHECK(*problem.what() != '\0');
  } catch (const LimitReached& limit) {
    FUZZ_CHECK(*limit.what() != '\0');
  }
  fuzz::check_problems(out);
  return 0;
}
