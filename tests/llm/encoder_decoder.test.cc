// SPDX-License-Identifier: Apache-2.0
// A model with an encoder and a decoder, trained: operations, memory and messages against what they are by hand.
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "models/llm/activations.hpp"
#include "models/llm/flops.hpp"
#include "models/llm/layer_pass.hpp"
#include "models/llm/memory.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/llms.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using test::number;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::llm;
using enum CollectiveKind;

// t5-base: V, h, heads x 64 = q, d_ff, layers of each stack.
constexpr double kV = 32128, kH = 768, kQ = 768, kF = 3072, kL = 12, kHeads = 12;
constexpr std::int64_t kRead = 512, kWritten = 128;
constexpr double kE = kRead, kD = kWritten;

TrainingSpec training(std::int64_t tp = 1, bool sp = false) {
  TrainingSpec out;
  out.seq = kRead;
  out.decoder_seq = kWritten;
  out.plan.tp = tp;
  out.plan.sp = sp;
  out.plan.dp = 1;
  out.gpus = tp;
  return out;
}

// ---- operations

TEST(EncoderDecoderFlops, EachTokenMeetsItsOwnStack) {
  // Keys and values of the attention between the two are made of the encoder's tokens.
  const double encoder = kL * (4 * kH * kQ + 2 * kH * kF) + kL * 2 * kH * kQ;
  const double decoder = kL * (6 * kH * kQ + 2 * kH * kF) + kV * kH;
  // No mask before the decoder; a causal one leaves half of its own.
  const double masked = kE * kL * 4 * kQ * kE + kD * kL * 4 * kQ * (kD / 2 + kE);
  const double wanted = 3 * (2 * (kE * encoder + kD * decoder) + masked);
  EXPECT_DOUBLE_EQ(
      training_flops(llm("t5-base"), FlopsConvention::causal, {kRead, kWritten}, 1, false), wanted);
  EXPECT_DOUBLE_EQ(hardware_flops(llm("t5-base"), {kRead, kWritten}, 1, Recompute::none), wanted);
}

TEST(EncoderDecoderFlops, ConventionsCountAllOfAttentionAndWhatIsUsed) {
  const Architecture model = llm("t5-base");
  const double norms_and_positions = kL * 2 * kH + 32 * kHeads;
  const double encoder = kL * (4 * kH * kQ + 2 * kH * kF) + kL * 2 * kH * kQ + norms_and_positions;
  const double all = kE * kL * 4 * kQ * kE + kD * kL * 4 * kQ * (kD + kE);
  EXPECT_DOUBLE_EQ(training_flops(model, FlopsConvention::palm, {kRead, kWritten}, 1, false),
                   6 * (kE * encoder + kD * (model.total() - encoder)) + 3 * all);
  // As many tokens on both sides: 6 N each pair, whichever meets what.
  EXPECT_DOUBLE_EQ(training_flops(model, FlopsConvention::six_n, kRead, 2, false),
                   6 * model.total() * kE * 2);
}

// Kernels of all passes, of an odd shape too: t5-11b has heads 16 times as wide as its hidden vector.
TEST(EncoderDecoderFlops, LayersMultiplyWhatTheArchitectureMultiplies) {
  const GpuSpec gpu = testing::catalogue_gpu("h100-sxm5");
  for (const char* name : {"t5-base", "t5-11b", "flan-t5-xxl"}) {
    const Architecture model = llm(name);
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      TrainingSpec spec = training();
      spec.plan.recompute = recompute;
      const KernelTimes kernels(gpu, spec.software);
      const LayerPasses passes(model, spec, kernels);
      double sum = passes.loss(PassKind::forward).flops() + passes.loss(PassKind::backward).flops();
      for (std::int64_t i = 0; i < model.layers(); ++i) {
        sum +=
            passes.layer(model.layer(i), PassKind::forward, false).flops() +
            passes.layer(model.layer(i), PassKind::backward, recompute != Recompute::none).flops();
      }
      EXPECT_NEAR(sum / hardware_flops(model, {kRead, kWritten}, 1, recompute), 1, 0.002) << name;
    }
  }
}

// ---- tensor parallel messages

using Traffic = std::map<CollectiveKind, double>;

Traffic traffic(LayerKind kind, PassKind pass, bool sp) {
  const Architecture model = llm("t5-base");
  const TrainingSpec spec = training(4, sp);
  const KernelTimes kernels(testing::catalogue_gpu("h100-sxm5"), spec.software);
  Traffic out;
  for (const PassStep& step : LayerPasses(model, spec, kernels).layer(kind, pass, false).steps) {
    for (const CollectiveCall& call : step.calls) out[call.kind] += call.bytes;
  }
  return out;
}

TEST(EncoderDecoder, TensorParallelRanksReduceBothKindsOfTokens) {
  const Architecture model = llm("t5-base");
  const LayerKind encoder = model.layer(1), decoder = model.layer(13), join = model.layer(12);
  const double read = kE * kH * 2, written = kD * kH * 2;
  EXPECT_EQ(traffic(encoder, PassKind::forward, false), (Traffic{{all_reduce, 2 * read}}));
  // Own attention, attention to the encoder, MLP.
  EXPECT_EQ(traffic(decoder, PassKind::forward, false), (Traffic{{all_reduce, 3 * written}}));
  // Going back the gradient of the encoder's output as well.
  EXPECT_EQ(traffic(decoder, PassKind::backward, false),
            (Traffic{{all_reduce, 3 * written + read}}));
  EXPECT_EQ(traffic(decoder, PassKind::forward, true),
            (Traffic{{all_gather, 3 * written + read}, {reduce_scatter, 3 * written}}));
  // The first one embeds the decoder's tokens, whose rows are spread over the ranks.
  EXPECT_EQ(traffic(join, PassKind::forward, false), (Traffic{{all_reduce, 4 * written}}));
}

// ---- memory

TEST(EncoderDecoder, LayersKeepTheirOwnTokens) {
  const Architecture model = llm("t5-base");
  const TrainingSpec spec = training();
  const Activations kept(model, spec);
  EXPECT_DOUBLE_EQ(kept.layer(model.layer(1), Recompute::none),
                   kE * (8 * kH + 8 * kQ + 4 * kF + 4 * kHeads));
  EXPECT_DOUBLE_EQ(kept.layer(model.layer(13), Recompute::none),
                   kD * (12 * kH + 12 * kQ + 4 * kF + 8 * kHeads) + kE * 4 * kQ);
  EXPECT_DOUBLE_EQ(kept.layer(model.layer(1), Recompute::full), kE * kH * 2);
  EXPECT_DOUBLE_EQ(kept.layer(model.layer(13), Recompute::full), kD * kH * 2);
}

TEST(EncoderDecoder, StagesHoldACopyOfTheEmbeddingWhereTheDecoderBegins) {
  const Architecture model = llm("t5-base");
  TrainingSpec spec = training();
  spec.plan.pp = 4;
  Diagnostics out;
  const StageLayout layout = stage_layout(model, spec.plan, out);
  ASSERT_TRUE(out.ok()) << out.text();
  EXPECT_THAT(embedding_stages(model, layout), ElementsAre(0, 2, 3));
  double sum = 0;
  for (const std::vector<Chunk>& chunks : layout)
    sum += stage_parameters(model, spec.plan, chunks).total();
  EXPECT_DOUBLE_EQ(sum, model.total() + 2 * kV * kH);
  // Behind the encoder its output goes along with the decoder's vectors.
  const Activations activations(model, spec);
  const double read = kE * kH * 2, written = kD * kH * 2;
  EXPECT_DOUBLE_EQ(activations.boundary(layout[0].back()), read);
  EXPECT_DOUBLE_EQ(activations.boundary(layout[1].back()), read);
  EXPECT_DOUBLE_EQ(activations.boundary(layout[2].back()), read + written);
  // An output of its own is no copy.
  const Architecture untied = llm("flan-t5-xxl");
  EXPECT_THAT(embedding_stages(untied, stage_layout(untied, spec.plan, out)), ElementsAre(0, 2));
}

// ---- the step

constexpr const char* kSmall =
    R"({"weft": {"schema": 1}, "kind": "llm", "name": "small", "layers": 4, "encoder_layers": 4, "hidden": 1024,
        "heads": 16, "head_dim": 64, "vocabulary": 32128, "intermediate": 4096, "mlp": "plain",
        "positions": "relative", "position_buckets": 32, "tied": true})";

std::string job(const std::string& plan, const std::string& more = R"(, "decoder_seq": 512)") {
  return fmt::format(
      R"({{"fabric": {{"use": "hgx-h100+ib-ndr", "set": {{"/servers": 2}}}},
           "jobs": [{{"name": "t", "kind": "training", "gpus": 16, "model": {}, "seq": 2048, "global_batch": 128,
                      "plan": {}{}}}]}})",
      kSmall, plan, more);
}

TEST(EncoderDecoderStep, EverythingAddsUp) {
  for (const char* plan :
       {R"({"tp": 2, "sp": true, "pp": 2})", R"({"tp": 4, "pp": 4, "schedule": "zb-h1"})",
        R"({"fsdp": {}})", R"({"pp": 2, "zero": 1, "recompute": "full", "layout": [5, 3]})"}) {
    const Report report = test::run(job(plan));
    double sum = number(report, "compute_s") +
                 number(report, "bubble_fraction") * number(report, "step_time_s");
    for (const char* dimension : {"tp", "pp", "dp", "edp", "ep", "cp", "embed", "other"})
      sum += number(report, "exposed_comm_s", dimension);
    EXPECT_NEAR(sum / number(report, "step_time_s"), 1, 1e-6) << plan;
    EXPECT_NEAR(number(report, "tokens_per_s") * number(report, "step_time_s"), 128 * 2560, 1e-3);
  }
}

// 32 micro-batches, there and back; the mean over four stages of what three of them send.
TEST(EncoderDecoderStep, StagesSendTheEncodersOutputOn) {
  const Report report = test::run(job(R"({"pp": 4})"));
  const double read = 2048 * 1024 * 2, written = 512 * 1024 * 2;
  EXPECT_DOUBLE_EQ(number(report, "comm_bytes", "pp"), 32 * 2 * (3 * read + written) / 4);
  // Three copies of the embedding, in 32 bits: two of them travel from each on a ring.
  EXPECT_DOUBLE_EQ(number(report, "comm_bytes", "embed"), 2. * 2 * 32128 * 1024 * 4 / 4);
}

// Relative positions are a matrix per head that is added to the scores of both stacks' own attention. A kernel that
// writes scores passes over them once more in each direction, half of all with full recompute once again.
TEST(EncoderDecoderStep, RelativePositionsArePassesOverScores) {
  const GpuSpec gpu = testing::catalogue_gpu("h100-sxm5");
  LlmSpec with = llm("t5-base").spec(), without = with;
  without.positions = Positions::none;
  TrainingSpec spec = training();
  spec.software.attention = AttentionKernel::fused_softmax;
  spec.plan.micro_batch = 8;
  const KernelTimes kernels(gpu, spec.software);
  const auto added = [&](LayerKind kind, PassKind pass) {
    const auto seconds = [&](const LlmSpec& m) {
      return LayerPasses(Architecture(m), spec, kernels).layer(kind, pass, false).compute_s();
    };
    return seconds(with) - seconds(without);
  };
  const double bandwidth = gpu.memory_bandwidth->bytes_per_s() * gpu.compute->memory_share;
  const double scores = 8 * kHeads * kE * kE, start = gpu.compute->kernel_start.seconds();
  const LayerKind inner = llm("t5-base").layer(1), first = llm("t5-base").layer(0);
  EXPECT_NEAR(added(inner, PassKind::forward), scores * (4 + 2. / 8) / bandwidth + start, 1e-12);
  EXPECT_NEAR(added(inner, PassKind::backward), scores * (2 + 4. / 8) / bandwidth + start, 1e-12);
  const double made = added(first, PassKind::forward) - added(inner, PassKind::forward);
  EXPECT_GT(made, kHeads * kE * kE * 2 * 3 / bandwidth);  // once for the batch, in each direction
  EXPECT_NEAR(added(first, PassKind::backward) - added(inner, PassKind::backward), made, 1e-12);
  // Fused, the bias is read and its gradient written, which arithmetic may hide.
  spec.software.attention = AttentionKernel::flash2;
  EXPECT_GE(added(inner, PassKind::forward), 0);
  EXPECT_GE(added(inner, PassKind::backward), 0);
}

TEST(EncoderDecoderStep, AShorterAnswerTakesLessTime) {
  const double whole = number(test::run(job("{}", "")), "compute_s"),
               part = number(test::run(job("{}")), "compute_s");
  EXPECT_LT(part, whole);
  EXPECT_GT(part, whole / 2);
}

// NeMo-Framework-Launcher, T5 3B on one DGX A100: 110,769 tokens/s, which are the encoder's (1,066,667 steps of 1,920 times 512
// are its trillion). conf/training/t5/3b.yaml: 512 and 128 tokens, TP 2, micro-batches of 24, distributed Adam, geglu, biases.
// Its positions are learned, which adds no more than a sum.
TEST(EncoderDecoderStep, IsAsFastAsT5ThreeBillionOnOneServer) {
  const Report report = test::run(
      R"({"fabric": "dgx-a100", "jobs": [{"name": "t", "kind": "training", "gpus": 8,
          "model": {"weft": {"schema": 1}, "kind": "llm", "name": "t5-3b", "layers": 24, "encoder_layers": 24,
            "hidden": 2048, "heads": 32, "head_dim": 64, "vocabulary": 29184, "intermediate": 5120, "positions": "none",
            "tied": true, "qkv_bias": true, "output_bias": true, "mlp_bias": true, "norm_bias": true},
          "seq": 512, "decoder_seq": 128, "global_batch": 1920, "attention": "fused-softmax", "dropout": true,
          "plan": {"tp": 2, "micro_batch": 24, "zero": 1}}]})");
  EXPECT_NEAR(1920 * 512 / number(report, "step_time_s") / 110769, 1, 0.05);
}

std::string refusal(const std::string& text) {
  try {
    test::run(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

std::string answers(const std::string& more) {
  return fmt::format(
      R"({{"fabric": "hgx-h100", "jobs": [{{"name": "t", "kind": "inference", "gpus": 8, "model": {},
           "plan": {{"tp": 4}}{}}}]}})",
      kSmall, more);
}

TEST(EncoderDecoderAnswers, AreReadOnceAndWrittenTokenByToken) {
  const auto run = [](int prompt, int output) {
    return test::run(
        answers(fmt::format(R"(, "requests": {{"prompt": {}, "output": {}}})", prompt, output)));
  };
  const Report whole = run(2048, 64), shorter = run(2048, 1), brief = run(16, 64);
  EXPECT_NEAR(number(whole, "ttft_s", "mean"), number(shorter, "e2e_s", "mean"), 1e-12);
  EXPECT_GT(number(whole, "ttft_s", "mean"), 1.5 * number(brief, "ttft_s", "mean"));
  EXPECT_LT(number(whole, "tpot_s", "mean"), number(shorter, "ttft_s", "mean"));
  EXPECT_GT(number(whole, "tpot_s", "mean"), number(brief, "tpot_s", "mean"));
}

// A token of a prompt sees those behind it.
TEST(EncoderDecoderAnswers, PromptsAreReadWhole) {
  const std::string all =
      refusal(answers(R"(, "serving": {"chunk": 64}, "requests": {"prefix_share": 0.5})"));
  EXPECT_THAT(all, HasSubstr("/jobs/0/serving/chunk: chunks of prompts, where an encoder reads"));
  EXPECT_THAT(all, HasSubstr("/jobs/0/requests/prefix_share: a part that was read before"));
  EXPECT_THAT(
      refusal(answers(R"(, "requests": {"trace": [{"prompt": 64, "output": 2, "cached": 0.5}]})")),
      HasSubstr("/jobs/0/requests/trace/0/cached: a part that was read before"));
}

// As a step that is longer than the model's matrix of positions is.
TEST(Answers, StayWithinLearnedPositions) {
  const auto refused = [](const std::string& requests) {
    return refusal(fmt::format(
        R"({{"fabric": "hgx-h100", "jobs": [{{"name": "a", "kind": "inference", "gpus": 8,
             "model": {{"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 99,
                        "n_positions": 1024}}, "plan": {{"tp": 4}}, "requests": {}}}]}})",
        requests));
  };
  EXPECT_THAT(refused(R"({"prompt": 1000, "output": 25})"),
              HasSubstr("/jobs/0/requests: 1025 tokens with the answer, the model has learned "
                        "positions for 1024"));
  EXPECT_EQ(refused(R"({"prompt": 1000, "output": 24})"), "");
  EXPECT_THAT(refused(R"({"trace": [{"prompt": 9, "output": 9}, {"prompt": 2000, "output": 1}]})"),
              HasSubstr("/jobs/0/requests/trace/1: 2001 tokens"));
}

TEST(EncoderDecoderStep, RefusesWhatIsNotThereYet) {
  EXPECT_THAT(refusal(job(R"({"cp": 2})")),
              HasSubstr("/plan/cp: not yet: context parallel ranks of a model with an encoder"));
  EXPECT_THAT(refusal(job(R"({"pp": 2, "vpp": 2})")), HasSubstr("/plan/vpp: not yet"));
  EXPECT_THAT(refusal(job(R"({"tp": 8, "sp": true})", R"(, "decoder_seq": 100)")),
              HasSubstr("100 tokens of the decoder do not divide by tp 8"));
  const std::string alone = refusal(
      R"({"fabric": "hgx-h100", "jobs": [{"name": "t", "kind": "training", "gpus": 8, "model": {"use": "llama-3-8b"},
          "seq": 2048, "decoder_seq": 512, "global_batch": 8}]})");
  EXPECT_THAT(alone, HasSubstr("/decoder_seq: the model has a decoder alone"));
}

}  // namespace
}  // namespace weft
