// SPDX-License-Identifier: Apache-2.0
// A measured training run as a case: everything that a scenario needs to ask weft the same.
//
//   {"id": "mpt-096-7b-2048-8gpu-a100_80gb", "set": "mpt a100",
//    "weft": {"kind": "train", "fabric": "hgx-a100+roce-8x200g", "gpus": 8, "model": {"use": "mpt-7b"},
//             "seq": 2048, "global_batch": 96, "plan": {"micro_batch": 6, "fsdp": {}},
//             "dtype": {"compute": "bf16", "param": "fp32"}, "attention": "flash1", "framework": "llm-foundry",
//             "measure": "tokens_per_s_per_gpu", "assumed": ["/attention"]},
//    "value": 4641, "unit": "tokens/s/GPU"}
//
// Measures. Throughput and time need no convention; `tflops_per_gpu` and `mfu` are converted by the record's own
//            `flops_convention`, MFU with the dense peak of the inputs of its matrix products.
// Assumed.   Pointers to values that the published record lacks. A set has one value for each.
// Tolerance. How far other releases of the same configuration are from the newest one, which is the target.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/run/training_spec.hpp"

namespace weft {

enum class TrainMeasure { tokens_per_s_per_gpu, iteration_s, tflops_per_gpu, mfu };
constexpr auto enum_names(TrainMeasure) {
  using enum TrainMeasure;
  return std::array<EnumName<TrainMeasure>, 4>{{{tokens_per_s_per_gpu, "tokens_per_s_per_gpu"},
                                                {iteration_s, "iteration_s"},
                                                {tflops_per_gpu, "tflops_per_gpu"},
                                                {mfu, "mfu"}}};
}
std::string_view unit_of(TrainMeasure measure);

// How tokens chose their experts.
enum class ExpertRouting { balanced, dropped, free };
constexpr auto enum_names(ExpertRouting) {
  using enum ExpertRouting;
  return std::array<EnumName<ExpertRouting>, 3>{
      {{balanced, "balanced"}, {dropped, "dropped"}, {free, "free"}}};
}

// The `weft` object of a training run.
struct TrainCase {
  std::string kind, fabric;
  Json set, model, nccl;
  std::optional<std::int64_t> gpus, seq, global_batch, lora_rank;
  PlanSpec plan;
  DtypeSpec dtype;
  Optimizer optimizer = Optimizer::adamw;
  AttentionKernel attention = AttentionKernel::flash2;
  Fusion fusion = Fusion::te;
  bool graphs = false;
  std::optional<Dispatcher> dispatcher;
  std::optional<ExpertRouting> routing;
  std::string framework;
  TrainMeasure measure = TrainMeasure::tokens_per_s_per_gpu;
  FlopsConvention flops_convention = FlopsConvention::palm;
  std::string column;
  std::optional<double> tolerance;
  std::vector<std::string> assumed;
  Json written;  // the object as it stands in the file
  template <class V>
  void visit(V&& v) {
    v("kind", kind, "train", required);
    v("fabric", fabric, "a fabric or server of the catalogue, or a path ending in .json", required,
      not_empty);
    v("set", set, "changes to the fabric: pointer and value");
    v("gpus", gpus, "that train; a column n_gpus beats it", between(1, 10'000'000));
    v("model", model, "an LLM of the catalogue, with changes, or the model itself", required);
    v("seq", seq, "tokens of a sequence", required, between(1, 1'000'000'000));
    v("global_batch", global_batch, "sequences per step; a column global_batch beats it",
      between(1, 1'000'000'000));
    v("lora_rank", lora_rank, "only adapters of this rank are trained", between(1, 100'000));
    v("plan", plan, "as in a scenario");
    v("dtype", dtype, "as in a scenario");
    v("optimizer", optimizer, "adamw, sgd, lamb, none");
    v("attention", attention, "unfused, fused-softmax, flash1, flash2, flash3, cudnn");
    v("fusion", fusion, "eager, compiled, te");
    v("graphs", graphs, "passes are launched as CUDA graphs");
    v("dispatcher", dispatcher, "of tokens to experts; beats the plan's");
    v("routing", routing,
      "balanced (or forced to be), dropped (experts take the mean load at most), free");
    v("nccl", nccl, "release and variables, as in a scenario");
    v("framework", framework, "for people, with its release");
    v("measure", measure, "tokens_per_s_per_gpu, iteration_s, tflops_per_gpu, mfu", required);
    v("flops_convention", flops_convention, "of measures in FLOP/s");
    v("column", column, "of a table, where it is not named as the measure");
    v("tolerance", tolerance, "largest relative distance of other releases", between(0, 10));
    v("assumed", assumed, "pointers to values that the record lacks; one value for a whole set");
  }
};

}  // namespace weft
