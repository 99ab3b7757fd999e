// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/simulate.hpp"

#include <chrono>

#include <fmt/format.h>
#include <sys/resource.h>

#include "models/catalog.hpp"
#include "models/llm/train.hpp"
#include "models/nccl/library.hpp"
#include "sim/core/loader.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {

RunContext run_context(Progress& progress) {
  RunContext context;
  context.link_classes = link_classes();
  context.algorithms = collective_algorithms();
  context.make_network = make_network;
  context.library = nccl_library();
  context.models = llm_jobs();
  context.version = WEFT_VERSION;
  context.progress = [&progress](Time now, std::uint64_t events) {
    progress.show(fmt::format("simulated {}   {} events", to_text(now), events));
  };
  return context;
}

Scenario load_scenario(const std::string& path, const RunOptions& options,
                       Diagnostics& diagnostics) {
  Configs files(find_configs_root());
  Loader loader(files, diagnostics);
  Json document = loader.load_file(path);
  diagnostics.throw_if_errors();
  apply_sets(loader, document, options.sets, diagnostics);
  if (!options.fidelity.empty()) document.set("fidelity", options.fidelity);
  if (options.seed) document.set("seed", *options.seed);
  diagnostics.throw_if_errors();
  Scenario scenario = read_scenario(document, diagnostics);
  if (options.top) scenario.observe.top = *options.top;
  diagnostics.throw_if_errors();
  return scenario;
}

Report run_timed(const Scenario& scenario, const RunContext& context, Diagnostics& diagnostics) {
  const auto start = std::chrono::steady_clock::now();
  Report report = run_scenario(scenario, context, diagnostics);
  report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    report.peak_rss_bytes = std::int64_t{usage.ru_maxrss} * 1024;
  return report;
}

}  // namespace weft
