// SPDX-License-Identifier: Apache-2.0
// Memory against formulas, against cases, and against runs that fitted or did not.
#include "models/llm/memory.hpp"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>

#include "models/llm/activations.hpp"
#include "tests/support/llms.hpp"

namespace weft {
namespace {

using testing::llm;
constexpr double kGb80 = 80e9;

// Equal chunks, the embedding first and the loss last.
StageLayout even(const Architecture& model, std::int64_t stages, std::int64_t chunks = 1) {
  StageLayout layout(static_cast<std::size_t>(stages));
  const std::int64_t each = model.layers() / (stages * chunks);
  for (std::int64_t c = 0; c < chunks; ++c) {
    for (std::int64_t s = 0; s < stages; ++s) {
      const std::int64_t at = c * stages + s;
      layout[static_cast<std::size_t>(s)].push_back(
          {at * each, each, at == 0, at == stages * chunks - 1});
    }
  }
  return layout;
}

TrainingSpec training(std::int64_t tp, std::int64_t pp, std::int64_t dp) {
  TrainingSpec out;
  out.plan.tp = tp;
  out.plan.pp = pp;
  out.plan.dp = dp;
  out.gpus = tp * pp * dp;
  out.global_batch = dp * pp * 4;
  return out;
}

double most(const std::vector<MemoryUse>& stages) {
  double out = 0;
  for (const MemoryUse& use : stages) out = std::max(out, use.total());
  return out;
}

double states(const MemoryUse& use) { return use.weights + use.gradients + use.optimizer; }

// ---- states

TEST(Memory, L02ParametersPerGpuAndEighteenBytesEach) {
  const Architecture model = llm("llama-3-70b");
  const auto parameters = [&](std::int64_t pp) {
    const TrainingSpec spec = training(8, pp, 1);
    double sum = 0;
    for (const std::vector<Chunk>& chunks : even(model, pp))
      sum += stage_parameters(model, spec.plan, chunks).total();
    return sum / static_cast<double>(pp);
  };
  EXPECT_NEAR(parameters(2), 4.41e9, 0.005e9);
  EXPECT_NEAR(parameters(8), 1.10e9, 0.005e9);
  // 2 of weights, 4 of gradients, 12 of the optimizer.
  for (const MemoryUse& use : training_memory(model, training(8, 2, 1), even(model, 2))) {
    EXPECT_NEAR(states(use), 79.4e9, 0.5e9);
    EXPECT_GT(use.total(), kGb80);
  }
  TrainingSpec deep = training(8, 8, 2);
  deep.seq = 8192;
  deep.plan.recompute = Recompute::full;
  EXPECT_LT(most(training_memory(model, deep, even(model, 8))), kGb80);
}

TEST(Memory, L08SeventyBillionDoNotFitEightGpus) {
  const Architecture model = llm("llama-2-70b");
  TrainingSpec spec = training(8, 1, 1);
  spec.dtype.grad = Precision::bf16;
  spec.plan.recompute = Recompute::full;
  const MemoryUse use = training_memory(model, spec, even(model, 1)).front();
  // 16 bytes: weights and gradients of 2, moments and master of 12.
  EXPECT_NEAR(8 * states(use), 16 * model.total(), 0.01e12);
  EXPECT_NEAR(16 * model.total(), 1.1e12, 0.01e12);
  EXPECT_GT(use.total(), kGb80);
  EXPECT_THAT(explain(use, kGb80), ::testing::HasSubstr("optimizer 103.5 GB"));
  spec.plan.offload = true;
  EXPECT_LT(training_memory(model, spec, even(model, 1)).front().total(), kGb80);
}

TEST(Memory, NarrowGradientsAreWidenedForTheStep) {
  const Architecture model = llm("llama-3-8b");
  TrainingSpec spec = training(1, 1, 1);
  spec.seq = 512;
  spec.dtype.grad = Precision::bf16;
  EXPECT_DOUBLE_EQ(training_memory(model, spec, even(model, 1)).front().activations,
                   4 * model.total());
  spec.plan.offload = true;  // the host steps
  EXPECT_LT(training_memory(model, spec, even(model, 1)).front().activations, 8e9);
}

TEST(Memory, ZeroDividesStateByState) {
  const Architecture model = llm("llama-3-8b");
  TrainingSpec spec = training(1, 1, 16);
  const double n = model.total();
  const auto check = [&](double weights, double gradients, double optimizer) {
    const MemoryUse use = training_memory(model, spec, even(model, 1)).front();
    EXPECT_DOUBLE_EQ(use.weights, weights * n);
    EXPECT_DOUBLE_EQ(use.gradients, gradients * n);
    EXPECT_DOUBLE_EQ(use.optimizer, optimizer * n);
  };
  check(2, 4, 12);
  spec.plan.zero = 1;
  check(2, 4, 12. / 16);
  spec.plan.zero = 2;
  check(2, 4. / 16, 12. / 16);
  spec.plan.zero = 3;
  check(2. / 16, 4. / 16, 12. / 16);
  spec.plan.zero = 0;
  spec.plan.fsdp = FsdpSpec{.shard = 8};
  check(2. / 8, 4. / 8, 12. / 8);
  spec.dtype.param = Precision::fp32;  // is its own master
  check(4. / 8, 4. / 8, 8. / 8);
  spec.optimizer = Optimizer::sgd;
  check(4. / 8, 4. / 8, 4. / 8);
}

TEST(Memory, FsdpGathersLayersOrAll) {
  const Architecture model = llm("llama-3-8b");
  TrainingSpec spec = training(1, 1, 8);
  spec.plan.fsdp = FsdpSpec{};
  const double kept = training_memory(model, spec, even(model, 1)).front().buffers;
  spec.plan.fsdp->reshard = false;
  const double layer = model.parameters(model.layer(0)).total();
  EXPECT_NEAR(training_memory(model, spec, even(model, 1)).front().buffers - kept, 2 * 30 * layer,
              1);
  spec.plan.fsdp->reshard = true;
  spec.plan.fsdp->reduce_every_micro_batch = false;
  EXPECT_NEAR(training_memory(model, spec, even(model, 1)).front().buffers - kept,
              4 * (model.total() - 2 * layer), 1);
}

TEST(Memory, ExpertsHaveReplicasOfTheirOwn) {
  const Architecture model = llm("mixtral-8x7b");
  TrainingSpec spec = training(2, 1, 8);
  spec.plan.ep = 8;
  spec.plan.etp = 1;
  spec.plan.zero = 1;
  const StageParameters p = stage_parameters(model, spec.plan, even(model, 1).front());
  const double experts = 32 * model.parameters(model.layer(0)).experts;
  EXPECT_DOUBLE_EQ(p.experts, experts / 8);
  EXPECT_NEAR(p.dense, (model.total() - experts) / 2, 0.001e9);
  // 16 ranks hold the experts 2 times, all else 8 times.
  const MemoryUse use = training_memory(model, spec, even(model, 1)).front();
  EXPECT_DOUBLE_EQ(use.optimizer, 12 * (p.dense / 8 + p.experts / 2));
}

TEST(Memory, ATiedOutputIsACopyOnAnotherStage) {
  const Architecture model = llm("gpt3-5b");
  const TrainingSpec spec = training(1, 2, 1);
  const StageLayout two = even(model, 2);
  const double sum = stage_parameters(model, spec.plan, two[0]).total() +
                     stage_parameters(model, spec.plan, two[1]).total();
  EXPECT_DOUBLE_EQ(sum, model.total() + 51200 * 4096.0);
  EXPECT_DOUBLE_EQ(stage_parameters(model, spec.plan, even(model, 1)[0]).total(), model.total());
}

TEST(Memory, LoraTrainsItsAdaptersAlone) {
  const Architecture model = llm("llama-2-7b");
  TrainingSpec spec = training(1, 1, 1);
  spec.lora_rank = 16;
  const MemoryUse use = training_memory(model, spec, even(model, 1)).front();
  const double adapters = 32 * 16 * (4096 + 3 * 4096 + 2 * 4096 + 2 * 4096 + 3 * 11008.0);
  EXPECT_DOUBLE_EQ(use.gradients, 4 * adapters);
  EXPECT_DOUBLE_EQ(use.weights, 2 * (model.total() + adapters));
}

// ---- activations

TrainingSpec korthikanti(std::int64_t tp, bool sp) {
  TrainingSpec spec = training(tp, 1, 1);
  spec.plan.sp = sp;
  spec.software.attention = AttentionKernel::fused_softmax;
  spec.software.dropout = true;
  return spec;
}

// arXiv 2205.05198, table 2, in units of s b h.
TEST(Activations, ALayerKeepsWhatKorthikantiCounts) {
  const Architecture model = llm("gpt3-175b");
  const double sbh = 2048 * 12288.0, scores = 5 * 96 * 2048 / 12288.0;
  const auto layer = [&](std::int64_t tp, bool sp, Recompute recompute) {
    const TrainingSpec spec = korthikanti(tp, sp);
    return Activations(model, spec).layer(model.layer(0), recompute) / sbh;
  };
  EXPECT_DOUBLE_EQ(layer(1, false, Recompute::none), 34 + scores);
  EXPECT_DOUBLE_EQ(layer(8, false, Recompute::none), 10 + 24. / 8 + scores / 8);
  EXPECT_DOUBLE_EQ(layer(8, true, Recompute::none), (34 + scores) / 8);
  EXPECT_DOUBLE_EQ(layer(8, false, Recompute::selective), 10 + 24. / 8);
  EXPECT_DOUBLE_EQ(layer(8, true, Recompute::selective), 34. / 8);
  EXPECT_DOUBLE_EQ(layer(8, false, Recompute::full), 2);
}

// "70 % and 65 % of the required memory for activations" of GPT-3 and MT-NLG, section 5.
TEST(Activations, SelectiveRecomputeSavesWhatWasPublished) {
  const auto saved = [](const char* name) {
    const Architecture model = llm(name);
    const TrainingSpec spec = korthikanti(8, true);
    const Activations activations(model, spec);
    const LayerKind kind = model.layer(0);
    return 1 -
           activations.layer(kind, Recompute::selective) / activations.layer(kind, Recompute::none);
  };
  EXPECT_NEAR(saved("gpt3-175b"), 0.70, 0.005);
  EXPECT_NEAR(saved("megatron-529.6b"), 0.65, 0.005);
}

TEST(Activations, AFlashKernelKeepsNoScores) {
  const Architecture model = llm("llama-3-8b");
  TrainingSpec spec = training(1, 1, 1);
  const double flash = Activations(model, spec).layer(model.layer(0), Recompute::none);
  spec.software.attention = AttentionKernel::unfused;
  const double unfused = Activations(model, spec).layer(model.layer(0), Recompute::none);
  EXPECT_DOUBLE_EQ(unfused - flash, 2048 * (2 * 32 * 2048.0 - 4 * 32));
}

TEST(Activations, ContextParallelRanksShareASequence) {
  const Architecture model = llm("llama-3-8b");
  TrainingSpec spec = training(1, 1, 1);
  spec.seq = 8192;
  const double whole = Activations(model, spec).layer(model.layer(0), Recompute::none);
  spec.plan.cp = 4;
  EXPECT_DOUBLE_EQ(Activations(model, spec).layer(model.layer(0), Recompute::none), whole / 4);
}

TEST(Activations, SkewAndCapacityChangeWhatArrivesAtExperts) {
  const Architecture model = llm("mixtral-8x7b");
  TrainingSpec spec = training(1, 1, 8);
  spec.plan.ep = 8;
  const auto layer = [&] {
    return Activations(model, spec).layer(model.layer(0), Recompute::none);
  };
  const double fair = layer();
  spec.plan.expert_skew = 1.5;
  const double skewed = layer();
  // Half a share more of two copies: what comes in, twice before and once after the activation.
  EXPECT_DOUBLE_EQ(skewed - fair, 2048 * 2 * 0.5 * (2 * 4096 + 6 * 14336.0));
  spec.plan.expert_capacity = 1;
  EXPECT_DOUBLE_EQ(layer(), fair);
}

// The first stage holds p micro-batches under 1F1B, all of them under GPipe, and p v + p - 1 chunks when interleaved.
TEST(Memory, TheScheduleSaysWhatIsInFlight) {
  const Architecture model = llm("gpt3-175b");
  TrainingSpec spec = training(8, 8, 1);
  spec.plan.recompute = Recompute::full;
  spec.global_batch = 64;
  const auto held = [&](std::int64_t chunks) {
    const auto stages = training_memory(model, spec, even(model, 8, chunks));
    TrainingSpec one = spec;
    one.global_batch = 1;
    one.plan.schedule = PipelineSchedule::one_f_one_b;
    const double layers = 12 * Activations(model, spec).boundary();
    return 1 +
           (stages[0].activations - training_memory(model, one, even(model, 8))[0].activations) /
               layers;
  };
  EXPECT_NEAR(held(1), 8, 1e-9);
  spec.plan.schedule = PipelineSchedule::gpipe;
  EXPECT_NEAR(held(1), 64, 1e-9);
  spec.plan.schedule = PipelineSchedule::interleaved;
  EXPECT_NEAR(held(3), (8 * 3 + 8 - 1) / 3., 1e-9);
}

// ---- runs

struct BloomRow {
  const char* model;
  std::int64_t dp, tp, pp, micro_batch, zero;
  double gib;  // 0: out of memory
};

MemoryUse bloom(const BloomRow& row) {
  const Architecture model = llm(row.model);
  TrainingSpec spec = training(row.tp, row.pp, row.dp);
  spec.global_batch = 2016 / row.dp / row.micro_batch * row.dp * row.micro_batch;
  spec.plan.micro_batch = row.micro_batch;
  spec.plan.zero = row.zero;
  spec.plan.recompute = Recompute::full;
  spec.dtype.grad = Precision::bf16;
  spec.software.attention = AttentionKernel::fused_softmax;
  const auto stages = training_memory(model, spec, even(model, row.pp));
  return *std::ranges::max_element(stages, {}, &MemoryUse::total);
}

// How many pairs a sequence orders as another does, of all that differ in both.
double concordance(const std::vector<double>& a, const std::vector<double>& b) {
  double same = 0, all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (a[i] == a[j] || b[i] == b[j]) continue;
      ++all;
      if ((a[i] < a[j]) == (b[i] < b[j])) ++same;
    }
  }
  return same / all;
}

// BigScience, chronicles-prequel: what the GPUs of the first or last stage used, as nvidia-smi rounds it. DeepSpeed keeps
// widened gradients and flat copies beside its states, about 8 bytes per sharded parameter, which are not counted here:
// predictions are 17 % low in the middle and 31 % without ZeRO. One row stands out among its neighbours and is 4 % too high.
TEST(Memory, BloomGridInOrderAndWithinAThird) {
  const BloomRow rows[] = {
      {"bloom-14400x80", 1, 8, 10, 1, 1, 73}, {"bloom-14400x80", 2, 8, 10, 1, 1, 51},
      {"bloom-14400x80", 4, 8, 10, 1, 1, 35}, {"bloom-14400x80", 4, 8, 10, 8, 1, 76},
      {"bloom-13824x80", 4, 8, 10, 2, 1, 39}, {"bloom-13824x80", 4, 8, 10, 4, 1, 53},
      {"bloom-14336x72", 4, 8, 12, 1, 1, 29}, {"bloom-14336x72", 4, 8, 12, 4, 1, 49},
      {"bloom-14336x72", 4, 8, 12, 8, 1, 69}, {"bloom-14336x72", 8, 8, 6, 1, 1, 38},
      {"bloom-14336x72", 8, 8, 6, 4, 1, 56},  {"bloom-14336x72", 4, 8, 12, 2, 0, 72},
      {"bloom-14336x72", 12, 8, 4, 4, 1, 59}, {"bloom-14336x72", 24, 8, 2, 1, 1, 65},
      {"bloom-14336x72", 8, 4, 12, 4, 1, 60}, {"bloom-14336x72", 8, 4, 12, 2, 1, 38},
      {"bloom-14336x72", 16, 4, 6, 4, 1, 75}, {"bloom-14336x72", 16, 2, 12, 2, 1, 63},
      {"bloom-14336x72", 8, 2, 24, 1, 1, 44}, {"bloom-14336x72", 8, 2, 24, 2, 1, 53}};
  std::vector<double> ratios, predicted, measured;
  for (const BloomRow& row : rows) {
    const MemoryUse use = bloom(row);
    const double ratio = use.total() / 1073741824 / row.gib;
    ratios.push_back(ratio);
    predicted.push_back(use.total());
    measured.push_back(row.gib);
    EXPECT_NEAR(ratio, 1, 0.33) << row.model << " dp" << row.dp << " tp" << row.tp << " pp"
                                << row.pp << ": " << explain(use, kGb80);
  }
  std::ranges::sort(ratios);
  EXPECT_NEAR(ratios[ratios.size() / 2], 0.83, 0.03);
  EXPECT_GT(concordance(predicted, measured), 0.9);
  for (const BloomRow& row : {BloomRow{"bloom-14336x72", 48, 8, 1, 1, 1, 0},
                              BloomRow{"bloom-14336x72", 32, 2, 6, 2, 1, 0}})
    EXPECT_GT(bloom(row).total(), kGb80) << row.tp << " " << row.pp;
}

// All of these ran (LLM Foundry); without recompute their micro-batches are about as large as goes: twice as many sequences would
// not have fitted.
TEST(Memory, MptRunsThatFittedFit) {
  struct Row {
    const char* model;
    std::int64_t seq, gpus, micro_batch;
    bool recompute, pure;
    double gib;
  };
  const Row rows[] = {
      {"mpt-13b", 16384, 8, 3, true, false, 80},   {"mpt-7b", 2048, 8, 6, false, false, 80},
      {"mpt-1b", 2048, 16, 20, false, false, 80},  {"mpt-760m", 512, 8, 96, false, false, 80},
      {"mpt-350m", 512, 8, 128, false, false, 80}, {"mpt-70b", 2048, 64, 8, true, true, 80},
      {"mpt-13b", 2048, 64, 16, true, true, 40},   {"mpt-1b", 2048, 128, 10, false, true, 40},
      {"mpt-350m", 2048, 16, 18, false, true, 40}, {"mpt-125m", 2048, 8, 26, false, true, 40}};
  for (const Row& row : rows) {
    const Architecture model = llm(row.model, {{"/context", row.seq}});
    TrainingSpec spec = training(1, 1, row.gpus);
    spec.seq = row.seq;
    spec.plan.micro_batch = row.micro_batch;
    spec.plan.fsdp = FsdpSpec{};
    spec.plan.recompute = row.recompute ? Recompute::full : Recompute::none;
    spec.dtype.param = spec.dtype.grad = row.pure ? Precision::bf16 : Precision::fp32;
    if (row.pure) spec.dtype.optimizer = Precision::bf16;
    spec.dtype.gather = Precision::bf16;
    const double capacity = row.gib * 1073741824;
    const MemoryUse use = training_memory(model, spec, even(model, 1)).front();
    EXPECT_LT(use.total(), capacity)
        << row.model << " " << row.seq << ": " << explain(use, capacity);
    if (row.recompute) continue;
    spec.plan.micro_batch *= 2;
    EXPECT_GT(training_memory(model, spec, even(model, 1)).front().total(), capacity)
        << row.model << " " << row.seq;
  }
}

TEST(Memory, ExplainShowsTheSum) {
  const MemoryUse use{.weights = 8.8e9, .gradients = 17.6e9, .activations = 1e9, .reserve = 2e9};
  EXPECT_EQ(explain(use, kGb80),
            "weights 8.8 GB + gradients 17.6 GB + activations 1.0 GB + reserve 2.0 GB = 29.4 GB of "
            "80.0 GB");
}

}  // namespace
}  // namespace weft
