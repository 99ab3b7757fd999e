// SPDX-License-Identifier: Apache-2.0
// Synthetic logs: the prediction of a machine with a fault, 4 % of noise on it, must be explained by that fault; the prediction
// of the healthy machine must be normal and name nothing.
#include "calibrate/explain_log.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/explain_log_causes.hpp"
#include "calibrate/explain_log_visible.hpp"
#include "models/catalog.hpp"
#include "sim/core/loader.hpp"
#include "sim/run/run.hpp"
#include "tests/support/fabric_text.hpp"

namespace weft {
namespace {

using testing::catalogue_document;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Machine {
  std::string fabric;
  std::int64_t servers, each;
  CollectiveKind collective;
};

LogQuestion question_about(const Machine& machine) {
  Diagnostics out;
  FabricSpec spec = read_fabric(catalogue_document("fabric", machine.fabric), {}, out);
  if (machine.servers > 1) {
    spec.servers = machine.servers;
    spec.groups.front().count = machine.servers;
  }
  LogQuestion question;
  question.fabric =
      std::make_shared<const Fabric>(build_fabric(std::move(spec), link_classes(), out));
  EXPECT_TRUE(out.ok()) << out.text();
  std::map<ServerId, std::int64_t> taken;
  for (const NodeId gpu : question.fabric->gpus()) {
    if (taken[question.fabric->node(gpu).server]++ < machine.each) question.gpus.push_back(gpu);
  }
  question.collective = machine.collective;
  question.setup.harness = NcclHarness::process_per_gpu;
  question.socket_nics = {catalogue_document("model", "eth-25g-tcp"),
                          catalogue_document("model", "eth-100g-tcp")};
  return question;
}

// The same GPUs of another build of the same machine: names and positions agree.
std::vector<NodeId> same_gpus(const LogQuestion& question, const Fabric& changed) {
  std::map<std::string, NodeId> by_name;
  for (const NodeId gpu : changed.gpus()) by_name[changed.name(gpu)] = gpu;
  std::vector<NodeId> out;
  for (const NodeId gpu : question.gpus) out.push_back(by_name.at(question.fabric->name(gpu)));
  return out;
}

std::vector<Bytes> sizes_to(Bytes largest) {
  std::vector<Bytes> out;
  for (Bytes size = 1_KiB; size <= largest; size = Bytes{4 * size.count}) out.push_back(size);
  return out;
}

// What the machine would show, healthy without a variant.
std::vector<LogPoint> log_of(const LogQuestion& question, const FaultVariant* variant,
                             Bytes largest) {
  const std::vector<Bytes> sizes = sizes_to(largest);
  std::vector<NcclRow> rows;
  if (variant != nullptr && variant->spec) {
    Diagnostics out;
    const Fabric fabric = build_fabric(*variant->spec, link_classes(), out);
    EXPECT_TRUE(out.ok()) << out.text();
    rows = predict_nccl(fabric, same_gpus(question, fabric), question.collective, sizes,
                        variant->setup);
  } else {
    rows = predict_nccl(*question.fabric, question.gpus, question.collective, sizes,
                        variant != nullptr ? variant->setup : question.setup);
  }
  constexpr double kNoise[] = {0.98, 1.02, 0.96, 1.04, 1};
  std::vector<LogPoint> out;
  for (std::size_t i = 0; i < rows.size(); ++i)
    out.push_back({rows[i].bytes, rows[i].time.us() * kNoise[i % std::size(kNoise)]});
  return out;
}

std::vector<LogPoint> healthy_log(const LogQuestion& question) {
  return log_of(question, nullptr, 1_GiB);
}

std::vector<std::string> names(const LogExplanation& found) {
  std::vector<std::string> out;
  for (const LogCause& cause : found.causes) out.push_back(cause.name);
  return out;
}

const Machine kHopper2{"hgx-h100+ib-ndr", 2, 8, CollectiveKind::all_reduce};
const Machine kHopper4{"hgx-h100+ib-ndr", 4, 8, CollectiveKind::all_reduce};
const Machine kHopperPair{"hgx-h100+ib-ndr", 2, 1, CollectiveKind::send_recv};
const Machine kAmpere4{"dgx-a100+ib-hdr", 4, 8, CollectiveKind::all_gather};
const Machine kAmpere{"hgx-a100", 1, 8, CollectiveKind::all_reduce};
const Machine kHopper{"hgx-h100", 1, 8, CollectiveKind::all_reduce};
const Machine kPcie{"pcie-a100x8", 1, 8, CollectiveKind::all_reduce};
const Machine kVolta16{"dgx2", 1, 16, CollectiveKind::all_reduce};

// ---- healthy

TEST(ExplainLog, HealthyMachinesAreNormalAndNothingIsNamed) {
  for (const Machine& machine :
       {kHopper2, kHopper4, kHopperPair, kAmpere4, kAmpere, kHopper, kPcie, kVolta16}) {
    LogQuestion question = question_about(machine);
    question.rows = healthy_log(question);
    const LogExplanation found = explain_log(question);
    EXPECT_EQ(found.verdict, LogVerdict::normal) << machine.fabric;
    EXPECT_EQ(found.normal_rows(), found.rows.size()) << machine.fabric;
    EXPECT_THAT(names(found), IsEmpty()) << machine.fabric;
    EXPECT_THAT(found.notes, IsEmpty()) << machine.fabric;
  }
}

// A launch that costs more than expected is told by itself and is no slow machine.
TEST(ExplainLog, ASlowLaunchIsAnOffset) {
  LogQuestion question = question_about(kAmpere);
  question.rows = healthy_log(question);
  for (LogPoint& row : question.rows) row = {row.bytes, row.us + 20};
  const LogExplanation found = explain_log(question);
  EXPECT_EQ(found.verdict, LogVerdict::normal);
  EXPECT_EQ(found.normal_rows(), found.rows.size());
  EXPECT_NEAR(*found.launch_us - *found.expected_launch_us, 20, 2);
}

// One half of a row is an outlier, the other is not: the table's own spread.
TEST(ExplainLog, ARowIsJudgedByItsNearestMeasurement) {
  LogQuestion question = question_about(kAmpere);
  question.rows = healthy_log(question);
  LogPoint& odd = question.rows[5];
  const double us = odd.us;
  odd = {odd.bytes, 5 * us, us, 5 * us};
  EXPECT_EQ(explain_log(question).rows[5].verdict, LogVerdict::normal);
  odd = {odd.bytes, 5 * us};
  EXPECT_EQ(explain_log(question).rows[5].verdict, LogVerdict::low);
}

// ---- faults

struct Case {
  std::string fault;
  Machine machine;
  // How many others explain it as well as the right one: the false positives of this fault.
  std::size_t others;
  Bytes largest{std::int64_t{1} << 30};
};
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.fault << " on " << one.machine.fabric << " x " << one.machine.servers;
}

class Faulty : public ::testing::TestWithParam<Case> {};

TEST_P(Faulty, IsLowAndItsFaultIsNamed) {
  LogQuestion question = question_about(GetParam().machine);
  const std::vector<Fault> faults = known_faults(question);
  const auto fault = std::ranges::find(faults, GetParam().fault, &Fault::name);
  ASSERT_NE(fault, faults.end());
  question.rows = log_of(question, &fault->variants.back(), GetParam().largest);
  const LogExplanation found = explain_log(question);
  EXPECT_EQ(found.verdict, fault->faster ? LogVerdict::high : LogVerdict::low) << found.ratio;
  EXPECT_THAT(names(found), Contains(GetParam().fault));
  EXPECT_LE(found.causes.size(), 1 + GetParam().others) << ::testing::PrintToString(names(found));
  for (const LogCause& cause : found.causes) {
    EXPECT_THAT(cause.evidence, HasSubstr("were measured"));
    EXPECT_FALSE(cause.measure_next.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    ExplainLog, Faulty,
    ::testing::Values(Case{"kernel-sockets", kHopper2, 0}, Case{"kernel-sockets", kAmpere4, 0},
                      Case{"no-gpudirect", kHopperPair, 2}, Case{"no-gpudirect", kAmpere4, 3},
                      Case{"one-nic", kHopper2, 1}, Case{"one-nic", kAmpere4, 3},
                      Case{"fewer-nics", kHopper4, 3}, Case{"slow-ports", kHopperPair, 1},
                      Case{"per-connection-limit", kHopperPair, 1},
                      Case{"per-connection-limit", kHopper2, 2}, Case{"shared-uplink", kAmpere4, 3},
                      Case{"half-pcie-width", kPcie, 0}, Case{"half-pcie-width", kHopper4, 4},
                      Case{"p2p-off", kPcie, 0}, Case{"p2p-off", kAmpere, 0},
                      Case{"p2p-off", kVolta16, 0}, Case{"acs", kPcie, 1}, Case{"acs", kAmpere4, 3},
                      Case{"no-nvlink", kHopper, 0}, Case{"half-nvlinks", kAmpere, 0},
                      Case{"more-nvlinks", kAmpere, 0}));

// Faults that cost less than weft may be off by: not claimed, but told.
class Small : public ::testing::TestWithParam<Case> {};

TEST_P(Small, IsNormalAndSuspected) {
  LogQuestion question = question_about(GetParam().machine);
  const std::vector<Fault> faults = known_faults(question);
  const auto fault = std::ranges::find(faults, GetParam().fault, &Fault::name);
  ASSERT_NE(fault, faults.end());
  question.rows = log_of(question, &fault->variants.front(), GetParam().largest);
  const LogExplanation found = explain_log(question);
  EXPECT_EQ(found.verdict, LogVerdict::normal) << found.ratio;
  EXPECT_THAT(names(found), IsEmpty());
  EXPECT_THAT(found.notes, Contains(HasSubstr(GetParam().fault + " would explain it")));
}

INSTANTIATE_TEST_SUITE_P(ExplainLog, Small,
                         ::testing::Values(Case{"cross-socket", kPcie, 0},
                                           Case{"nvls-off", kHopper2, 0},
                                           Case{"ll128-off", kAmpere4, 0, 16_MiB}));

// Every change builds: one that does not could never be found.
TEST(ExplainLog, EveryFaultCanBeSimulated) {
  for (const Machine& machine : {kHopper2, kAmpere4, kPcie, kVolta16}) {
    const LogQuestion question = question_about(machine);
    for (const Fault& fault : known_faults(question)) {
      for (const FaultVariant& variant : fault.variants) {
        if (!variant.spec) continue;
        Diagnostics out;
        build_fabric(*variant.spec, link_classes(), out);
        EXPECT_TRUE(out.ok()) << fault.name << " (" << variant.detail << ")";
      }
    }
  }
}

TEST(ExplainLog, ASweepInSmallStepsIsExplainedLikeOneOfPowers) {
  LogQuestion question = question_about(kPcie);
  const std::vector<Fault> faults = known_faults(question);
  const auto fault = std::ranges::find(faults, "p2p-off", &Fault::name);
  ASSERT_NE(fault, faults.end());
  std::vector<Bytes> sizes;
  for (std::int64_t i = 0; i < 1000; ++i) sizes.push_back(Bytes{(i + 16) << 20});
  for (const NcclRow& row : predict_nccl(*question.fabric, question.gpus, question.collective,
                                         sizes, fault->variants.front().setup))
    question.rows.push_back({row.bytes, row.time.us()});
  const LogExplanation found = explain_log(question);
  EXPECT_EQ(found.rows.size(), 1000U);
  EXPECT_EQ(found.verdict, LogVerdict::low);
  EXPECT_THAT(names(found), Contains("p2p-off"));
}

// ---- what a log shows by itself

TEST(ExplainLog, BitsTakenForBytes) {
  LogQuestion question = question_about(kAmpere);
  question.rows = healthy_log(question);
  for (LogPoint& row : question.rows) row = {row.bytes, row.us * 8};
  const LogExplanation found = explain_log(question);
  EXPECT_EQ(found.verdict, LogVerdict::low);
  ASSERT_THAT(names(found), Contains("wrong-unit"));
  EXPECT_EQ(found.causes.front().name, "wrong-unit");
  EXPECT_THAT(found.causes.front().explains, HasSubstr("bits"));
}

TEST(ExplainLog, TwoRanksOnOneGpuAreToldAtAnySpeed) {
  LogQuestion question = question_about(kAmpere);
  question.rows = healthy_log(question);
  question.devices = {{0, 0, "a", "0000:01:00", ""}, {1, 0, "a", "0000:01:00", ""}};
  const LogExplanation found = explain_log(question);
  EXPECT_EQ(found.verdict, LogVerdict::normal);
  EXPECT_THAT(names(found), ::testing::ElementsAre("shared-gpu"));
  question.devices[1].host = "b";
  EXPECT_THAT(names(explain_log(question)), IsEmpty());
}

TEST(ExplainLog, FlatBusesAreThoseWithoutGaps) {
  const auto devices = [](std::initializer_list<const char*> buses) {
    std::vector<MeasuredDevice> out;
    for (const char* bus : buses) out.push_back({0, 0, "a", bus, ""});
    return out;
  };
  EXPECT_TRUE(flat_buses(devices({"0000:05:00", "0000:06:00", "0000:07:00", "0000:08:00"})));
  EXPECT_TRUE(flat_buses(devices({"0x09", "0x0a", "0x0b", "0x0c"})));
  EXPECT_FALSE(flat_buses(devices({"0000:07:00", "0000:0f:00", "0000:47:00", "0000:4e:00"})));
  EXPECT_FALSE(flat_buses(devices({"0000:05:00", "0000:06:00", "0000:07:00"})));  // too few
  EXPECT_FALSE(flat_buses({}));
}

TEST(ExplainLog, BridgedPairsAreGroups) {
  const LogQuestion pairs =
      question_about({"nvlink-bridge-pairs", 1, 4, CollectiveKind::all_reduce});
  const auto cause = between_groups(*pairs.fabric, pairs.gpus, 10);
  ASSERT_TRUE(cause);
  EXPECT_THAT(cause->evidence, HasSubstr("groups of 2 and 2 GPUs; 10.0 GB/s"));
  EXPECT_FALSE(between_groups(*pairs.fabric, pairs.gpus, 1000));
  const std::vector<NodeId> pair(pairs.gpus.begin(), pairs.gpus.begin() + 2);
  EXPECT_FALSE(between_groups(*pairs.fabric, pair, 10));
  const LogQuestion none = question_about(kPcie);
  EXPECT_FALSE(between_groups(*none.fabric, none.gpus, 10));
}

// ---- rows of a log

CollectiveSample sample(Bytes bytes, Buffers buffers, double us) {
  CollectiveSample out;
  out.bytes = bytes;
  out.buffers = buffers;
  out.time = time_from_us(us);
  return out;
}

TEST(LogPoints, KeepTheMedianAndTheExtremesOfASize) {
  MeasuredRun run;
  run.samples = {sample(8_B, Buffers::out_of_place, 12), sample(8_B, Buffers::in_place, 10),
                 sample(8_B, Buffers::out_of_place, 20), sample(8_B, Buffers::out_of_place, 13),
                 sample(16_B, Buffers::in_place, 7)};
  const std::vector<LogPoint> points = log_points(run);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].us, 13);
  EXPECT_EQ(points[0].fastest_us, 10);
  EXPECT_EQ(points[0].slowest_us, 20);
  EXPECT_EQ(points[1].us, 7);
  EXPECT_EQ(points[1].fastest_us, 7);
}

TEST(LogPoints, ASizeWithoutATimeIsLeftOut) {
  MeasuredRun run;
  run.samples = {sample(8_B, Buffers::out_of_place, 0)};
  EXPECT_THAT(log_points(run), IsEmpty());
}

TEST(LogBands, AreChosenByWhatTheBytesCross) {
  const LogQuestion two = question_about(kHopper2), one = question_about(kHopper);
  EXPECT_EQ(&band_of(*two.fabric, two.gpus), &kBandAcross);
  EXPECT_EQ(&band_of(*one.fabric, one.gpus), &kBandInside);
  const std::vector<NodeId> first(two.gpus.begin(), two.gpus.begin() + 8);
  EXPECT_EQ(&band_of(*two.fabric, first), &kBandInside);
  const LogQuestion dragonfly = question_about({"polaris", 2, 4, CollectiveKind::all_reduce});
  EXPECT_EQ(&band_of(*dragonfly.fabric, dragonfly.gpus), &kBandSlingshot);
  EXPECT_EQ(kBandInside.of(Bytes{(64 << 10) - 1}), kBandInside.most[0]);
  EXPECT_EQ(kBandInside.of(64_KiB), kBandInside.most[1]);
  EXPECT_EQ(kBandInside.of(128_MiB), kBandInside.most[4]);
}

// ---- two logs

TEST(CompareLogs, SizesThatDoNotOverlapCannotBeCompared) {
  Measurement a, b;
  MeasuredRun small, large;
  small.samples = {sample(8_B, Buffers::out_of_place, 10)};
  large.samples = {sample(1_MiB, Buffers::out_of_place, 10)};
  EXPECT_FALSE(compare_logs(a, small, b, large));
}

TEST(CompareLogs, TheRatioIsThatOfTheLargeSizes) {
  Measurement a, b;
  MeasuredRun first, second;
  for (const Bytes size : {1_MiB, 16_MiB, 64_MiB}) {
    const double us = size.value() / 1e4;
    first.samples.push_back(sample(size, Buffers::out_of_place, us));
    second.samples.push_back(sample(size, Buffers::out_of_place, size == 1_MiB ? us : us / 3));
  }
  const auto pair = compare_logs(a, first, b, second);
  ASSERT_TRUE(pair);
  EXPECT_NEAR(pair->ratio, 1.0 / 3, 0.01);
  EXPECT_EQ(pair->from, 16_MiB);
  EXPECT_EQ(pair->to, 64_MiB);
}

}  // namespace
}  // namespace weft
