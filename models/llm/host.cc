// SPDX-License-Identifier: Apache-2.0
#include "models/llm/host.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>

#include "models/llm/memory.hpp"
#include "sim/fabric/routing.hpp"

namespace weft {

namespace {

// What each of `gpus` gets when all of them use their way to the host, bytes per second; 0 without one.
double slowest(Routes& routes, const std::vector<NodeId>& gpus, HostWay way) {
  std::map<std::uint32_t, double> load;
  std::vector<Leg> legs;
  for (const NodeId gpu : gpus) {
    const std::optional<Leg> leg = routes.host_copy(gpu, way);
    if (!leg) return 0;
    for (const Share& share : leg->route.shares) load[share.resource] += share.weight;
    legs.push_back(*leg);
  }
  double out = std::numeric_limits<double>::infinity();
  for (const auto& [resource, weight] : load)
    out = std::min(out, routes.fabric().capacity(resource).bytes_per_s() / weight);
  return load.empty() ? 0 : out;
}

}  // namespace

HostFacts host_facts(const Fabric& fabric, const std::vector<NodeId>& gpus) {
  HostFacts out;
  Routes routes(fabric);
  std::map<std::uint32_t, ServerId> first;  // of a kind
  for (const NodeId gpu : gpus) {
    const ServerId server = fabric.node(gpu).server;
    first.try_emplace(fabric.server(server).type, server);
  }
  const auto of = [&](ServerId server) {
    std::vector<NodeId> own;
    std::ranges::copy_if(gpus, std::back_inserter(own),
                         [&](NodeId gpu) { return fabric.node(gpu).server == server; });
    return own;
  };
  out.server_gpus = std::ssize(of(fabric.node(gpus.front()).server));
  out.link = out.memory = std::numeric_limits<double>::infinity();
  for (const auto& [type, server] : first) {
    const std::vector<NodeId> own = of(server);
    for (const HostWay way : {HostWay::to_host, HostWay::to_gpu})
      out.link = std::min(out.link, slowest(routes, own, way));
    out.memory = std::min(out.memory, slowest(routes, own, HostWay::within));
  }
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

double host_step_s(const TrainingSpec& training, double parameters) {
  return parameters * step_bytes(training) / training.host.memory;
}

double host_copy_s(const TrainingSpec& training, double bytes) {
  return bytes / training.host.link;
}

double checkpoint_bytes(const Architecture& model, const TrainingSpec& training) {
  return trained_parameters(model, training) *
         (bytes_of(training.dtype.param) + optimizer_bytes(training)) / real(training.gpus);
}

double storage_s(const Architecture& model, const TrainingSpec& training) {
  if (!training.checkpoint || training.checkpoint->target == CheckpointTarget::host) return 0;
  return checkpoint_bytes(model, training) * real(training.gpus) /
         training.checkpoint->rate->bytes_per_s() / real(training.checkpoint->every_steps);
}

double checkpoint_s(const Architecture& model, const TrainingSpec& training) {
  if (!training.checkpoint) return 0;
  const double copied = training.host.link > 0
                            ? host_copy_s(training, checkpoint_bytes(model, training)) /
                                  real(training.checkpoint->every_steps)
                            : 0;
  return std::max(copied, storage_s(model, training));
}

}  // namespace weft
