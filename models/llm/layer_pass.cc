// SPDX-License-Identifier: Apache-2.0
#include "models/llm/layer_pass.hpp"

#include "models/llm/host.hpp"
#include "models/llm/layer_writer.hpp"

namespace weft {
double LayerPass::compute_s() const {
  double sum = 0;
  for (const PassStep& step : steps) sum += step.compute_s;
  return sum;
}

double LayerPass::flops() const {
  double sum = 0;
  for (const PassStep& step : steps) sum += step.flops;
  return sum;
}

LayerPasses::LayerPasses(const Architecture& model, const TrainingSpec& training,
                         const KernelTimes& kernels)
    : model_(model),
      training_(training),
      kernels_(kernels),
      sizes_(model, training),
      encoder_sizes_(model, training, true) {}

LayerPass LayerPasses::layer(LayerKind kind, PassKind pass, bool recomputes) const {
  LayerWriter writer(model_, training_, kind.encoder ? encoder_sizes_ : sizes_, kernels_, pass);
  writer.layer(kind, recomputes);
  return writer.finish();
}

LayerPass LayerPasses::embedding(PassKind pass) const {
  const PassSizes& sizes = model_.has_encoder() ? encoder_sizes_ : sizes_;
  LayerWriter writer(model_, training_, sizes, kernels_, pass);
  writer.embedding();
  return writer.finish();
}

LayerPass LayerPasses::loss(PassKind pass) const {
  LayerWriter writer(model_, training_, sizes_, kernels_, pass);
  writer.loss();
  return writer.finish();
}

double LayerPasses::optimizer_s(double parameters) const {
  return training_.plan.offload ? 0 : kernels_.optimizer(parameters * step_bytes(training_));
}

}  // namespace weft
