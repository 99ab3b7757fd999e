// SPDX-License-Identifier: Apache-2.0
// Experts of LayerWriter. With sequence parallelism every rank routes its own tokens and the ranks of an expert gather what they
// share; without it the ranks of a tensor parallel group route the same tokens and add up their results.
#include <algorithm>
#include <cmath>

#include "models/llm/layer_writer.hpp"

namespace weft {
namespace {

constexpr double kRouterMoves = 8, kRouterKernels = 8;  // softmax, top-k, counts, in 32 bits

}  // namespace

// The busiest rank has `expert_skew` times the mean; a capacity drops what is beyond it.
LayerWriter::ExpertSizes LayerWriter::expert_sizes() const {
  const ExpertsSpec& e = *spec_.experts;
  const PlanSpec& plan = training_.plan;
  const double load = plan.expert_load();
  ExpertSizes out;
  out.width = e.latent_size > 0 ? real(e.latent_size) : s_.hidden;
  out.inner = real(e.size) / s_.etp;
  const double top_k = real(e.top_k);
  out.routed = s_.local * top_k * load;
  out.copies = (plan.dispatcher == Dispatcher::deepep ? distinct_copies() : top_k) * load;
  out.worked = s_.sp && s_.etp > 1 ? out.routed * s_.etp : out.routed;
  out.groups = std::max(1.0, real(e.count) / s_.ep);
  out.rows = out.worked / out.groups;
  return out;
}

// Kernels of DeepEP's kind send a token once to a rank, however many of its experts are there; between servers once to a server,
// whose ranks pass it on over faster links under the way of the next. Experts are drawn evenly.
double LayerWriter::distinct_copies() const {
  const double top_k = real(spec_.experts->top_k), each = real(training_.host.server_gpus);
  const auto distinct = [&](double places) {
    return places * (1 - std::pow(1 - 1 / places, top_k));
  };
  const double servers = s_.ep * s_.etp / each;
  if (servers <= 1) return distinct(s_.ep);
  const double most = real(training_.plan.expert_servers);
  return most > 0 ? std::min(most, distinct(servers)) : distinct(servers);
}

void LayerWriter::permute(bool backward) {
  const ExpertSizes x = expert_sizes();
  if (!backward || w_.inputs()) w_.memory(x.width * (s_.local + x.routed), 1, 2);
}

// Over ep: to the experts or from them. Another micro-batch's exchange runs beside step `beside` where the plan overlaps them.
void LayerWriter::exchange_tokens(bool into, std::size_t beside) {
  const ExpertSizes x = expert_sizes();
  const bool gathered = training_.plan.dispatcher == Dispatcher::all_gather;
  const auto kind = !gathered ? CollectiveKind::all_to_all
                    : into    ? CollectiveKind::all_gather
                              : CollectiveKind::reduce_scatter;
  const double bytes = s_.local * x.width * s_.bytes * (gathered ? s_.ep : x.copies);
  if (training_.plan.overlap.ep)
    w_.beside_step(beside, Dimension::ep, kind, bytes);
  else
    w_.after(Dimension::ep, kind, bytes);
}

// Over the ranks that share the columns of an expert.
void LayerWriter::share_tokens(bool into) {
  if (!s_.sp || s_.etp <= 1) return;
  const ExpertSizes x = expert_sizes();
  const bool gathered = training_.plan.dispatcher == Dispatcher::all_gather;
  const double tokens = gathered ? s_.local * s_.ep * s_.etp : x.worked;
  w_.after(Dimension::tp, into ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter,
           tokens * x.width * s_.bytes);
}

void LayerWriter::experts() {
  const ExpertsSpec& e = *spec_.experts;
  const ExpertSizes x = expert_sizes();
  const Linear router{s_.local, s_.hidden, real(e.count), 1, false, true};
  w_.host(kernels_.host_experts(x.groups));
  norm(s_.local * s_.hidden);
  w_.product(router);
  w_.memory(s_.local * real(e.count), kRouterMoves, kRouterKernels);
  if (e.shared_size > 0) mlp(real(e.shared_size));
  if (e.latent_size > 0) w_.product({s_.local, s_.hidden, x.width});
  permute(false);
  exchange_tokens(true, core_step_);
  share_tokens(true);
  w_.open();
  w_.product({x.rows, x.width, mlp_inputs() * x.inner, x.groups});
  activation(x.worked, x.inner, false);
  w_.product({x.rows, x.inner, x.width, x.groups});
  const std::size_t working = w_.here();
  share_tokens(false);
  exchange_tokens(false, working);
  permute(false);
  if (e.latent_size > 0) w_.product({s_.local, x.width, s_.hidden});
  if (!s_.sp && s_.etp > 1)
    w_.after(Dimension::tp, CollectiveKind::all_reduce, s_.tokens * s_.hidden * s_.bytes);
  add();
}

void LayerWriter::experts_back() {
  const ExpertsSpec& e = *spec_.experts;
  const ExpertSizes x = expert_sizes();
  const Linear router{s_.local, s_.hidden, real(e.count), 1, false, true};
  const Linear in{x.rows, x.width, mlp_inputs() * x.inner, x.groups};
  const Linear out{x.rows, x.inner, x.width, x.groups};
  const Linear down{s_.local, s_.hidden, x.width}, up{s_.local, x.width, s_.hidden};
  const auto back = [&](const Linear& l) {
    if (w_.inputs()) w_.input_gradient(l);
    if (w_.weights()) w_.weight_gradient(l);
  };
  if (w_.inputs()) w_.host(kernels_.host_experts(x.groups));
  if (w_.weights()) w_.host(kernels_.host_experts(x.groups));
  add_back();
  if (e.latent_size > 0) back(up);
  permute(true);
  w_.open();
  experts_step_ = w_.here();
  if (w_.inputs()) {
    exchange_tokens(true, experts_step_);
    share_tokens(true);
  }
  back(out);
  activation(x.worked, x.inner, true);
  back(in);
  if (w_.inputs()) {
    share_tokens(false);
    if (training_.plan.overlap.ep)
      exchange_pending_ = true;  // beside what comes before the experts
    else
      exchange_tokens(false, 0);
  }
  permute(true);
  if (e.latent_size > 0) back(down);
  if (!s_.sp && s_.etp > 1 && w_.inputs())
    w_.after(Dimension::tp, CollectiveKind::all_reduce, s_.tokens * s_.hidden * s_.bytes);
  if (e.shared_size > 0) mlp_back(real(e.shared_size));
  back(router);
  if (w_.inputs()) w_.memory(s_.local * real(e.count), kRouterMoves, kRouterKernels);
  norm_back(s_.local * s_.hidden);
}

}  // namespace weft
