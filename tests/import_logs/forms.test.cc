// SPDX-License-Identifier: Apache-2.0
// The forms a table of nccl-tests comes in: options, releases, launchers, terminals. All of them hold the same rows.
#include <algorithm>

#include <fmt/format.h>

#include "calibrate/log_facts.hpp"
#include "tests/import_logs/import_log_test.hpp"

namespace weft::import_test {
namespace {

using Note = ImportNote::Kind;

constexpr std::string_view kHead =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  "
    "algbw   busbw #wrong\n";
constexpr std::string_view kRows =
    "   134217728      33554432     float     sum      -1   7967.8   16.85   25.27      0   7968.8 "
    "  "
    "16.84   25.26      0\n"
    "   268435456      67108864     float     sum      -1    15918   16.86   25.29      0    15921 "
    "  "
    "16.86   25.29      0\n";

std::string table() { return std::string(kHead) + std::string(kRows); }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    out.emplace_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), out.back().size() + 1));
  }
  return out;
}

// Every line with something before it.
std::string prefixed(std::string_view prefix, std::string_view text) {
  std::string out;
  for (const std::string& line : lines_of(text)) out += std::string(prefix) + line + "\n";
  return out;
}

// A line shorter than `width` for each piece of one that is longer, as a terminal shows it.
std::string wrapped(std::string_view text, std::size_t width) {
  std::string out;
  for (const std::string& line : lines_of(text)) {
    for (std::size_t at = 0; at == 0 || at < line.size(); at += width)
      out += line.substr(at, width) + "\n";
  }
  return out;
}

void expect_both_rows(const Result& log) {
  ASSERT_TRUE(log.ok()) << log.text();
  ASSERT_EQ(log.measurement.runs.size(), 1U);
  const auto& samples = log.run().samples;
  ASSERT_EQ(samples.size(), 4U) << to_text(log.imported.facts);
  EXPECT_EQ(samples[0].bytes.count, 134217728);
  EXPECT_EQ(samples[0].time->ps, 7967'800'000);
  EXPECT_EQ(samples[1].time->ps, 7968'800'000);
  EXPECT_EQ(samples[3].time->ps, 15921'000'000);
  EXPECT_EQ(samples[3].busbw.bps, 202'320'000'000);
  EXPECT_EQ(samples[3].wrong, 0.0);
  EXPECT_EQ(log.run().ranks, 4);
}

TEST(Forms, PlainTable) { expect_both_rows(import_text("nccl-tests", table())); }

TEST(Forms, PrefixesOfLaunchers) {
  for (const char* prefix : {"[1,0]<stdout>:",
                             "[1,12]<stdout>: ",
                             "Thu Jul 18 15:41:05 2024<stdout>:",
                             "0: ",
                             " 3: ",
                             "[0] ",
                             "[0]:",
                             "[rank0]:",
                             "[default0]:",
                             "2024-07-18T15:41:05.123456Z ",
                             "2024-07-18 15:41:05,123 ",
                             "[2024-07-18 15:41:05] ",
                             "15:41:05 ",
                             "worker-0: ",
                             "worker-0  | ",
                             "[pod/nccl-test-launcher-x7k2p/main] ",
                             "(worker1, rank=1, pid=33870, ip=10.0.0.2) ",
                             "2024-07-18T15:41:05Z [1,0]<stdout>:",
                             "\x1b[36mnode-1: \x1b[0m",
                             "\xC2\xA0"}) {
    SCOPED_TRACE(prefix);
    expect_both_rows(import_text("nccl-tests", prefixed(prefix, table())));
  }
}

TEST(Forms, EscapeCodesAndCarriageReturns) {
  expect_both_rows(import_text("nccl-tests", prefixed("\x1b[1;32m", table())));
  std::string text;
  for (const std::string& line : lines_of(table())) text += line + "\x1b[0K\r\n";
  expect_both_rows(import_text("nccl-tests", text));
  expect_both_rows(import_text("nccl-tests", "\xEF\xBB\xBF" + table()));
}

TEST(Forms, WrappedAtAnyWidth) {
  for (std::size_t width = 45; width < 130; ++width) {
    SCOPED_TRACE(width);
    expect_both_rows(import_text("nccl-tests", wrapped(table(), width)));
  }
}

TEST(Forms, NoiseBetweenRowsAndBlankLines) {
  std::string text = std::string(kHead);
  for (const std::string& row : lines_of(kRows)) {
    text += "node-a:34001:34053 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n \n" +
            row + "\n15 more processes have sent help message\n";
  }
  expect_both_rows(import_text("nccl-tests", text));
}

TEST(Forms, WithoutAHeaderByShape) {
  const Result log = import_text("nccl-tests", kRows);
  expect_both_rows(log);
  EXPECT_TRUE(log.notes(Note::warning, "no header"));
}

TEST(Forms, PerIterationAndTimestampColumns) {
  const std::string text =
      "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw "
      "busbw "
      "#wrong i_min i_max i_p99 i_cv%   timestamp\n"
      "# (B) (elements) (us) (GB/s) (GB/s) (us) (us) (us) (%) (us) (GB/s) (GB/s) (us) (us) (us) "
      "(%)   "
      "%Y-%m-%d %H:%M:%S\n"
      " 134217728 33554432 float sum -1 7967.8 16.85 25.27 0 7900.1 8100.5 8090.0 0.52 7968.8 "
      "16.84 "
      "25.26 0 7901.0 8101.0 8091.0 0.50  2026-01-15 10:00:00\n"
      " 268435456 67108864 float sum -1 15918 16.86 25.29 0 15900 16000 15990 0.22 15921 16.86 "
      "25.29 "
      "0 15901 16001 15991 0.20  2026-01-15 10:00:05\n";
  const Result log = import_text("nccl-tests", text);
  expect_both_rows(log);
  EXPECT_EQ(log.run().samples[0].shortest->ps, 7900'100'000);
  EXPECT_EQ(log.run().samples[1].percentile_99->ps, 8091'000'000);
}

TEST(Forms, CpuTimeIsNotTheTimeOfTheOperation) {
  std::string text = table();
  for (std::size_t at; (at = text.find("   time")) != std::string::npos;)
    text.replace(at, 7, "cputime");
  for (std::size_t at; (at = text.find("7967.8")) != std::string::npos;)
    text.replace(at, 6, " 12.30");
  const Result log = import_text("nccl-tests", text);
  ASSERT_TRUE(log.ok()) << log.text();
  ASSERT_EQ(log.run().samples.size(), 4U);
  EXPECT_FALSE(log.run().samples[0].time);
  EXPECT_EQ(log.run().samples[0].cpu_time->ps, 12'300'000);
  EXPECT_TRUE(log.notes(Note::warning, "on the CPU"));
}

TEST(Forms, OldReleaseWithoutOperation) {
  const Result log = import_text("nccl-tests",
                                 "#       size         count    type   redop     time   algbw   "
                                 "busbw  error     time   algbw   "
                                 "busbw  error\n"
                                 "   134217728       8388608   float            7967.8   16.85   "
                                 "12.63  0e+00   7968.8   16.84   "
                                 "12.63  0e+00\n"
                                 "   268435456      16777216   float             15918   16.86   "
                                 "12.65  5e-07    15921   16.86   "
                                 "12.65  1e-06\n");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/rows"), 2);  // 5e-07 is a rounding error, not a wrong value
  EXPECT_EQ(log.run().samples[2].wrong, 5e-07);
  EXPECT_EQ(log.number("/ranks"), 4);
  EXPECT_TRUE(log.run().samples[0].operation.empty());
}

TEST(Forms, CarriageReturnsAloneEndRows) {
  std::string text = data("h100-8gpu-allreduce-nvls.log");
  const Result plain = import_text("nccl-tests", text);
  std::ranges::replace(text, '\n', '\r');
  const Result log = import_text("nccl-tests", text);
  EXPECT_EQ(log.number("/rows"), plain.number("/rows"));
  EXPECT_EQ(log.run().samples.size(), plain.run().samples.size());
}

TEST(Forms, TheLibraryThatRanIsTheRelease) {
  const std::string row =
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      " 1048576 262144 float sum -1 50.00 20.97 36.70 0 50.00 20.97 36.70 0\n";
  const auto release = [&](const std::string& head) {
    const Result log = import_text("nccl-tests", head + row);
    const auto& setup = log.measurement.setup;
    return setup.contains("nccl") ? setup.at("nccl") : "";
  };
  EXPECT_EQ(release("# nccl-tests version 2.17.1 nccl-headers=22603 nccl-library=22807\n"),
            "22807");
  EXPECT_EQ(release("# nccl-tests version 2.17.1 nccl-headers=22603\n"), "");
  EXPECT_EQ(release("# nccl-tests version 2.17.1 nccl-library=unknown\n"), "");
  // Cut off in the middle of the number: the line that follows cannot be a part of it.
  const Result cut =
      import_text("nccl-tests", row + "# nccl-tests version 2.17.1 nccl-library=228");
  EXPECT_FALSE(cut.measurement.setup.contains("nccl"));
}

// What was forced belongs to the run that it was forced in.
TEST(Forms, VariablesOfNccl) {
  const std::string row =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "   134217728      33554432     float     sum      -1   7967.8   16.85   25.27      0\n";
  const std::string start = "# nThread 1 nGpus 4 minBytes 134217728 maxBytes 134217728\n";
  using Variables = std::map<std::string, std::string>;
  const auto of = [](const Result& log) {
    std::vector<Variables> out;
    for (const MeasuredRun& run : log.measurement.runs) out.push_back(run.environment);
    return out;
  };
  const Result lines = import_text(
      "nccl-tests", start + "node1:77:77 [0] NCCL INFO NCCL_ALGO set by environment to Ring.\n" +
                        "node1:77:77 [0] NCCL INFO NCCL_PROTO set by environment to LL128\n" + row +
                        "# Avg bus bandwidth    : 25.27\n" + start + row);
  ASSERT_TRUE(lines.ok()) << lines.text();
  EXPECT_EQ(of(lines),
            (std::vector<Variables>{{{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "LL128"}}, {}}));
  const Result shell = import_text(
      "nccl-tests",
      "export NCCL_PROTO='Simple'\n"
      "mpirun -np 4 -x NCCL_ALGO=Ring,Tree -x PATH ./build/all_reduce_perf -b 128M\n" +
          start + row + "NCCL_NVLS_ENABLE=0 ./build/all_reduce_perf -b 128M\n" + start + row);
  ASSERT_TRUE(shell.ok()) << shell.text();
  EXPECT_EQ(of(shell),
            (std::vector<Variables>{{{"NCCL_ALGO", "Ring,Tree"}, {"NCCL_PROTO", "Simple"}},
                                    {{"NCCL_NVLS_ENABLE", "0"}, {"NCCL_PROTO", "Simple"}}}));
}

TEST(Forms, JsonReport) {
  const char* half = R"({"time": %, "alg_bw": 16.845, "bus_bw": 25.2675, "nwrong": 0.000000})";
  const auto with = [&](const char* time) {
    std::string out = half;
    return out.replace(out.find('%'), 1, time);
  };
  const std::string report = fmt::format(
      R"({{"version": 1, "args": ["./build/all_reduce_perf", "-g", "4"], "nccl_version": 22907,
 "config": {{"ngpus": 4, "devices": [
   {{"rank": 0, "hostname": "node-a", "device": 0, "device_hex": "0000:01:00", "device_info": "GPU"}},
   {{"rank": 1, "hostname": "node-a", "device": 1, "device_hex": "0000:25:00", "device_info": "GPU"}},
   {{"rank": 2, "hostname": "node-a", "device": 2, "device_hex": "0000:41:00", "device_info": "GPU"}},
   {{"rank": 3, "hostname": "node-a", "device": 3, "device_hex": "0000:61:00", "device_info": "GPU"}}]}},
 "results": [{{"size": 134217728, "count": 33554432, "type": "float", "redop": "sum", "root": "    -1",
   "out_of_place": {}, "in_place": {}}}],
 "out_of_bounds": {{"count": 0, "okay": "true"}},
 "average_bus_bandwidth": {{"bandwidth": 25.2675, "okay": "unchecked"}}}})",
      with("7967.812000"), with("7968.800000"));
  const Result log = import_text("nccl-tests", report);
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.word("/collective"), "all_reduce");
  EXPECT_EQ(log.number("/ranks"), 4);
  EXPECT_FALSE(log.flag("/ranks_inferred"));
  EXPECT_EQ(log.run().samples[0].time->ps, 7967'812'000);
  EXPECT_TRUE(log.measurement.problems.empty()) << log.measurement.problems.front();
  EXPECT_EQ(log.measurement.setup.at("nGpus"), "4");
  // Variables as an object or as a list.
  for (const char* env :
       {R"({"NCCL_ALGO": "Ring", "HOME": "/root"})", R"(["NCCL_ALGO=Ring", "HOME=/root", 7])"}) {
    const Result forced =
        import_text("nccl-tests", R"({"env": )" + std::string(env) + "," + report.substr(1));
    ASSERT_TRUE(forced.ok()) << forced.text();
    EXPECT_EQ(forced.run().environment,
              (std::map<std::string, std::string>{{"NCCL_ALGO", "Ring"}}));
  }
  // A time that is no number is not a row, and a report without rows is none.
  const std::string broken = fmt::format(
      R"({{"results": [{{"size": 8, "count": 2, "type": "float", "redop": "sum", "root": "-1",
          "out_of_place": {}, "in_place": null}}]}})",
      with("\"nan\""));
  EXPECT_FALSE(import_text("nccl-tests", broken).ok());
  EXPECT_FALSE(import_text("nccl-tests", report.substr(0, report.size() / 2)).ok());
}

TEST(Forms, RanksThatDoNotFitTheFactorAreReported) {
  std::string text = "# Using devices\n";
  for (int rank = 0; rank < 8; ++rank)
    text += fmt::format("#  Rank  {} Group  0 Pid 1 on node-a device  {} [0x0{}] GPU\n", rank, rank,
                        rank);
  const Result log = import_text("nccl-tests", text + table());
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_EQ(log.number("/ranks"), 8);  // stated
  EXPECT_TRUE(log.notes(Note::warning, "busbw / algbw is 1.5"));
  EXPECT_FALSE(log.measurement.problems.empty());
}

TEST(Forms, AverageThatDoesNotFitIsReported) {
  const Result log = import_text("nccl-tests", table() + "# Avg bus bandwidth    : 20.0000 \n#\n");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_TRUE(log.notes(Note::warning, "rows are missing"));
}

TEST(Forms, SeveralTestsInOneLog) {
  const Result log = import_text(
      "nccl-tests", "# Collective test starting: all_reduce_perf\n" + table() +
                        "# Avg bus bandwidth    : 25.2775 \n"
                        "# Collective test concluded: all_reduce_perf\n"
                        "# Collective test starting: sendrecv_perf\n" +
                        std::string(kHead) +
                        "   134217728      33554432     float    none      -1   7967.8   16.85   "
                        "16.85      0   7968.8   16.84   16.84    N/A\n"
                        "# Avg bus bandwidth    : 16.845 \n");
  ASSERT_TRUE(log.ok()) << log.text();
  ASSERT_EQ(log.measurement.runs.size(), 2U);
  EXPECT_EQ(log.run(0).collective, "all_reduce");
  EXPECT_EQ(log.run(1).collective, "send_recv");
  EXPECT_TRUE(log.measurement.problems.empty()) << log.measurement.problems.front();
}

TEST(Forms, CrashAfterRowsIsRecorded) {
  const Result log = import_text(
      "nccl-tests",
      table() + "node-a: Test NCCL failure common.cu:1005 'unhandled system error / timeout'\n");
  ASSERT_TRUE(log.ok()) << log.text();
  EXPECT_TRUE(log.notes(Note::warning, "the run failed after these rows"));
  EXPECT_EQ(log.measurement.problems.size(), 1U);
}

TEST(Forms, AnswersMustMakeSense) {
  const auto with = [](const char* key, const char* value, const std::string& text) {
    ImportOptions options;
    options.answers[key] = value;
    return import_text("nccl-tests", text, options).ok();
  };
  EXPECT_TRUE(with("collective", "all_reduce", table()));
  EXPECT_FALSE(with("collective", "all_redcue", table()));
  const std::string named = "# Collective test starting: all_reduce_perf\n" + table();
  EXPECT_FALSE(with("collective", "all_gather", named));
  EXPECT_FALSE(with("ranks", "four", table()));
  EXPECT_FALSE(with("ranks", "0", table()));
}

TEST(Forms, BandwidthWithoutBannerNeedsAnAnswer) {
  const std::string text = data("ib_write_bw-bidirectional-4qp-400g.txt");
  const std::string table = text.substr(text.find(" #bytes"));
  EXPECT_FALSE(import_text("perftest", table).ok());
  for (const auto& [answer, gbit] : {std::pair("yes", 389.605), {"no", 779.21}}) {
    ImportOptions options;
    options.answers["bidirectional"] = answer;
    const Result log = import_text("perftest", table, options);
    ASSERT_TRUE(log.ok()) << log.text();
    EXPECT_NEAR(log.number("/tests/0/gbit_per_s"), gbit, 1e-6);
  }
}

TEST(Forms, NothingAtAll) {
  for (const Importer* importer : importers()) {
    for (const char* text : {"", "\n\n", "hello\n", "{}", "[]", "{\"a\": ", "0\n", "# \n#\n"}) {
      Diagnostics out;
      importer->read(text, "x", {}, out);
      EXPECT_FALSE(out.ok()) << importer->name << " took \"" << text << "\"";
    }
  }
}

}  // namespace
}  // namespace weft::import_test
