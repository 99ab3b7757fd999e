// SPDX-License-Identifier: Apache-2.0
// What somebody measured, in one form whatever tool printed it: a file of kind "measurement". Importers write it; fitting,
// validation and the explanation of a log read it.
//
//   {"weft": {"schema": 1}, "kind": "measurement", "name": "allreduce-8x-h100", "tool": "nccl-tests", "version": "2.18.0",
//    "runs": [{"collective": "all_reduce", "ranks": 8,
//              "samples": [{"bytes": "1048576 B", "buffers": "out-of-place", "time": "46280000 ps", ...}]}],
//    "sources": {"": "measured: nccl-tests 2.18.0, read from node.log"}}
//
// weft-probe writes more into it: `hosts` (calibrate/measured_machine.hpp) and `copies`, `latencies`, `kernels` and `overlaps`
// (calibrate/measured_samples.hpp), and under `tests` what became of each test of its plan.
//
// Nothing is averaged and nothing is guessed: one sample is one number of the tool. Rates are of one direction, and decimal
// (1 GB/s = 10^9 B/s), whatever the tool printed; what was inferred instead of read says so.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/measured_machine.hpp"
#include "calibrate/measured_samples.hpp"
#include "sim/core/config.hpp"
#include "sim/fabric/spec.hpp"

namespace weft {

// A GPU that took part. In a table of ranks, `rank` counts them; elsewhere it is the tool's own number.
struct MeasuredDevice {
  int rank = 0, device = -1;
  std::string host, bus, product;
  template <class V>
  void visit(V&& v) {
    v("rank", rank, "rank in the communicator, or the tool's number", between(0, 10'000'000));
    v("host", host, "the node it sits in", not_empty);
    v("device", device, "number on its node", between(0, 1'000'000));
    v("bus", bus, "PCI address as printed", not_empty);
    v("product", product, "name as printed", not_empty);
  }
};

// ---- collectives

enum class Buffers { out_of_place, in_place };
constexpr auto enum_names(Buffers) {
  return std::array<EnumName<Buffers>, 2>{
      {{Buffers::out_of_place, "out-of-place"}, {Buffers::in_place, "in-place"}}};
}

// One half of a row of nccl-tests.
struct CollectiveSample {
  Bytes bytes{0};
  std::int64_t count = 0;
  std::string type, operation;
  std::optional<int> root;
  Buffers buffers = Buffers::out_of_place;
  std::optional<Time> time, cpu_time, shortest, longest, percentile_99;
  Bandwidth algbw{0}, busbw{0};
  std::optional<double> wrong;
  SampleRepeats repeated;
  int line = 0;
  template <class V>
  void visit(V&& v) {
    v("bytes", bytes, "size as nccl-tests counts it: the whole buffer of one rank", required,
      positive);
    v("count", count, "elements", between(0, 9e18));
    v("type", type, "of an element", not_empty);
    v("operation", operation, "sum, prod, ...; absent where nothing is reduced", not_empty);
    v("root", root, "rank, where the collective has one", between(0, 10'000'000));
    v("buffers", buffers, "whether the result overwrites the input");
    v("time", time, "of one operation, mean over iterations and ranks");
    v("cpu_time", cpu_time, "of the call on the CPU; not how long the operation takes");
    v("shortest", shortest, "fastest iteration");
    v("longest", longest, "slowest iteration");
    v("percentile_99", percentile_99, "of the iterations");
    v("algbw", algbw, "bytes over time", required);
    v("busbw", busbw, "algbw times the factor of the collective", required);
    v("wrong", wrong, "wrong values (old releases: largest error); absent when not validated",
      between(0, 1e300));
    repeated.visit(v);
    v("line", line, "of the log", between(1, 2e9));
  }
};

struct MeasuredRun {
  std::string collective;
  bool collective_inferred = false;
  int ranks = 0, nodes = 0;
  bool ranks_inferred = false;
  std::string algorithm, protocol;
  std::map<std::string, std::string> environment;
  std::vector<std::string> gpus;
  std::optional<Bandwidth> average_busbw;
  std::vector<CollectiveSample> samples;
  template <class V>
  void visit(V&& v) {
    v("collective", collective, "all_reduce, all_gather, ...; absent when the log does not tell",
      not_empty);
    v("collective_inferred", collective_inferred, "from the columns, not from a name");
    v("ranks", ranks, "absent when the log does not tell", between(1, 10'000'000));
    v("ranks_inferred", ranks_inferred, "from busbw over algbw, not from a list of ranks");
    v("nodes", nodes, "hosts of the ranks", between(1, 10'000'000));
    v("algorithm", algorithm, "forced: ring, tree, nvls, ...; absent where NCCL chose", not_empty);
    v("protocol", protocol, "forced: ll, ll128 or simple; absent where NCCL chose", not_empty);
    v("environment", environment,
      "NCCL's variables as they were set, e.g. NCCL_ALGO; absent where "
      "the log names none",
      not_empty);
    v("gpus", gpus, "of the ranks in order; absent where they are not known", not_empty);
    v("average_busbw", average_busbw, "as the tool printed it");
    v("samples", samples, "one per size and half of the table", required, not_empty);
  }
};

// ---- copies between pairs of devices

// What else moves while one stream is measured.
enum class CopyTraffic { alone, opposed, crowded };
constexpr auto enum_names(CopyTraffic) {
  using enum CopyTraffic;
  return std::array<EnumName<CopyTraffic>, 3>{
      {{alone, "alone"}, {opposed, "opposed"}, {crowded, "crowded"}}};
}

struct MeasuredPair {
  std::string from, to;
  std::optional<Bandwidth> bandwidth;
  std::optional<Time> latency;
  template <class V>
  void visit(V&& v) {
    v("from", from, "gpu0, cpu0, ...", required, not_empty);
    v("to", to, "gpu0, cpu0, ...", required, not_empty);
    v("bandwidth", bandwidth, "of one direction", positive);
    v("latency", latency, "as the matrix defines it", positive);
  }
};

// One matrix of nvbandwidth or of p2pBandwidthLatencyTest, without its diagonal.
struct MeasuredMatrix {
  std::string name, description, definition;
  CopyMethod method = CopyMethod::unknown;
  CopyTraffic traffic = CopyTraffic::alone;
  std::optional<bool> peer_access;
  bool halved = false, staged = false;
  std::vector<MeasuredPair> pairs;
  template <class V>
  void visit(V&& v) {
    v("name", name, "of the test", required, not_empty);
    v("description", description, "as the tool prints it", not_empty);
    v("definition", definition, "of a latency: what starts and what ends it", not_empty);
    v("method", method, "who moves the data");
    v("traffic", traffic,
      "alone, opposed (a stream the other way too) or crowded (other devices too)");
    v("peer_access", peer_access, "whether the test switched it on");
    v("halved", halved, "the tool printed the sum of both directions");
    v("staged", staged, "through host memory: peer access is off or makes no difference");
    v("pairs", pairs, "one per cell off the diagonal", required, not_empty);
  }
};

// ---- messages between two NICs

struct MessageSample {
  Bytes bytes{0};
  std::int64_t iterations = 0;
  std::optional<Bandwidth> bandwidth, peak;
  std::optional<Rate> message_rate;
  std::optional<Time> latency, mean, shortest, longest, percentile_99;
  int line = 0;
  template <class V>
  void visit(V&& v) {
    v("bytes", bytes, "of one message", required, positive);
    v("iterations", iterations, "messages sent", between(0, 9e18));
    v("bandwidth", bandwidth, "average, one direction");
    v("peak", peak, "best stretch, one direction; absent when it was not measured", positive);
    v("message_rate", message_rate, "of one direction");
    v("latency", latency, "typical, one way");
    v("mean", mean, "mean latency");
    v("shortest", shortest, "least latency");
    v("longest", longest, "largest latency");
    v("percentile_99", percentile_99, "of the latencies");
    v("line", line, "of the log", between(1, 2e9));
  }
};

// One run of a program of perftest.
struct MessageTest {
  std::string name;
  CopyTraffic traffic = CopyTraffic::alone;
  bool halved = false;
  std::map<std::string, std::string> setup;
  std::vector<MessageSample> samples;
  template <class V>
  void visit(V&& v) {
    v("name", name, "as the banner says: RDMA_Write BW", required, not_empty);
    v("traffic", traffic, "opposed when both ends send");
    v("halved", halved, "the tool printed the sum of both directions");
    v("setup", setup, "device, queue pairs, link type, MTU ...", not_empty);
    v("samples", samples, "one per row", required, not_empty);
  }
};

// ---- expert all-to-all

struct ExpertSample {
  std::string operation, type;
  int nodes = 0;
  std::map<std::string, std::int64_t> tuning;
  std::optional<Bandwidth> network, nvlink;
  std::optional<Time> time;
  int line = 0;
  template <class V>
  void visit(V&& v) {
    v("operation", operation, "dispatch or combine", required, not_empty);
    v("type", type, "of the elements: FP8, BF16", not_empty);
    v("nodes", nodes, "absent when the log does not tell", between(1, 1'000'000));
    v("tuning", tuning, "SMs and chunk sizes", not_empty);
    v("network", network, "sent over the network by one GPU", positive);
    v("nvlink", nvlink, "received over NVLink by one GPU", positive);
    v("time", time, "of the transfer", positive);
    v("line", line, "of the log", between(1, 2e9));
  }
};

// ---- the file

struct Measurement : ComponentHead {
  std::string tool, version;
  std::map<std::string, std::string> setup;
  std::string date;
  std::optional<bool> anonymised;
  std::vector<MeasuredHost> hosts;
  std::vector<MeasuredDevice> devices;
  std::vector<MeasuredRun> runs;
  std::vector<MeasuredMatrix> matrices;
  std::vector<MessageTest> messages;
  std::vector<ExpertSample> experts;
  std::vector<CopySample> copies;
  std::vector<LatencySample> latencies;
  std::vector<KernelSample> kernels;
  std::vector<OverlapSample> overlaps;
  std::vector<ProbeTest> tests;
  bool forced = false;
  std::vector<std::string> problems;
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("tool", tool, "nccl-tests, nvbandwidth, ...", required, not_empty);
    v("version", version, "of the tool", not_empty);
    v("setup", setup, "how it was called and with which libraries", not_empty);
    v("date", date, "when it began: 2025-01-31T12:00:00Z", not_empty);
    v("anonymised", anonymised, "names of hosts, serial numbers and GUIDs were taken out");
    v("hosts", hosts, "the servers it was measured on", not_empty);
    v("devices", devices, "the GPUs that took part", not_empty);
    v("runs", runs, "tables of collectives", not_empty);
    v("matrices", matrices, "copies between pairs of devices", not_empty);
    v("messages", messages, "messages between NICs", not_empty);
    v("experts", experts, "dispatch and combine of an expert layer", not_empty);
    v("copies", copies, "transfers between memories", not_empty);
    v("latencies", latencies, "small messages", not_empty);
    v("kernels", kernels, "kernels of one GPU", not_empty);
    v("overlaps", overlaps, "matrix products beside collectives", not_empty);
    v("tests", tests, "what became of each test of the plan", not_empty);
    v("forced", forced, "it failed its own check and was kept on request");
    v("problems", problems, "what is wrong or doubtful about it", not_empty);
  }
  bool empty() const {
    return runs.empty() && matrices.empty() && messages.empty() && experts.empty() &&
           copies.empty() && latencies.empty() && kernels.empty() && overlaps.empty();
  }
};

// A measurement named `name`, read by an importer from `file`.
Measurement new_measurement(std::string name, std::string tool, const std::string& file);
Json write_measurement(const Measurement& measurement);
// Reports a document of another kind, or without any number in it; one with hosts or tests is a probe's run that has just begun.
Measurement read_measurement(const Json& document, Diagnostics& out);

// 3.5 us and 12.25 GB/s as quantities, to the nearest picosecond and bit per second. nullopt when not finite, negative or too
// large.
std::optional<Time> time_from_us(double us);
std::optional<Bandwidth> bandwidth_from_gbytes(double gbytes_per_s);
// The number that time_from_us() was given: a quotient is rounded once and prints as it was read.
constexpr double us_of(Time time) { return static_cast<double>(time.ps) / 1e6; }

}  // namespace weft
