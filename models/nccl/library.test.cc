// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/library.hpp"

#include <gmock/gmock.h>

#include "models/nccl/variables.hpp"
#include "tests/support/tiny.hpp"

namespace weft {
namespace {

using testing::HasSubstr;

// A name on the list that nothing reads would be a silent mistake.
TEST(NcclVariables, EveryNameOfTheListIsRead) {
  for (const std::string_view name : nccl::variable_names()) {
    const auto problems = check_nccl_environment({{{std::string(name), "?"}}});
    ASSERT_EQ(problems.size(), 1U) << name;
    EXPECT_TRUE(problems[0].error) << name;
    EXPECT_THAT(problems[0].fact, HasSubstr("\"?\"")) << name;
  }
}

TEST(NcclVariables, OthersOfNcclAreWarnedOfAndStrangersRefused) {
  const auto problems = check_nccl_environment(
      {{{"NCCL_DEBUG", "INFO"}, {"NCCL_CROSSNIC", "1"}, {"NCCL_", "1"}, {"UCX_TLS", "rc"}}});
  ASSERT_EQ(problems.size(), 4U);  // by name
  EXPECT_EQ(problems[0].name, "NCCL_");
  EXPECT_TRUE(problems[0].error);
  EXPECT_FALSE(problems[1].error);
  EXPECT_THAT(problems[1].fact, HasSubstr("did you mean \"NCCL_CROSS_NIC\""));
  EXPECT_FALSE(problems[2].error);
  EXPECT_TRUE(problems[3].error);
}

TEST(NcclVariables, WhatIsForcedMayOverruleThem) {
  const auto overruled = [](const char* algorithm, const char* protocol, const char* algo,
                            const char* proto) {
    NcclSetup setup;
    setup.algorithm = algorithm;
    setup.protocol = protocol;
    if (*algo != 0) setup.environment.variables["NCCL_ALGO"] = algo;
    if (*proto != 0) setup.environment.variables["NCCL_PROTO"] = proto;
    std::vector<std::string> names;
    for (const NcclVariableProblem& problem : check_nccl_overrules(setup)) {
      EXPECT_FALSE(problem.error);
      names.push_back(problem.name);
    }
    return names;
  };
  using testing::ElementsAre;
  using testing::IsEmpty;
  EXPECT_THAT(overruled("ring", "", "Tree", ""), ElementsAre("algorithm"));
  EXPECT_THAT(overruled("ring", "ll", "^ring", "Simple"), ElementsAre("algorithm", "protocol"));
  EXPECT_THAT(overruled("ring", "", "allreduce:tree", ""), ElementsAre("algorithm"));
  EXPECT_THAT(overruled("ring", "ll", "Ring,Tree", "^LL128"), IsEmpty());
  EXPECT_THAT(overruled("ring", "ll", "", ""), IsEmpty());
  EXPECT_THAT(overruled("", "", "Tree", "LL"), IsEmpty());
  // Of another library, or a slip that is told elsewhere.
  EXPECT_THAT(overruled("halving_doubling", "", "Tree", ""), IsEmpty());
}

TEST(NcclScenario, JobsWithoutAnAlgorithmRunAsNcclWould) {
  const auto job = [](const std::string& nccl, const std::string& more) {
    return test::run(R"({"fabric": "hgx-h100", "nccl": {)" + nccl + R"(},
        "workload": {"collective": "all_reduce", "size": "1 GiB")" +
                     more + "}}")
        .jobs.front();
  };
  EXPECT_EQ(job(R"("version": "2.27")", "").algorithm, "nvls/simple");
  EXPECT_EQ(job(R"("version": "2.16")", "").algorithm, "ring/simple");
  EXPECT_EQ(job(R"("env": {"NCCL_NVLS_ENABLE": 0})", "").algorithm, "ring/simple");
  EXPECT_EQ(job(R"("algorithm": "tree", "protocol": "ll128")", "").algorithm, "tree/ll128");
  EXPECT_EQ(job(R"("version": "2.27")", R"(, "algorithm": "ring")").algorithm, "ring");
  EXPECT_GT(job(R"("version": "2.27")", "").channels, 1U);
}

// The same numbers as the table of nccl-tests.
TEST(NcclScenario, TakesAsLongAsThePredictedTable) {
  const Fabric fabric = test::catalogue_fabric("hgx-h100");
  NcclSetup setup;
  setup.version = *parse_nccl_version("2.21");
  setup.harness = NcclHarness::process_per_gpu;
  for (const auto& [kind, name] : {std::pair{CollectiveKind::all_reduce, "all_reduce"},
                                   {CollectiveKind::all_to_all, "all_to_all"}}) {
    for (const auto& [bytes, text] : {std::pair{64_KiB, "64 KiB"}, {1_GiB, "1 GiB"}}) {
      const Bytes sizes[] = {bytes};
      const NcclRow row = predict_nccl(fabric, fabric.gpus(), kind, sizes, setup).front();
      const Report report = test::run(
          fabric, std::string(R"("nccl": {"version": "2.21"}, "workload": {"collective": ")") +
                      name + R"(", "size": ")" + text + "\"}");
      EXPECT_EQ(test::time_of(report), row.time) << name << " " << text;
    }
  }
}

TEST(NcclScenario, WhatNcclCannotDoIsToldAtTheJob) {
  try {
    test::run(R"({"fabric": "hgx-h100", "nccl": {"algorithm": "pat"},
        "workload": {"collective": "all_reduce", "size": "1 MiB"}})");
    FAIL() << "it ran";
  } catch (const InputError& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("scenario.json:2:"));
    EXPECT_THAT(problem.what(), HasSubstr("/workload: NCCL has no all_reduce here"));
  }
}

}  // namespace
}  // namespace weft
