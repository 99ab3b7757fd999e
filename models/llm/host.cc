// SPDX-License-Identifier: Apache-2.0
#include "models/llm/host.hpp"

#include <algorithm>

#include "models/llm/memory.hpp"

namespace weft {

HostFacts host_facts(const Fabric& fabric, const std::vector<NodeId>& gpus) {
  HostFacts out;
  const ServerId server = fabric.node(gpus.front()).server;
  out.server_gpus =
      std::ranges::count_if(gpus, [&](NodeId gpu) { return fabric.node(gpu).server == server; });
  const auto fastest = [&](NodeId node) {
    double rate = 0;
    for (const LinkId link : fabric.out_links(node)) {
      if (fabric.link(link).tier == Tier::host)
        rate = std::max(rate, fabric.link(link).rate.bytes_per_s());
    }
    return rate;
  };
  out.link = fastest(gpus.front());
  const ServerType& type = fabric.type_of(server);
  for (std::uint32_t local = 0; local < type.nodes.size(); ++local) {
    if (type.nodes[local].kind == NodeKind::dram)
      out.memory += fastest(fabric.local_node(server, local));
  }
  out.memory /= static_cast<double>(type.gpus.size());
  return out;
}

void check_host(const TrainingSpec& training, Diagnostics& out) {
  const bool copies =
      training.plan.offload ||
      (training.checkpoint && training.checkpoint->target == CheckpointTarget::host);
  if (!copies || (training.host.link > 0 && training.host.memory > 0)) return;
  const std::string_view key = training.plan.offload ? "/plan/offload" : "/checkpoint/target";
  out.error(training.place_of(key), training.pointer + std::string(key),
            "the server's description has no memory of the host, or no link to it",
            "add a node of kind dram and its links, or leave this out");
}

// State is read and written, the weight written (twice where a master copy stands beside it), the gradient read, once more for its
// norm.
double step_bytes(const TrainingSpec& training) {
  const DtypeSpec& d = training.dtype;
  const double state = bytes_of(d.optimizer), weight = bytes_of(d.param), grad = bytes_of(d.grad);
  const double master = weight < state ? 2 * state + weight : 2 * weight;
  switch (training.optimizer) {
    case Optimizer::adamw:
      return master + 4 * state + 2 * grad;
    case Optimizer::lamb:  // the update is written, its norm and the weight's taken, then applied
      return master + 7 * state + 2 * grad;
    case Optimizer::sgd:
      return master + 2 * state + 2 * grad;
    case Optimizer::none:
      return 0;
  }
  return 0;
}

double offloaded_step_s(const TrainingSpec& training, double parameters) {
  const double copied = bytes_of(training.dtype.grad) + bytes_of(training.dtype.param);
  return parameters * (copied / training.host.link + step_bytes(training) / training.host.memory);
}

double checkpoint_bytes(const Architecture& model, const TrainingSpec& training) {
  return model.total() * (bytes_of(training.dtype.param) + optimizer_bytes(training)) /
         real(training.gpus);
}

double checkpoint_s(const Architecture& model, const TrainingSpec& training) {
  if (!training.checkpoint) return 0;
  const double bytes = checkpoint_bytes(model, training);
  const double seconds =
      training.checkpoint->target == CheckpointTarget::host
          ? bytes / std::min(training.host.link, training.host.memory)
          : bytes * real(training.gpus) / training.checkpoint->rate->bytes_per_s();
  return seconds / real(training.checkpoint->every_steps);
}

}  // namespace weft
