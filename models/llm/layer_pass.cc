// SPDX-License-Identifier: Apache-2.0
#include "models/llm/layer_pass.hpp"

#include "models/llm/layer_writer.hpp"

namespace weft {
namespace {

// Numbers that a step reads and writes per parameter: state is read and written, the weight written (twice where a master copy
// stands beside it), the gradient read, once more for its norm.
double optimizer_bytes(const TrainingSpec& training) {
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

}  // namespace

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
    : model_(model), training_(training), kernels_(kernels), sizes_(model, training) {}

LayerPass LayerPasses::layer(LayerKind kind, PassKind pass, bool recomputes) const {
  LayerWriter writer(model_, training_, sizes_, kernels_, pass);
  writer.layer(kind, recomputes);
  return writer.finish();
}

LayerPass LayerPasses::embedding(PassKind pass) const {
  LayerWriter writer(model_, training_, sizes_, kernels_, pass);
  writer.embedding();
  return writer.finish();
}

LayerPass LayerPasses::loss(PassKind pass) const {
  LayerWriter writer(model_, training_, sizes_, kernels_, pass);
  writer.loss();
  return writer.finish();
}

double LayerPasses::optimizer_s(double parameters) const {
  return kernels_.optimizer(parameters * optimizer_bytes(training_));
}

}  // namespace weft
