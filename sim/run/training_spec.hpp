// SPDX-License-Identifier: Apache-2.0
// A training job: how a model is spread over GPUs and what runs on each of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/config.hpp"
#include "sim/run/llm_spec.hpp"

namespace weft {

enum class PipelineSchedule { gpipe, one_f_one_b, interleaved, zb_h1, zb_h2, dualpipe };
constexpr auto enum_names(PipelineSchedule) {
  using enum PipelineSchedule;
  return std::array<EnumName<PipelineSchedule>, 6>{{{gpipe, "gpipe"},
                                                    {one_f_one_b, "1f1b"},
                                                    {interleaved, "1f1b-interleaved"},
                                                    {zb_h1, "zb-h1"},
                                                    {zb_h2, "zb-h2"},
                                                    {dualpipe, "dualpipe"}}};
}

enum class Recompute { none, selective, full };
constexpr auto enum_names(Recompute) {
  using enum Recompute;
  return std::array<EnumName<Recompute>, 3>{
      {{none, "none"}, {selective, "selective"}, {full, "full"}}};
}

enum class AttentionKernel { unfused, fused_softmax, flash1, flash2, flash3, cudnn };
constexpr auto enum_names(AttentionKernel) {
  using enum AttentionKernel;
  return std::array<EnumName<AttentionKernel>, 6>{{{unfused, "unfused"},
                                                   {fused_softmax, "fused-softmax"},
                                                   {flash1, "flash1"},
                                                   {flash2, "flash2"},
                                                   {flash3, "flash3"},
                                                   {cudnn, "cudnn"}}};
}

enum class Fusion { eager, compiled, te };
constexpr auto enum_names(Fusion) {
  using enum Fusion;
  return std::array<EnumName<Fusion>, 3>{{{eager, "eager"}, {compiled, "compiled"}, {te, "te"}}};
}

enum class Precision { fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4 };
constexpr auto enum_names(Precision) {
  using enum Precision;
  return std::array<EnumName<Precision>, 7>{{{fp32, "fp32"},
                                             {tf32, "tf32"},
                                             {fp16, "fp16"},
                                             {bf16, "bf16"},
                                             {fp8, "fp8"},
                                             {mxfp8, "mxfp8"},
                                             {nvfp4, "nvfp4"}}};
}
// Of one number in memory, block scales included.
double bytes_of(Precision precision);

enum class Optimizer { adamw, sgd, lamb, none };
constexpr auto enum_names(Optimizer) {
  using enum Optimizer;
  return std::array<EnumName<Optimizer>, 4>{
      {{adamw, "adamw"}, {sgd, "sgd"}, {lamb, "lamb"}, {none, "none"}}};
}

enum class ContextParallel { ring, all_gather, ulysses };
constexpr auto enum_names(ContextParallel) {
  using enum ContextParallel;
  return std::array<EnumName<ContextParallel>, 3>{
      {{ring, "ring"}, {all_gather, "all-gather"}, {ulysses, "ulysses"}}};
}

enum class Dispatcher { all_to_all, all_gather, deepep };
constexpr auto enum_names(Dispatcher) {
  using enum Dispatcher;
  return std::array<EnumName<Dispatcher>, 3>{
      {{all_to_all, "all-to-all"}, {all_gather, "all-gather"}, {deepep, "deepep"}}};
}

// Fully sharded data parallelism (PyTorch FSDP; ZeRO-3 by another name).
struct FsdpSpec {
  std::optional<std::int64_t> shard;
  bool reshard = true;
  std::int64_t prefetch = 1;
  bool reduce_every_micro_batch = true;
  template <class V>
  void visit(V&& v) {
    v("shard", shard,
      "ranks that hold one copy together, hybrid sharding when fewer than dp; default: dp",
      between(1, 10'000'000));
    v("reshard", reshard, "weights are dropped after the forward pass and gathered again");
    v("prefetch", prefetch, "layers gathered ahead", between(0, 1000));
    v("reduce_every_micro_batch", reduce_every_micro_batch,
      "false: gradients are reduced after the last micro-batch only");
  }
};

struct OverlapSpec {
  bool grad_reduce = true, param_gather = true, tp = false, tp_backward = true, pp = true,
       ep = false, cp = true;
  template <class V>
  void visit(V&& v) {
    v("grad_reduce", grad_reduce, "gradients are reduced bucket by bucket under the backward pass");
    v("param_gather", param_gather, "weights are gathered under the next forward pass");
    v("tp", tp, "tensor parallel collectives run chunk by chunk beside the matrix products");
    v("tp_backward", tp_backward,
      "gradients of inputs are reduced, and inputs gathered once more, beside other products of "
      "the "
      "backward pass (Megatron-LM); false: inputs are kept, gradients reduced behind (PyTorch)");
    v("pp", pp, "sends between stages do not hold up their GPU");
    v("ep", ep, "expert all-to-alls run under the work of another micro-batch");
    v("cp", cp, "keys and values travel under the attention of the part before");
  }
};

struct PlanSpec {
  std::int64_t tp = 1, pp = 1, ep = 1, etp = 0, cp = 1, vpp = 1, micro_batch = 1, zero = 0;
  std::optional<std::int64_t> dp;
  bool sp = false, scatter_sends = true;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  Json layout;
  Recompute recompute = Recompute::none;
  std::optional<std::int64_t> recompute_layers;
  ContextParallel context = ContextParallel::ring;
  Dispatcher dispatcher = Dispatcher::all_to_all;
  std::optional<FsdpSpec> fsdp;
  OverlapSpec overlap;
  Bytes bucket{100'000'000};
  double expert_skew = 1, expert_capacity = 0;
  std::int64_t expert_servers = 0;
  bool offload = false, pad = false;
  Place place;
  std::string pointer;

  std::int64_t expert_tp() const { return etp > 0 ? etp : tp; }
  // Ranks of a tensor parallel group that hold the same activations send one part each.
  bool scatters() const { return scatter_sends && tp > 1 && !sp; }
  // Weights are divided over replicas.
  bool sharded() const { return fsdp.has_value() || zero == 3; }
  // Of `replicas` that hold the same, those that share one copy of sharded state.
  std::int64_t shard_ranks(std::int64_t replicas) const {
    return fsdp && fsdp->shard && *fsdp->shard < replicas ? *fsdp->shard : replicas;
  }
  // The `index`-th layer of a chunk.
  bool recomputes(std::int64_t index) const {
    return recompute != Recompute::none && (!recompute_layers || index < *recompute_layers);
  }
  // Load of the busiest rank of experts over the mean, after what a capacity drops.
  double expert_load() const {
    return expert_capacity > 0 && expert_capacity < expert_skew ? expert_capacity : expert_skew;
  }
  template <class V>
  void visit(V&& v) {
    v("tp", tp, "tensor parallel ranks", between(1, 1'000'000));
    v("pp", pp, "pipeline stages", between(1, 100'000));
    v("dp", dp, "data parallel replicas; default: what the GPUs leave", between(1, 10'000'000));
    v("ep", ep, "ranks that share the experts of a layer; part of dp x cp", between(1, 1'000'000));
    v("etp", etp, "tensor parallel ranks of one expert; 0: as tp", between(0, 1'000'000));
    v("cp", cp, "ranks that share a sequence", between(1, 1'000'000));
    v("vpp", vpp, "chunks of layers per stage, interleaved", between(1, 10'000));
    v("micro_batch", micro_batch, "sequences per pass", between(1, 1'000'000));
    v("zero", zero, "1: optimizer state is sharded over dp, 2: gradients too, 3: weights too",
      between(0, 3));
    v("sp", sp, "sequence parallel between tensor parallel parts (needs tp > 1)");
    v("scatter_sends", scatter_sends,
      "without sp: tensor parallel ranks send a part each to the next stage, which gathers them "
      "(Narayanan 2021, 4.1)");
    v("schedule", schedule, "gpipe, 1f1b, 1f1b-interleaved, zb-h1, zb-h2, dualpipe");
    v("layout", layout,
      "\"even\" (default), \"with-ends\" (embedding and loss count as a layer), or layers per "
      "stage "
      "(and chunk) as a list");
    v("recompute", recompute, "none, selective (the core of attention), full");
    v("recompute_layers", recompute_layers, "only so many layers of a stage recompute",
      between(0, 100'000));
    v("context", context, "how cp exchanges keys and values: ring, all-gather, ulysses");
    v("dispatcher", dispatcher, "of tokens to experts: all-to-all, all-gather, deepep");
    v("fsdp", fsdp, "fully sharded data parallelism");
    v("overlap", overlap, "what runs beside computing");
    v("bucket", bucket, "gradients reduced together", positive);
    v("expert_skew", expert_skew, "load of the busiest rank over the mean", between(1, 1000));
    v("expert_capacity", expert_capacity,
      "tokens an expert takes, over the mean; the rest is dropped; 0: no limit", between(0, 1000));
    v("expert_servers", expert_servers,
      "a token's experts lie in so many servers at most (node-limited routing); 0: no limit",
      between(0, 100'000));
    v("offload", offload,
      "optimizer state in host memory, where the host steps: gradients go there, weights come "
      "back");
    v("pad", pad, "heads and widths that tp does not divide are filled up instead of refused");
  }
};

struct DtypeSpec {
  Precision compute = Precision::bf16, param = Precision::bf16, grad = Precision::fp32,
            optimizer = Precision::fp32;
  std::optional<Precision> reduce, gather, kv;
  Precision reduced() const { return reduce.value_or(grad); }
  Precision gathered() const { return gather.value_or(param); }
  template <class V>
  void visit(V&& v) {
    v("compute", compute, "inputs of matrix products");
    v("param", param, "weights in memory");
    v("grad", grad, "gradients in memory");
    v("reduce", reduce, "gradients on the wire; default: as grad");
    v("gather", gather, "weights on the wire; default: as param");
    v("optimizer", optimizer, "master weights and moments");
    v("kv", kv,
      "keys and values in the cache of an inference job; default: as compute, 16 bits at least");
  }
};

enum class FlopsConvention { palm, causal, megatron, six_n };
constexpr auto enum_names(FlopsConvention) {
  using enum FlopsConvention;
  return std::array<EnumName<FlopsConvention>, 4>{
      {{palm, "palm"}, {causal, "causal"}, {megatron, "megatron-recompute"}, {six_n, "6n"}}};
}

// What runs on a GPU, whatever the plan.
struct SoftwareSpec {
  AttentionKernel attention = AttentionKernel::flash2;
  Fusion fusion = Fusion::te;
  bool graphs = false, dropout = false;
  double jitter = 0;
  // Time of the slowest of `ranks` over the mean: the expected maximum of as many normal deviates, first order.
  double slowest_of(std::int64_t ranks) const;
  template <class V>
  void visit(V&& v) {
    v("attention", attention, "unfused, fused-softmax, flash1, flash2, flash3, cudnn");
    v("fusion", fusion, "of element-wise work: eager, compiled, te");
    v("graphs", graphs, "passes are launched as CUDA graphs");
    v("dropout", dropout, "masks of dropout are kept, as for models of the GPT-3 era");
    v("jitter", jitter, "relative spread of compute times between ranks; the slowest of all counts",
      between(0, 1));
  }
};

struct StepsSpec {
  std::int64_t warmup = 0, measure = 1;
  template <class V>
  void visit(V&& v) {
    v("warmup", warmup, "steps before those that count", between(0, 100'000));
    v("measure", measure, "steps that the report averages", between(1, 100'000));
  }
};

enum class CheckpointTarget { host, storage };
constexpr auto enum_names(CheckpointTarget) {
  using enum CheckpointTarget;
  return std::array<EnumName<CheckpointTarget>, 2>{{{host, "host"}, {storage, "storage"}}};
}

// Weights and optimizer state, every rank an equal part; the step waits until they are written.
struct CheckpointSpec {
  std::int64_t every_steps = 1;
  CheckpointTarget target = CheckpointTarget::host;
  std::optional<Bandwidth> rate;
  template <class V>
  void visit(V&& v) {
    v("every_steps", every_steps, "steps from one to the next", required, between(1, 100'000'000));
    v("target", target, "host: memory of the servers; storage: shared by the job");
    v("rate", rate, "of the storage, all ranks together", positive);
  }
};

// What a job finds where it is placed. Bytes per second and GPU; 0: not described.
struct HostFacts {
  std::int64_t server_gpus = 8;
  double link = 0, memory = 0;  // GPU to host; the host's memory, shared by the GPUs of a server
};

// Keys of a training job, beside those of every job.
struct TrainingKeys {
  Json model;
  std::optional<std::int64_t> seq, decoder_seq, global_batch;
  StepsSpec steps;
  PlanSpec plan;
  DtypeSpec dtype;
  SoftwareSpec software;
  Optimizer optimizer = Optimizer::adamw;
  FlopsConvention flops = FlopsConvention::palm;
  std::optional<std::int64_t> lora_rank;
  std::optional<CheckpointSpec> checkpoint;
  template <class V>
  void visit(V&& v) {
    v("model", model, "an LLM of the catalogue, or a config.json of Hugging Face");
    v("seq", seq, "tokens of a sequence; of the encoder's, where there is one",
      between(1, 1'000'000'000));
    v("decoder_seq", decoder_seq, "tokens that a decoder behind an encoder writes; default: seq",
      between(1, 1'000'000'000));
    v("global_batch", global_batch, "sequences per step", between(1, 1'000'000'000));
    v("steps", steps, "warm-up and measured steps");
    v("plan", plan, "how the model is spread over the GPUs");
    v("dtype", dtype, "number formats by role");
    software.visit(v);
    v("optimizer", optimizer, "adamw, sgd, lamb, none");
    v("flops_convention", flops,
      "how the report counts a model's FLOPs: palm, causal, megatron-recompute, 6n");
    v("lora_rank", lora_rank, "fine-tuning of adapters of this rank; the model itself is frozen",
      between(1, 100'000));
    v("checkpoint", checkpoint, "states are written now and then");
  }
};

struct TrainingSpec {
  LlmSpec model;
  // `gpus` is 0 when the job takes all of the fabric: whoever knows the fabric fills it in, and `host`.
  std::int64_t seq = 2048, global_batch = 1, gpus = 1;
  std::int64_t decoder_seq = 0;  // of a model with an encoder; 0: as seq
  HostFacts host;
  StepsSpec steps;
  PlanSpec plan;
  std::vector<std::string> order{"tp", "cp", "dp", "pp"};  // of ranks, fastest first
  DtypeSpec dtype;
  SoftwareSpec software;
  Optimizer optimizer = Optimizer::adamw;
  FlopsConvention flops = FlopsConvention::palm;
  std::optional<std::int64_t> lora_rank;
  std::optional<CheckpointSpec> checkpoint;

  std::string pointer;                  // of the job
  std::shared_ptr<const Json> written;  // the job as it was written, for the places of messages
  // Where the value at `key` ("/plan/tp") was written, or what is nearest to it.
  Place place_of(std::string_view key) const;
};

// The job at `pointer`. Problems go to `out`, use the result only when out.ok(). `gpus` and `order` are the job's.
// read_model_job: what every job with a model has, whether it trains or not.
TrainingSpec read_model_job(const Json& job, const std::string& pointer, TrainingKeys keys,
                            std::optional<std::int64_t> gpus, std::vector<std::string> order,
                            Diagnostics& out);
TrainingSpec read_training(const Json& job, const std::string& pointer, TrainingKeys keys,
                           std::optional<std::int64_t> gpus, std::vector<std::string> order,
                           Diagnostics& out);

// Keys of a training job among those of `job`.
std::vector<std::string> training_keys_in(const Json& job);

}  // namespace weft
