// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/simulate.hpp"

#include <chrono>
#include <map>

#include <fmt/format.h>
#include <sys/resource.h>

#include "models/catalog.hpp"
#include "models/llm/train.hpp"
#include "models/nccl/library.hpp"
#include "sim/core/loader.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {
namespace {

// One document beside the files on disk.
class WithDocument final : public FileSource {
 public:
  WithDocument(FileSource& files, std::string name, std::string text)
      : files_(files), name_(std::move(name)), text_(std::move(text)) {}
  std::optional<std::string> read(const std::string& path) override {
    return path == name_ ? text_ : files_.read(path);
  }
  std::optional<std::string> find(std::string_view kind, const std::string& name) override {
    return files_.find(kind, name);
  }
  std::vector<std::string> names(std::string_view kind) override { return files_.names(kind); }

 private:
  FileSource& files_;
  std::string name_, text_;
};

Scenario load_from(FileSource& files, const std::string& path, const RunOptions& options,
                   Diagnostics& diagnostics) {
  Loader loader(files, diagnostics);
  Json document = loader.load_file(path);
  diagnostics.throw_if_errors();
  apply_sets(loader, document, options.sets);
  if (!options.fidelity.empty()) document.set("fidelity", options.fidelity);
  if (options.seed) document.set("seed", *options.seed);
  diagnostics.throw_if_errors();
  Scenario scenario = read_scenario(document, diagnostics);
  if (options.top) scenario.observe.top = *options.top;
  diagnostics.throw_if_errors();
  return scenario;
}

}  // namespace

RunContext run_models() {
  RunContext context;
  context.link_classes = link_classes();
  context.algorithms = collective_algorithms();
  context.make_network = make_network;
  context.library = nccl_library();
  context.models = llm_jobs();
  context.version = WEFT_VERSION;
  return context;
}

RunContext run_context(Progress& progress) {
  RunContext context = run_models();
  context.progress = [&progress](Time now, std::uint64_t events) {
    progress.show(fmt::format("simulated {}   {} events", to_text(now), events));
  };
  return context;
}

CollectiveLibrary remembering(const CollectiveLibrary& library, const Fabric& fabric) {
  struct Known {
    std::map<std::pair<std::vector<NodeId>, std::string>, std::shared_ptr<const GroupPlanner>>
        groups;
    std::size_t ranks = 0;  // of all groups
  };
  static constexpr std::size_t kMostRanks = 1 << 20;
  const auto known = std::make_shared<Known>();
  CollectiveLibrary out = library;
  out.join = [join = library.join, known, of = &fabric](
                 const Fabric& on, std::span<const NodeId> gpus, const NcclSpec& spec) {
    if (&on != of) return join(on, gpus, spec);  // without links that a fault takes down
    if (known->ranks > kMostRanks) *known = {};
    auto& group = known->groups[{{gpus.begin(), gpus.end()}, to_text(write_config(spec), 0)}];
    if (!group) {
      known->ranks += gpus.size();
      group = join(on, gpus, spec);
    }
    return group;
  };
  return out;
}

Scenario load_scenario(const std::string& path, const RunOptions& options,
                       Diagnostics& diagnostics) {
  Configs files(find_configs_root());
  return load_from(files, path, options, diagnostics);
}

Scenario load_scenario(const Json& document, const std::string& name, Diagnostics& diagnostics,
                       const RunOptions& options) {
  Configs disk(find_configs_root());
  WithDocument files(disk, name, to_text(document));
  return load_from(files, name, options, diagnostics);
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
