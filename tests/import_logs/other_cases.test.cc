// SPDX-License-Identifier: Apache-2.0
// Captures of other benchmarks as people post them: nvbandwidth, p2pBandwidthLatencyTest, perftest, DeepEP, NVLink status and
// configurations of language models.
#include <algorithm>

#include "calibrate/log_facts.hpp"
#include "tests/import_logs/import_log_test.hpp"

namespace weft::import_test {
namespace {

using Note = ImportNote::Kind;

const MeasuredMatrix& matrix(const Result& result, std::string_view name) {
  for (const MeasuredMatrix& m : result.measurement.matrices) {
    if (m.name == name) return m;
  }
  ADD_FAILURE() << "no matrix " << name << "\n" << result.text();
  static const MeasuredMatrix none;
  return none;
}

std::optional<double> gbs(const MeasuredMatrix& m, std::string_view from, std::string_view to) {
  for (const MeasuredPair& pair : m.pairs) {
    if (pair.from == from && pair.to == to && pair.bandwidth) return pair.bandwidth->gbytes_per_s();
  }
  return std::nullopt;
}

TEST(OtherCases, O01TextAndJsonGiveEqualMatrices) {
  const Result text = import_case("nvbandwidth", "nvbandwidth-0.10-h100-8gpu.txt");
  const Result json = import_case("nvbandwidth", "nvbandwidth-h100-8gpu.json");
  ASSERT_TRUE(text.ok()) << text.text();
  ASSERT_TRUE(json.ok()) << json.text();
  ASSERT_EQ(json.measurement.matrices.size(), 3U);
  for (const MeasuredMatrix& m : json.measurement.matrices) {
    EXPECT_EQ(to_text(write_config(m)), to_text(write_config(matrix(text, m.name))));
  }
  EXPECT_EQ(text.word("/version"), "v0.10.0");
  EXPECT_EQ(text.word("/driver"), "595.71.05");
  EXPECT_EQ(json.word("/waived/0"), "multinode_device_to_device_memcpy_read_ce");
}

TEST(OtherCases, O01NvlinkHostAndLatencyAreKeptApart) {
  const Result text = import_case("nvbandwidth", "nvbandwidth-0.10-h100-8gpu.txt");
  EXPECT_GE(text.number("/gpu_to_gpu_gbs"), 390);
  EXPECT_LE(text.number("/gpu_to_gpu_gbs"), 400);
  const RawShare share = share_of_raw(text.number("/gpu_to_gpu_gbs"), 450_GBps);
  EXPECT_GE(share.ratio, 0.87);
  EXPECT_LE(share.ratio, 0.89);
  EXPECT_NEAR(text.number("/host_gbs"), 55.3, 0.1);
  EXPECT_NEAR(text.number("/latency_us"), 0.826, 0.002);  // ns in the file
  const MeasuredMatrix& latency = matrix(text, "device_to_device_latency_sm");
  EXPECT_NE(latency.definition.find("pointer chase"), std::string::npos);
  EXPECT_EQ(latency.pairs.size(), 56U);
  // "<-" of the write test: the data come from the GPU of the column.
  const MeasuredMatrix& write = matrix(text, "device_to_device_memcpy_write_ce");
  EXPECT_EQ(gbs(write, "gpu0", "gpu1"), 397.50);
  EXPECT_EQ(gbs(write, "gpu1", "gpu0"), 397.44);
  EXPECT_EQ(gbs(matrix(text, "device_to_host_memcpy_ce"), "gpu6", "cpu0"), 55.26);
  EXPECT_EQ(gbs(matrix(text, "host_to_device_memcpy_ce"), "cpu0", "gpu7"), 55.33);
}

TEST(OtherCases, O01BothWaysAreHalvedAndTheDiagonalLeftOut) {
  const Result p2p = import_case("p2p", "p2p-h100-8gpu-nvswitch.txt");
  ASSERT_TRUE(p2p.ok()) << p2p.text();
  EXPECT_EQ(p2p.number("/gpus"), 8);
  const MeasuredMatrix& both = matrix(p2p, "Bidirectional P2P=Enabled Bandwidth");
  EXPECT_TRUE(both.halved);
  EXPECT_EQ(both.traffic, CopyTraffic::opposed);
  EXPECT_EQ(both.pairs.size(), 56U);
  EXPECT_EQ(gbs(both, "gpu1", "gpu0"), 774.45 / 2);
  for (const MeasuredMatrix& m : p2p.measurement.matrices) {
    for (const MeasuredPair& pair : m.pairs) {
      EXPECT_NE(pair.from, pair.to);
      if (pair.bandwidth) {
        EXPECT_LT(pair.bandwidth->gbytes_per_s(), 450) << m.name;
      }
    }
  }
  const MeasuredMatrix& latency = matrix(p2p, "P2P=Enabled Latency, GPU");
  EXPECT_NE(latency.definition.find("timed by events on the GPU"), std::string::npos);
  EXPECT_NEAR(median_latency(latency)->us(), 2.78, 0.01);
  EXPECT_TRUE(p2p.flag("/peer_access/works"));
  EXPECT_EQ(p2p.word("/devices/7/bus"), "db");
}

TEST(OtherCases, O02BothModesOfATwoSocketBox) {
  const Result p2p = import_case("p2p", "p2p-8gpu-pcie-two-socket.txt");
  ASSERT_TRUE(p2p.ok()) << p2p.text();
  const auto& off = matrix(p2p, "Bidirectional P2P=Disabled Bandwidth");
  const auto& on = matrix(p2p, "Unidirectional P2P=Enabled Bandwidth");
  EXPECT_TRUE(off.staged);
  EXPECT_FALSE(on.staged);
  EXPECT_GT(*gbs(off, "gpu0", "gpu4"), *gbs(off, "gpu0", "gpu1"));  // across sockets is faster
  EXPECT_GT(*gbs(on, "gpu0", "gpu2"), *gbs(on, "gpu0", "gpu4"));
  EXPECT_TRUE(p2p.flag("/peer_access/works"));
}

TEST(OtherCases, O03EqualMatricesMeanNoPeerAccess) {
  const Result four = import_case("p2p", "p2p-4gpu-no-peer-access.txt");
  const Result two = import_case("p2p", "p2p-2gpu-cannot-access-38gbs.txt");
  for (const Result* result : {&four, &two}) {
    ASSERT_TRUE(result->ok()) << result->text();
    EXPECT_FALSE(result->flag("/peer_access/works"));
    EXPECT_TRUE(result->notes(Note::read, "P2P not available"));
    for (const MeasuredMatrix& m : result->measurement.matrices) EXPECT_TRUE(m.staged) << m.name;
  }
  EXPECT_TRUE(four.is_null("/peer_access/stated"));  // that block is missing
  EXPECT_FALSE(two.flag("/peer_access/stated"));
  EXPECT_NEAR(median_gbs(four.measurement.matrices[0]), 5.9, 0.02);
  EXPECT_NEAR(median_gbs(two.measurement.matrices[0]), 38.5, 0.2);
  const auto& latency = matrix(four, "P2P=Enabled Latency, GPU");
  for (const MeasuredPair& pair : latency.pairs) {
    EXPECT_GE(pair.latency->us(), 10);
    EXPECT_LE(pair.latency->us(), 18.6);
  }
}

TEST(OtherCases, O04BidirectionalPerftestIsStoredPerDirection) {
  const Result log = import_case("perftest", "ib_write_bw-bidirectional-4qp-400g.txt");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/tests/0/rows"), 23);
  EXPECT_NEAR(log.number("/tests/0/gbit_per_s"), 389.6, 0.05);
  EXPECT_TRUE(log.flag("/tests/0/bidirectional"));
  EXPECT_EQ(log.word("/tests/0/qps"), "4");
  EXPECT_EQ(log.word("/tests/0/device"), "rdma1");
  EXPECT_NEAR(log.measurement.messages[0].samples[0].message_rate->per_s, 9.154486e6 / 2, 1);
}

TEST(OtherCases, O04PeakOfZeroIsNotMeasured) {
  const Result log = import_case("perftest", "ib_write_bw-duration-mode-zero-peak.txt");
  ASSERT_TRUE(log.ok()) << log.text();
  const auto& samples = log.measurement.messages.at(0).samples;
  ASSERT_EQ(samples.size(), 2U);
  for (const MessageSample& sample : samples) EXPECT_FALSE(sample.peak);
  EXPECT_NEAR(samples[0].bandwidth->gbytes_per_s() * 8, 0.48, 1e-9);
  EXPECT_NEAR(samples[1].bandwidth->gbytes_per_s() * 8, 111.57, 1e-9);
}

TEST(OtherCases, O04PrefixesAndRemarksInTheTable) {
  const Result prefixed = import_case("perftest", "ib_write_bw-scheduler-prefixed.txt");
  ASSERT_TRUE(prefixed.ok()) << prefixed.text();
  EXPECT_NEAR(prefixed.number("/tests/0/gbit_per_s"), 361.67, 1e-9);
  const Result latency = import_case("perftest", "ib_write_lat-ib-cpu-freq-noise.txt");
  ASSERT_TRUE(latency.ok()) << latency.text();
  EXPECT_EQ(latency.number("/tests/0/latency_us"), 1.79);
}

TEST(OtherCases, O04MebibytesOfOldBuildsBecomeDecimal) {
  // The same transfer as 361.67 Gb/s: 45208.75 MB/s decimal are 43114.4 MiB/s, which old builds call MB/sec.
  for (const char* unit : {"MB/sec", "MiB/sec"}) {
    const Result log = import_text(
        "perftest",
        std::string("   RDMA_Write BW Test\n #bytes     #iterations    BW peak[") + unit +
            "]    BW average[" + unit +
            "]   MsgRate[Mpps]\n 65536      1000           43130.20           43114.42             "
            "0.689831\n");
    ASSERT_TRUE(log.ok()) << log.text();
    EXPECT_NEAR(log.number("/tests/0/mbyte_per_s"), 43114.42 * 1.048576, 0.01);
  }
}

TEST(OtherCases, O04NvbandwidthOldAndBidirectional) {
  const Result old = import_case("nvbandwidth", "nvbandwidth-0.5-single-gpu.txt");
  ASSERT_TRUE(old.ok()) << old.text();
  EXPECT_EQ(old.word("/devices/0/product"), "NVIDIA A10");
  EXPECT_EQ(gbs(matrix(old, "host_to_device_memcpy_ce"), "cpu0", "gpu0"), 25.17);
  EXPECT_EQ(matrix(old, "host_to_device_memcpy_sm").method, CopyMethod::sm);
  const Result both = import_case("nvbandwidth", "nvbandwidth-0.9-gen5x8-bidirectional.txt");
  ASSERT_TRUE(both.ok()) << both.text();
  // The tool reports the measured stream only, so nothing is halved.
  const MeasuredMatrix& stream = matrix(both, "host_to_device_bidirectional_memcpy_ce");
  EXPECT_EQ(gbs(stream, "cpu0", "gpu0"), 18.0);
  EXPECT_EQ(stream.traffic, CopyTraffic::opposed);
  EXPECT_FALSE(stream.halved);
  EXPECT_TRUE(both.is_null("/host_gbs"));  // not a one-way rate
}

TEST(OtherCases, O04V100MeshPerDirection) {
  const Result log = import_case("p2p", "p2p-4gpu-v100-nv2-mesh.txt");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_NEAR(median_gbs(log.measurement.matrices[0]), 48.45, 0.01);
}

TEST(OtherCases, O04ExpertDispatchOnTwoAndFourNodes) {
  const Result log = import_case("moe-log", "moe-dispatch-2node-vs-4node.txt");
  ASSERT_TRUE(log.ok()) << log.text();
  const auto& experts = log.measurement.experts;
  ASSERT_EQ(experts.size(), 6U);
  EXPECT_EQ(experts[0].operation, "combine");
  EXPECT_EQ(experts[0].nodes, 2);
  EXPECT_NEAR(experts[0].network->gbytes_per_s(), 44.37, 1e-9);
  EXPECT_NEAR(experts[0].nvlink->gbytes_per_s(), 145.16, 1e-9);
  EXPECT_EQ(experts[0].tuning.at("RDMA chunk"), 20);
  EXPECT_EQ(experts[5].type, "FP8");
  EXPECT_EQ(experts[5].nodes, 4);
  EXPECT_NEAR(experts[5].network->gbytes_per_s(), 13.15, 1e-9);
}

TEST(OtherCases, T09InactiveNvlinks) {
  const Result log = import_case("nvlink-status", "nvlink-status-v100-two-inactive.txt");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/gpus/0/active"), 4);
  EXPECT_EQ(log.number("/gpus/0/links"), 6);
  EXPECT_NEAR(log.number("/gpus/0/gbs"), 103, 0.2);
  EXPECT_EQ(log.number("/gpus/0/inactive/0"), 3);
  EXPECT_EQ(log.number("/gpus/0/inactive/1"), 5);
  EXPECT_TRUE(log.notes(Note::warning, "2 of 6 links are inactive"));
}

// Left out, such a line would make 4 of 6 links "4 of 5".
TEST(NvlinkStatus, ALinkThatCannotBeReadIsNotLeftOut) {
  for (const char* line : {"Link 1: 25,781 GB/s", "Link 1: &lt;inactive&gt;", "Link 1:"}) {
    const Result log = import_text(
        "nvlink-status", std::string("GPU 0: V100\n  Link 0: 25.781 GB/s\n  ") + line + "\n");
    EXPECT_FALSE(log.ok()) << line;
    EXPECT_NE(log.text().find(":3:"), std::string::npos) << log.text();
  }
}

struct KnownModel {
  const char* file;
  double parameters, active, cache;
};
class Models : public ::testing::TestWithParam<KnownModel> {};

// L07: totals exact, active within 0.5 %; L04: bytes of cache per token at 16 bit.
TEST_P(Models, L07AndL04ParametersAndCache) {
  const KnownModel& model = GetParam();
  const Result log = import_case("hf-config", std::string("hf/") + model.file);
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/parameters"), model.parameters);
  EXPECT_NEAR(log.number("/active_parameters"), model.active, 0.005 * model.active);
  EXPECT_EQ(log.number("/kv_bytes_per_token"), model.cache);
}
INSTANTIATE_TEST_SUITE_P(
    Published, Models,
    ::testing::Values(KnownModel{"llama-2-7b.json", 6738415616, 6738415616, 524288},
                      KnownModel{"llama-2-70b.json", 68976648192, 68976648192, 327680},
                      KnownModel{"llama-3-8b.json", 8030261248, 8030261248, 131072},
                      KnownModel{"llama-3-70b.json", 70553706496, 70553706496, 327680},
                      KnownModel{"llama-3.1-405b.json", 405853388800, 405853388800, 516096},
                      KnownModel{"mixtral-8x7b.json", 46702792704, 12879925248, 131072},
                      KnownModel{"deepseek-v3.json", 671026419200, 37.55e9, 70272},
                      KnownModel{"qwen2-57b-a14b.json", 57408658944, 14.25e9, 57344},
                      KnownModel{"qwen3-30b-a3b.json", 30532122624, 3.35e9, 98304}),
    [](const auto& model) {
      std::string name = model.param.file;
      std::ranges::replace_if(
          name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
      return name;
    });

TEST(OtherCases, ModelsOfUnknownFamiliesAreNotCounted) {
  std::string text = data("hf/llama-3-8b.json");
  text.replace(text.find("\"llama\""), 7, "\"gemma9\"");
  const Result log = import_text("hf-config", text);
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_TRUE(log.is_null("/parameters"));
  EXPECT_TRUE(log.notes(Note::unknown, "gemma9"));
}

}  // namespace
}  // namespace weft::import_test
