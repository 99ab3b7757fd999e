// SPDX-License-Identifier: Apache-2.0
#include "models/llm/site.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/run/scenario.hpp"

namespace weft {

bool has_one_kind_of_gpu(const JobSite& site, Diagnostics& out) {
  const std::string& name = site.fabric.gpu_spec(site.gpus.front()).name;
  for (const NodeId gpu : site.gpus) {
    const std::string& other = site.fabric.gpu_spec(gpu).name;
    if (other == name) continue;
    out.error(site.spec.place, site.spec.pointer,
              fmt::format("not yet: a job over GPUs of two kinds, {} and {}", name, other),
              "place it on one kind");
    return false;
  }
  return true;
}

std::vector<SlowGpu> slow_gpus(const JobSite& site) {
  std::vector<SlowGpu> out;
  for (const FaultSpec& fault : site.scenario.faults) {
    if (fault.action != FaultAction::slow) continue;
    const auto node = site.fabric.find_node(fault.target);
    const auto at = node ? std::ranges::find(site.gpus, *node) : site.gpus.end();
    if (at != site.gpus.end()) out.push_back({at - site.gpus.begin(), fault.factor});
  }
  return out;
}

}  // namespace weft
