// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/library.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/nccl/communicator.hpp"
#include "models/nccl/tuner.hpp"
#include "models/nccl/variables.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

constexpr std::string_view kPrefix = "NCCL_";

// A number stands for its text, so that `--set /nccl/env/NCCL_CROSS_NIC=1` does what it says.
std::optional<std::string> text_of(const Json& value) {
  if (value.is_string()) return value.text;
  if (value.kind == Json::Kind::integer) return fmt::format("{}", value.integer);
  return std::nullopt;
}

// Whether everything that `forced` allows is allowed by `variable` too; also true of texts that NCCL could not read.
bool allows(const std::string& name, const std::string& variable, const std::string& forced) {
  Diagnostics problems;
  const NcclFilter whole = nccl_filter({{{name, variable}}}, problems);
  const NcclFilter part = nccl_filter({{{name, forced}}}, problems);
  const auto covers = [](const auto& of, const auto& at) {
    for (std::size_t kind = 0; kind < of.size(); ++kind) {
      for (std::size_t i = 0; i < of[kind].size(); ++i) {
        if (of[kind][i] == NcclFilter::Use::off && at[kind][i] == NcclFilter::Use::on) return false;
      }
    }
    return true;
  };
  return !problems.ok() ||
         (covers(whole.algorithms, part.algorithms) && covers(whole.protocols, part.protocols));
}

// Reports at `pointer` of the spec; a value without a place lies where the whole spec does.
NcclSetup setup_of(const NcclSpec& spec, Diagnostics& out) {
  NcclSetup setup;
  const auto at = [&](std::string_view key) { return spec.pointer + "/" + std::string(key); };
  if (const auto version = parse_nccl_version(spec.version)) {
    setup.version = *version;
  } else {
    out.error(spec.place, at("version"),
              fmt::format("\"{}\" is not a release that is modelled", spec.version),
              "2.5 to 2.30, e.g. \"2.18.3\"");
  }
  Json harness(spec.harness);
  harness.place = spec.place;
  read_config(harness, at("harness"), setup.harness, out);
  for (const auto& [name, value] : spec.env) {
    if (const auto text = text_of(value))
      setup.environment.variables[name] = *text;
    else
      out.error(value.place, at("env/" + name), "neither a text nor a whole number",
                fmt::format("e.g. \"{}\": \"1\"", name));
  }
  const auto place_of = [&](const std::string& name) {
    const auto found = spec.env.find(name);
    return found == spec.env.end() ? spec.place : found->second.place;
  };
  for (const NcclVariableProblem& problem : check_nccl_environment(setup.environment)) {
    const std::string pointer = at("env/" + problem.name);
    if (problem.error)
      out.error(place_of(problem.name), pointer, problem.fact, problem.cure);
    else
      out.warning(place_of(problem.name), pointer, problem.fact, problem.cure);
  }
  setup.algorithm = spec.algorithm;
  setup.protocol = spec.protocol;
  NcclEnvironment forced;
  if (!spec.algorithm.empty()) forced.variables["NCCL_ALGO"] = spec.algorithm;
  if (!spec.protocol.empty()) forced.variables["NCCL_PROTO"] = spec.protocol;
  for (const NcclVariableProblem& problem : check_nccl_environment(forced)) {
    out.error(spec.place, at(problem.name == "NCCL_ALGO" ? "algorithm" : "protocol"), problem.fact,
              problem.cure);
  }
  for (const NcclVariableProblem& problem : check_nccl_overrules(setup))
    out.warning(spec.place, at(problem.name), problem.fact, problem.cure);
  return setup;
}

class NcclGroup : public GroupPlanner {
 public:
  NcclGroup(const Fabric& fabric, std::span<const NodeId> gpus, const NcclSetup& setup)
      : communicator_(fabric, {gpus.begin(), gpus.end()}, setup) {}

  PlannedCollective plan(CollectiveKind kind, Bytes bytes, std::uint32_t root) const override {
    const NcclPlan plan = communicator_.plan(kind, bytes);
    PlannedCollective out;
    out.schedule = communicator_.schedule(plan, kind, bytes, root);
    out.options = communicator_.options(plan);
    out.algorithm = fmt::format("{}/{}", out.schedule.algorithm, write_config(plan.protocol).text);
    out.channels = plan.channels;
    out.notes = communicator_.topology().notes;
    return out;
  }

 private:
  NcclCommunicator communicator_;
};

std::shared_ptr<const GroupPlanner> join_group(const Fabric& fabric, std::span<const NodeId> gpus,
                                               const NcclSpec& spec) {
  Diagnostics checked;
  return std::make_shared<NcclGroup>(fabric, gpus, setup_of(spec, checked));
}

}  // namespace

std::vector<NcclVariableProblem> check_nccl_environment(const NcclEnvironment& environment) {
  std::vector<NcclVariableProblem> out;
  std::vector<std::string> names;
  for (const std::string_view name : nccl::variable_names()) names.emplace_back(name);
  for (const auto& [name, value] : environment.variables) {
    if (std::ranges::find(names, name) != names.end()) {
      // One at a time: what is wrong with it is told under its own name.
      Diagnostics problems;
      const NcclEnvironment alone{{{name, value}}};
      nccl::read_variables(alone, problems);
      nccl_filter(alone, problems);
      for (const Problem& problem : problems.problems())
        out.push_back({true, name, problem.fact, problem.cure});
    } else if (name.starts_with(kPrefix) && name.size() > kPrefix.size()) {
      out.push_back({false, name,
                     fmt::format("{} is not modelled: it changes nothing here{}", name,
                                 did_you_mean(name, names)),
                     "leave it out, or mind that the prediction does not know it"});
    } else {
      out.push_back(
          {true, name,
           fmt::format("\"{}\" is not a variable of NCCL{}", name, did_you_mean(name, names)),
           "modelled: " + join(names, ", ")});
    }
  }
  return out;
}

std::vector<NcclVariableProblem> check_nccl_overrules(const NcclSetup& setup) {
  std::vector<NcclVariableProblem> out;
  const auto check = [&](const char* name, const char* variable, const std::string& forced) {
    const std::string* given = setup.environment.find(variable);
    if (given == nullptr || forced.empty() || allows(variable, *given, forced)) return;
    out.push_back(
        {false, name,
         fmt::format("\"{}\" wins over {}={}, which does not allow it", forced, variable, *given),
         "leave one of them out"});
  };
  check("algorithm", "NCCL_ALGO", setup.algorithm);
  check("protocol", "NCCL_PROTO", setup.protocol);
  return out;
}

CollectiveLibrary nccl_library() {
  CollectiveLibrary out;
  out.check = [](const NcclSpec& spec, Diagnostics& problems) { setup_of(spec, problems); };
  out.join = join_group;
  return out;
}

}  // namespace weft
