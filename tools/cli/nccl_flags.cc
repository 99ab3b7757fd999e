// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/nccl_flags.hpp"

#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "models/nccl/library.hpp"

namespace weft {

void add_nccl_flags(CLI::App& app, NcclFlags& flags, const std::string& release_default,
                    const std::string& harness_text) {
  app.add_option("--nodes", flags.nodes, "number of servers")->check(CLI::Range(1, 1'000'000));
  app.add_option("--gpus-per-node", flags.per_node, "GPUs of each server")
      ->check(CLI::Range(1, 10'000));
  app.add_option("--algo", flags.algorithm, "as NCCL_ALGO: ring, tree, nvls, nvls_tree, pat ...");
  app.add_option("--proto", flags.protocol, "as NCCL_PROTO: ll, ll128 or simple");
  app.add_option("--nccl", flags.release,
                 "release of NCCL, 2.5 to 2.30; default" + release_default);
  app.add_option("--env", flags.variables, "NAME=VALUE of an NCCL variable, any number")
      ->take_all();
  app.add_option("--harness", flags.harness,
                 "process-per-gpu, one-process, graph or unknown" + harness_text);
}

std::optional<NcclVersion> read_nccl_release(const std::string& text, Diagnostics& diagnostics) {
  if (text.empty()) return std::nullopt;
  const auto version = parse_nccl_version(text);
  if (!version) {
    diagnostics.error({}, "--nccl", fmt::format("\"{}\" is not a release that is modelled", text),
                      "2.5 to 2.30, e.g. 2.18.3");
  }
  return version;
}

NcclEnvironment read_nccl_variables(std::span<const std::string> variables,
                                    Diagnostics& diagnostics) {
  NcclEnvironment environment;
  for (const std::string& variable : variables) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) {
      diagnostics.error({}, "--env", fmt::format("\"{}\" is not NAME=VALUE", variable),
                        "e.g. --env NCCL_CROSS_NIC=0");
    } else if (!environment.variables
                    .try_emplace(variable.substr(0, equals), variable.substr(equals + 1))
                    .second) {
      diagnostics.error({}, "--env", fmt::format("{} is given twice", variable.substr(0, equals)),
                        "leave one of them out");
    }
  }
  for (const NcclVariableProblem& problem : check_nccl_environment(environment)) {
    const bool named = problem.fact.find(problem.name) != std::string::npos;
    const std::string fact = named ? problem.fact : problem.name + ": " + problem.fact;
    if (problem.error)
      diagnostics.error({}, "--env", fact, problem.cure);
    else
      diagnostics.warning({}, "--env", fact, problem.cure);
  }
  return environment;
}

void read_nccl_choices(const NcclFlags& flags, NcclSetup& setup, Diagnostics& diagnostics) {
  setup.environment = read_nccl_variables(flags.variables, diagnostics);
  setup.algorithm = flags.algorithm;
  setup.protocol = flags.protocol;
  for (const NcclVariableProblem& problem : check_nccl_overrules(setup)) {
    diagnostics.warning({}, problem.name == "algorithm" ? "--algo" : "--proto", problem.fact,
                        problem.cure);
  }
}

std::vector<NodeId> first_gpus(const Fabric& fabric, std::optional<std::int64_t> per_node,
                               std::optional<std::int64_t> most) {
  std::vector<NodeId> gpus;
  std::map<ServerId, std::int64_t> taken;
  for (const NodeId gpu : fabric.gpus()) {
    if (most && static_cast<std::int64_t>(gpus.size()) >= *most) break;
    if (per_node && taken[fabric.node(gpu).server]++ >= *per_node) continue;
    gpus.push_back(gpu);
  }
  return gpus;
}

}  // namespace weft
