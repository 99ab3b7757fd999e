// SPDX-License-Identifier: Apache-2.0
#include "models/llm/plan.hpp"

#include <algorithm>
#include <numeric>
#include <ostream>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "sim/core/text.hpp"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const char* const kDense =
    R"({"kind": "llm", "layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8,
        "vocabulary": 128256, "intermediate": 28672})";
const char* const kExperts =
    R"({"kind": "llm", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8,
        "vocabulary": 32000, "experts": {"count": 8, "top_k": 2, "size": 14336}})";
const char* const kLearned =
    R"({"kind": "llm", "layers": 24, "hidden": 2048, "heads": 16, "vocabulary": 50304,
        "intermediate": 8192, "positions": "learned", "context": 2048, "mlp": "plain"})";

struct Question {
  const char* model = kDense;
  std::int64_t gpus = 64;
  std::string plan = "{}";
  std::int64_t batch = 64, seq = 4096;
};

TrainingSpec read(const Question& question, Diagnostics& out) {
  const Json job =
      parse_json(fmt::format(R"({{"model": {}, "seq": {}, "global_batch": {}, "plan": {}}})",
                             question.model, question.seq, question.batch, question.plan),
                 "job.json", out);
  TrainingKeys keys;
  read_config(job, "", keys, out);
  return read_training(job, "", keys, question.gpus, {}, out);
}

std::vector<Problem> problems_of(const Question& question) {
  Diagnostics out;
  TrainingSpec spec = read(question, out);
  EXPECT_TRUE(out.ok()) << out.text();
  check_plan(Architecture(spec.model), spec, out);
  EXPECT_EQ(legal_plan(Architecture(spec.model), spec), out.ok());
  return out.problems();
}

StageLayout layout_of(const Question& question, Diagnostics& out) {
  const TrainingSpec spec = read(question, out);
  return stage_layout(Architecture(spec.model), spec.plan, out);
}

struct Broken {
  std::string name;
  Question question;
  std::string pointer, fact, cure;
};
std::ostream& operator<<(std::ostream& out, const Broken& broken) { return out << broken.name; }

class BrokenPlan : public testing::TestWithParam<Broken> {};

TEST_P(BrokenPlan, IsRefusedAtItsKeyWithLegalNeighbours) {
  const Broken& broken = GetParam();
  const std::vector<Problem> problems = problems_of(broken.question);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].pointer, broken.pointer);
  EXPECT_THAT(problems[0].fact, HasSubstr(broken.fact));
  EXPECT_THAT(problems[0].cure, HasSubstr(broken.cure));
  EXPECT_GT(problems[0].place.line, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, BrokenPlan,
    testing::Values(
        Broken{"gpus",
               {.plan = R"({"tp": 8, "pp": 2, "dp": 3})"},
               "/plan/dp",
               "= 48 GPUs, the job has 64",
               "\"dp\": 4"},
        Broken{"gpus_never",
               {.gpus = 60, .plan = R"({"tp": 8, "dp": 7})", .batch = 56},
               "/plan/dp",
               "= 56 GPUs, the job has 60",
               "\"gpus\": 56"},
        Broken{"gpus_left",
               {.gpus = 60, .plan = R"({"tp": 8})"},
               "/plan",
               "60 GPUs cannot be split into replicas of tp 8 x pp 1 x cp 1 = 8",
               "\"gpus\": 56 or 64, or \"tp\": 4"},
        Broken{"gpus_few",
               {.gpus = 4, .plan = R"({"tp": 8})"},
               "/plan",
               "4 GPUs cannot be split",
               "at least 8 GPUs"},
        Broken{"gpus_overflow",
               {.plan = R"({"tp": 1, "pp": 80, "cp": 32, "dp": 10000000})"},
               "/plan/dp",
               "= 25600000000 GPUs",
               "\"gpus\""},
        Broken{"heads",
               {.gpus = 28, .plan = R"({"tp": 7})", .batch = 28},
               "/plan/tp",
               "64 attention heads do not divide by tp 7",
               "\"tp\": 4 or 8, or \"pad\": true"},
        Broken{"width",
               {.model = kLearned, .gpus = 16, .plan = R"({"tp": 16})", .batch = 16, .seq = 4096},
               "/seq",
               "learned positions for 2048",
               "2048 or less"},
        Broken{"layers",
               {.gpus = 128, .plan = R"({"pp": 128})"},
               "/plan/pp",
               "128 stages of layers, the model has 80 layers",
               "at most \"pp\": 80"},
        Broken{"chunks",
               {.plan = R"({"pp": 16, "vpp": 6})"},
               "/plan/pp",
               "16 stages of 6 chunks",
               "of at most 80"},
        Broken{"experts",
               {.model = kExperts, .gpus = 63, .plan = R"({"ep": 3})", .batch = 63},
               "/plan/ep",
               "8 experts do not divide over ep 3",
               "\"ep\": 2 or 4"},
        Broken{"expert_ranks",
               {.model = kExperts, .gpus = 4, .plan = R"({"ep": 8})"},
               "/plan/ep",
               "ep 8 x etp 1 do not divide the 4 ranks",
               "\"ep\": 4"},
        Broken{"no_experts",
               {.plan = R"({"ep": 2})"},
               "/plan/ep",
               "the model has no experts",
               "leave it out"},
        Broken{"expert_columns",
               {.model = kExperts, .gpus = 30, .plan = R"({"etp": 3})", .batch = 30},
               "/plan/etp",
               "14336 columns of an expert do not divide by etp 3",
               "\"etp\": 2 or 4"},
        Broken{"batch",
               {.plan = R"({"tp": 2})", .batch = 80},
               "/global_batch",
               "80 sequences do not divide by dp 32 x micro_batch 1",
               "64 or 96"},
        Broken{"batch_small",
               {.plan = "{}", .batch = 48},
               "/global_batch",
               "48 sequences",
               "\"global_batch\": 64"},
        Broken{"micro_batch",
               {.plan = R"({"tp": 8, "micro_batch": 3})"},
               "/global_batch",
               "dp 8 x micro_batch 3",
               "\"micro_batch\": 2 or 4"},
        Broken{"interleaved",
               {.plan = R"({"tp": 4, "pp": 4, "vpp": 2, "schedule": "1f1b-interleaved"})",
                .batch = 40},
               "/plan/schedule",
               "10 is not a multiple of 4",
               "8 or 12 micro-batches per replica"},
        Broken{"chunks_of_1f1b",
               {.plan = R"({"tp": 4, "pp": 4, "vpp": 2, "schedule": "1f1b"})"},
               "/plan/vpp",
               "2 chunks per stage need the interleaved schedule",
               "1f1b-interleaved"},
        Broken{"sp", {.plan = R"({"sp": true})"}, "/plan/sp", "tp is 1", "\"tp\": 2 or more"},
        Broken{"sp_seq",
               {.plan = R"({"sp": true, "tp": 8})", .seq = 4100},
               "/plan/sp",
               "4100 tokens do not divide by cp 1 x tp 8",
               "4096 or 4104"},
        Broken{"cp_seq",
               {.plan = R"({"cp": 4})", .seq = 4100},
               "/plan/cp",
               "8 parts for cp 4",
               "\"cp\": 2"},
        Broken{"ulysses",
               {.gpus = 128, .plan = R"({"tp": 8, "cp": 16, "context": "ulysses"})"},
               "/plan/cp",
               "64 do not divide by tp 8 x cp 16",
               "\"cp\": 8"},
        Broken{"zero_with_stages",
               {.plan = R"({"tp": 8, "pp": 2, "zero": 2})"},
               "/plan/zero",
               "ZeRO-2",
               "\"zero\": 1"},
        Broken{"zero_with_fsdp",
               {.plan = R"({"zero": 1, "fsdp": {}})"},
               "/plan/zero",
               "fsdp shards",
               "leave \"zero\" out"},
        Broken{"shard",
               {.plan = R"({"fsdp": {"shard": 24}})"},
               "/plan/fsdp/shard",
               "64 replicas do not divide into shards of 24",
               "\"shard\": 16 or 32"},
        Broken{"recompute_layers",
               {.plan = R"({"recompute_layers": 2})"},
               "/plan/recompute_layers",
               "nothing is recomputed",
               "\"recompute\""},
        Broken{"dualpipe_odd",
               {.gpus = 5, .plan = R"({"pp": 5, "schedule": "dualpipe"})"},
               "/plan/schedule",
               "5 stages are odd",
               "\"pp\": 4 or 6"},
        Broken{"dualpipe_short",
               {.gpus = 64, .plan = R"({"pp": 4, "schedule": "dualpipe"})", .batch = 64},
               "/plan/schedule",
               "4 with 4 stages",
               "8 micro-batches"},
        Broken{"layout_length",
               {.gpus = 64, .plan = R"({"pp": 4, "layout": [40, 40]})"},
               "/plan/layout",
               "2 entries for 4 stages",
               "a list of 4 numbers"},
        Broken{"layout_sum",
               {.plan = R"({"pp": 4, "layout": [20, 20, 20, 19]})"},
               "/plan/layout",
               "hold 79 layers, the model has 80",
               "add 1"},
        Broken{"layout_word",
               {.plan = R"({"pp": 4, "layout": "evenly"})"},
               "/plan/layout",
               "not a layout",
               "with-ends"},
        Broken{"layout_chunks",
               {.plan = R"({"pp": 2, "vpp": 2, "layout": [40, [20, 20]]})"},
               "/plan/layout/0",
               "not the layers of each chunk",
               "2 lists of 2 numbers"}),
    [](const auto& tested) { return tested.param.name; });

TEST(Plan, EveryBrokenRuleIsReportedAtOnce) {
  const auto problems = problems_of(
      {.gpus = 126,
       .plan = R"({"tp": 7, "pp": 3, "sp": true, "zero": 3, "ep": 2, "recompute_layers": 1})"});
  std::set<std::string> pointers;
  for (const Problem& problem : problems) pointers.insert(problem.pointer);
  EXPECT_THAT(pointers,
              testing::UnorderedElementsAre("/plan/tp", "/plan/sp", "/plan/zero", "/plan/ep",
                                            "/plan/recompute_layers", "/global_batch"));
}

TEST(Plan, DataParallelReplicasAreWhatTheGpusLeave) {
  Diagnostics out;
  TrainingSpec spec = read({.gpus = 128, .plan = R"({"tp": 4, "pp": 4, "cp": 2})"}, out);
  check_plan(Architecture(spec.model), spec, out);
  EXPECT_TRUE(out.ok()) << out.text();
  EXPECT_EQ(spec.plan.dp, 4);
  EXPECT_EQ(micro_batches(spec), 16);
}

TEST(Plan, FewHeadsOfKeysAndValuesAreCopied) {
  EXPECT_TRUE(problems_of({.plan = R"({"tp": 32})"}).empty());
}

TEST(Plan, ChunksWithoutAScheduleInterleave) {
  Diagnostics out;
  const TrainingSpec spec = read({.plan = R"({"tp": 4, "pp": 4, "vpp": 2})"}, out);
  EXPECT_EQ(spec.plan.schedule, PipelineSchedule::interleaved);
}

// Case S09: groups that do not fit a box. Heads that divide are taken as they are, others when the plan says so.
TEST(CaseS09, OddTensorParallelGroups) {
  const char* const wide =
      R"({"kind": "llm", "layers": 80, "hidden": 30720, "heads": 240, "vocabulary": 50304,
          "intermediate": 122880})";
  for (const std::int64_t tp : {3, 5, 6, 12, 16, 24}) {
    const std::string plan = fmt::format(R"({{"tp": {}}})", tp);
    EXPECT_TRUE(problems_of({wide, 2 * tp, plan}).empty()) << tp;
    const std::string padded = fmt::format(R"({{"tp": {}, "pad": true}})", tp);
    Diagnostics out;
    TrainingSpec spec = read({kDense, 2 * tp, padded}, out);
    check_plan(Architecture(spec.model), spec, out);
    EXPECT_TRUE(out.ok()) << out.text();
    EXPECT_EQ(out.problems().empty(), tp == 16) << tp;  // 16 divides: nothing to pad, no warning
    EXPECT_GE(spec.model.heads, 64);
    EXPECT_LE(spec.model.heads, 96);
  }
}

TEST(StageLayout, EvenGivesTheRemainderToTheFirst) {
  Diagnostics out;
  const StageLayout layout = layout_of({.plan = R"({"pp": 3})"}, out);
  ASSERT_EQ(layout.size(), 3u);
  EXPECT_THAT(layout[0], ElementsAre(Chunk{0, 27, true, false}));
  EXPECT_THAT(layout[1], ElementsAre(Chunk{27, 27, false, false}));
  EXPECT_THAT(layout[2], ElementsAre(Chunk{54, 26, false, true}));
}

TEST(StageLayout, EmbeddingAndLossCountAsLayers) {
  Diagnostics out;
  const char* const model = R"({"kind": "llm", "layers": 126, "hidden": 16384, "heads": 128,
    "kv_heads": 8, "vocabulary": 128256, "intermediate": 53248})";
  const StageLayout layout =
      layout_of({.model = model, .plan = R"({"pp": 16, "layout": "with-ends"})"}, out);
  for (std::size_t s = 0; s < 16; ++s)
    EXPECT_EQ(layout[s][0].count, s == 0 || s == 15 ? 7 : 8) << s;
}

TEST(StageLayout, ChunksFollowEachOtherOverAllStages) {
  Diagnostics out;
  const StageLayout layout = layout_of({.plan = R"({"pp": 4, "vpp": 5})"}, out);
  EXPECT_EQ(layout[1][0], (Chunk{4, 4, false, false}));
  EXPECT_EQ(layout[0][1], (Chunk{16, 4, false, false}));
  EXPECT_EQ(layout[3][4], (Chunk{76, 4, false, true}));
}

TEST(StageLayout, ListsByStageAndChunk) {
  Diagnostics out;
  const StageLayout layout =
      layout_of({.plan = R"({"pp": 2, "vpp": 2, "layout": [[10, 20], [30, 20]]})"}, out);
  EXPECT_TRUE(out.ok()) << out.text();
  EXPECT_EQ(layout[0][0], (Chunk{0, 10, true, false}));
  EXPECT_EQ(layout[1][0], (Chunk{10, 30, false, false}));
  EXPECT_EQ(layout[0][1], (Chunk{40, 20, false, false}));
  EXPECT_EQ(layout[1][1], (Chunk{60, 20, false, true}));
}

TEST(StageLayout, DualPipeHoldsBothEnds) {
  Diagnostics out;
  const StageLayout layout = layout_of({.plan = R"({"pp": 4, "schedule": "dualpipe"})"}, out);
  EXPECT_THAT(layout[0], ElementsAre(Chunk{0, 20, true, false}, Chunk{60, 20, false, true}));
  EXPECT_THAT(layout[2], ElementsAre(Chunk{40, 20, false, false}, Chunk{20, 20, false, false}));
}

PlanSpec shape(std::int64_t tp, std::int64_t cp, std::int64_t dp, std::int64_t pp) {
  PlanSpec plan;
  plan.tp = tp;
  plan.cp = cp;
  plan.dp = dp;
  plan.pp = pp;
  return plan;
}

TEST(RankLayout, MegatronOrder) {
  const RankLayout ranks(shape(2, 2, 2, 2));
  EXPECT_EQ(ranks.size(), 16);
  const RankLayout::At at = ranks.at(5);
  EXPECT_EQ(at, (RankLayout::At{1, 0, 1, 0}));
  EXPECT_THAT(ranks.tp_group(at), ElementsAre(4, 5));
  EXPECT_THAT(ranks.cp_group(at), ElementsAre(5, 7));
  EXPECT_THAT(ranks.dp_group(at, false), ElementsAre(1, 5));
  EXPECT_THAT(ranks.dp_group(at, true), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(ranks.pp_group(at), ElementsAre(5, 13));
}

TEST(RankLayout, OrderMayChange) {
  const RankLayout ranks(shape(2, 1, 3, 2), {"pp", "tp", "cp", "dp"});
  EXPECT_THAT(ranks.pp_group({0, 0, 1, 0}), ElementsAre(4, 5));
  EXPECT_THAT(ranks.tp_group({0, 0, 1, 0}), ElementsAre(4, 6));
  for (std::int64_t rank = 0; rank < ranks.size(); ++rank)
    EXPECT_EQ(ranks.rank(ranks.at(rank)), rank);
}

TEST(RankLayout, ExpertsDivideTheRanksOfAStageAnew) {
  PlanSpec plan = shape(4, 1, 4, 2);
  plan.ep = 8;
  plan.etp = 1;
  const RankLayout ranks(plan);
  // Of stage 1, ranks 16 to 31: eight neighbours share the experts, two such groups are replicas.
  EXPECT_THAT(ranks.ep_group(ranks.at(18)), ElementsAre(16, 17, 18, 19, 20, 21, 22, 23));
  EXPECT_THAT(ranks.edp_group(ranks.at(18)), ElementsAre(18, 26));
  EXPECT_THAT(ranks.etp_group(ranks.at(18)), ElementsAre(18));
}

TEST(RankLayout, ExpertsOfWholeTensorGroupsSpanReplicas) {
  PlanSpec plan = shape(2, 2, 4, 1);
  plan.ep = 4;  // etp as tp
  const RankLayout ranks(plan);
  EXPECT_THAT(ranks.etp_group(ranks.at(5)), ElementsAre(4, 5));
  EXPECT_THAT(ranks.ep_group(ranks.at(5)), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(ranks.edp_group(ranks.at(5)), ElementsAre(5, 13));
  EXPECT_EQ(expert_replicas(plan), 2);
}

// Groups of one kind are disjoint and cover all ranks.
TEST(RankLayout, GroupsPartitionTheRanks) {
  PlanSpec plan = shape(3, 2, 4, 2);
  plan.ep = 2;
  plan.etp = 3;
  using Group = std::vector<std::int64_t> (RankLayout::*)(RankLayout::At) const;
  for (const auto& order : {std::vector<std::string>{"tp", "cp", "dp", "pp"},
                            std::vector<std::string>{"dp", "pp", "cp", "tp"}}) {
    const RankLayout ranks(plan, order);
    for (const Group group :
         {&RankLayout::tp_group, &RankLayout::cp_group, &RankLayout::pp_group,
          &RankLayout::etp_group, &RankLayout::ep_group, &RankLayout::edp_group}) {
      std::vector<int> seen(static_cast<std::size_t>(ranks.size()), 0);
      for (std::int64_t rank = 0; rank < ranks.size(); ++rank) {
        const auto members = (ranks.*group)(ranks.at(rank));
        EXPECT_EQ(std::ranges::count(members, rank), 1);
        if (members.front() != rank) continue;
        for (const std::int64_t member : members) ++seen[static_cast<std::size_t>(member)];
      }
      EXPECT_EQ(std::ranges::count(seen, 1), ranks.size());
    }
  }
}

}  // namespace
}  // namespace weft
