// SPDX-License-Identifier: Apache-2.0
// Writes a pass step by step: kernels join the open step, a collective after it closes it, one beside it runs with the kernels
// that follow. Knows what tensor parallel linear layers do in each pass, as Megatron-LM does them:
//
//                 sequence parallel                      without
//   column        gather X, product                      product
//   row           product, scatter Y                     product, all-reduce Y
//   column back   dX beside gather X; dW beside scatter dX    dX; dW beside all-reduce dX
//   row back      gather dY; dX, dW                      dX, dW
//
// With plan.overlap.tp a gather or scatter runs chunk by chunk beside its own product, all but the first chunk of tp; the product
// is then tp smaller kernels.
#pragma once

#include <initializer_list>

#include "models/llm/layer_pass.hpp"

namespace weft {

struct Linear {
  double tokens = 0, in = 0, out = 0, groups = 1;
  bool adapted = true, exact = false;  // has LoRA adapters; not in FP8
};
using Linears = std::initializer_list<Linear>;

class PassWriter {
 public:
  PassWriter(const PassSizes& sizes, const KernelTimes& kernels, PassKind pass);

  bool forward() const { return pass_ == PassKind::forward; }
  bool inputs() const { return pass_ == PassKind::backward || pass_ == PassKind::backward_inputs; }
  bool weights() const {
    return pass_ == PassKind::backward || pass_ == PassKind::backward_weights;
  }

  // Element-wise work: reads and writes `moves` times so many activations; `kernels` when not fused.
  void memory(double elements, double moves, double kernels = 1);
  void kernel(double seconds, double flops = 0);
  void attention(const AttentionCall& call, double times = 1);
  void scan_product(const Gemm& gemm, double times);  // flops are counted apart
  void host(double seconds) { host_s_ += seconds; }   // beyond the launches of kernels
  void flops(double count) { pass_steps_.back().flops += count; }

  // A collective over more than one rank; nothing otherwise.
  void after(Dimension dimension, CollectiveKind kind, double bytes);
  void open();  // what follows is a step of its own
  void beside(Dimension dimension, CollectiveKind kind, double bytes, double share,
              double rounds = 1);
  // Of the open step, for calls that join it later.
  std::size_t here() const { return pass_steps_.size() - 1; }
  void beside_step(std::size_t step, Dimension dimension, CollectiveKind kind, double bytes);

  // `pieces`: kernels that the tokens are split over.
  void product(const Linear& linear, double pieces = 1);
  void input_gradient(const Linear& linear, double pieces = 1);
  void weight_gradient(const Linear& linear);
  // `width` of the gathered (and, going back, scattered) activations per token.
  void column(Linears linears, double width);
  void row(Linears linears);
  void column_back(Linears linears, double width);
  void row_back(Linears linears);

  LayerPass finish();

 private:
  double ranks(Dimension dimension) const;
  Precision precision(const Linear& linear) const;
  void cast(double elements);
  void rows(const Linear& linear, double in, double out, double pieces);
  template <class Each>
  void of_gathered(Linears linears, double width, const Each& each);
  bool trained() const { return sizes_.lora <= 0; }
  double chunks() const { return (sizes_.tp - 1) / sizes_.tp; }

  const PassSizes& sizes_;
  const KernelTimes& kernels_;
  PassKind pass_;
  std::vector<PassStep> pass_steps_;
  double host_s_ = 0;
};

}  // namespace weft
