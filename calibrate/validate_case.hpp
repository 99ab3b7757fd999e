// SPDX-License-Identifier: Apache-2.0
// What others measured, and how to reproduce it. A folder of validation files is a dataset; anyone can bring one.
//
//   {"records": [{
//      "id": "a100-40g-8-allreduce", "set": "nccl single node",
//      "weft": {"kind": "nccl", "fabric": "hgx-a100", "collective": "all_reduce", "harness": "one-process"},
//      "columns": ["bytes", "time_us_out_of_place", "busbw_GBps_oop"],
//      "rows": [[8, 34.7, 0.0], [16, 34.9, 0.0]],
//      "source": {"title": "...", "url": "..."}, "confidence": "medium"}]}
//
// A record is the measurement as it was published: a table (`columns`, `rows`), a matrix of GPU pairs
// (`matrix_row_src_col_dst`) or one `value` with its `unit`. Its `weft` object, the case, says how to ask weft the same
// question and which column is the answer. Other keys of a record are for people and are not read.
//
// Training.  validate_train_case.hpp.
// Congestion. validate_roce_case.hpp.
// Rows.      A column bytes or message_bytes is the size of a row; n_gpus or n_nodes is its number of ranks or servers.
// Times.     nccl rows are compared as times: busbw and algbw are turned into the time they were computed from.
// Rounding.  A printed value that stands for a range wider than +-5 % (0.07 printed with two decimals) is not compared.
//            The decimals of a column are those of its finest value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/validate_roce_case.hpp"
#include "calibrate/validate_train_case.hpp"
#include "models/nccl/predict.hpp"
#include "sim/core/config.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/workload/schedule.hpp"

namespace weft {

// What a column or value says.
enum class Quantity { time, busbw, algbw, bandwidth, latency };
constexpr auto enum_names(Quantity) {
  using enum Quantity;
  return std::array<EnumName<Quantity>, 5>{{{time, "time"},
                                            {busbw, "busbw"},
                                            {algbw, "algbw"},
                                            {bandwidth, "bandwidth"},
                                            {latency, "latency"}}};
}

// The `weft` object of a table of nccl-tests.
struct NcclCase {
  std::string kind, fabric;
  Json set;
  std::optional<std::int64_t> nodes, gpus_per_node;
  std::vector<std::int64_t> gpus;
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::string nccl;
  std::map<std::string, std::string> env;
  NcclHarness harness = NcclHarness::unknown;
  std::string algorithm, protocol, column;
  std::optional<Quantity> quantity;
  std::optional<Bytes> size, from;
  template <class V>
  void visit(V&& v) {
    v("kind", kind, "nccl", required);
    v("fabric", fabric, "a fabric or server of the catalogue, or a path ending in .json", required,
      not_empty);
    v("set", set, "changes to the fabric: pointer and value");
    v("nodes", nodes, "servers; 1 unless a column counts them", between(1, 1'000'000));
    v("gpus_per_node", gpus_per_node, "the first so many of each server; all by default",
      between(1, 100'000));
    v("gpus", gpus, "which GPUs of each server, by position, instead of the first ones");
    v("collective", collective, "what was measured", required);
    v("nccl", nccl, "the release, e.g. \"2.18.3\"; weft's default when the record does not say");
    v("env", env, "NCCL variables of the measurement");
    v("harness", harness, "how the benchmark started its operations");
    v("algorithm", algorithm, "forced by the measurement");
    v("protocol", protocol, "forced by the measurement");
    v("column", column, "the column that is predicted; out-of-place time or busbw by default");
    v("quantity", quantity, "what the column is where its name does not tell: time, busbw, algbw");
    v("size", size, "of all rows, where no column has it", positive);
    v("from", from, "rows below this size are not compared", positive);
  }
};

// The `weft` object of copies between two GPUs.
struct P2pCase {
  std::string kind, fabric;
  Json set, via, pairs;
  bool bidirectional = false, peer_access = true, copy_call = true;
  Quantity quantity = Quantity::bandwidth;
  std::string column;
  std::optional<Bytes> size, from;
  template <class V>
  void visit(V&& v) {
    v("kind", kind, "p2p", required);
    v("fabric", fabric, "a fabric or server of the catalogue, or a path ending in .json", required,
      not_empty);
    v("set", set, "changes to the fabric: pointer and value");
    v("via", via,
      "direct, relay, host or network, or an array: the first that a pair has; default: what the "
      "runtime does");
    v("pairs", pairs, "\"all\", or an array of [source, destination]: names or positions of GPUs");
    v("bidirectional", bidirectional, "both ways at once; the value is the sum");
    v("peer_access", peer_access, "off: through host memory");
    v("copy_call", copy_call, "off: the data moves without the start-up of a copy call (RDMA)");
    v("quantity", quantity, "bandwidth or latency", required);
    v("column", column, "the column that is predicted");
    v("size", size, "of each copy, where no column has it; 256 MiB by default", positive);
    v("from", from, "rows below this size are not compared", positive);
  }
};

// One number to predict.
struct CaseRow {
  std::string label;  // what follows "@" in its id: a size, "5 gpus", "gpu0-gpu3"; may be empty
  Bytes bytes{0};     // 0: a latency without a size
  std::int64_t nodes = 1;
  std::optional<std::int64_t> gpus_per_node;
  std::string src, dst;                     // p2p: names or positions of GPUs
  std::int64_t gpus = 0, global_batch = 0;  // train
  Json set;                                 // roce: changes to the scenario
  double measured = 0;                      // us or GB/s; train, roce: in the unit of the measure
};

enum class CaseKind { nccl, p2p, train, roce };

struct ValidationRecord {
  std::string id, set;
  CaseKind kind = CaseKind::nccl;
  NcclCase nccl;
  P2pCase p2p;
  TrainCase train;
  RoceCase roce;
  std::vector<Via> via;     // p2p: in the order of preference; empty: what the runtime does
  Quantity quantity{};      // of `measured`; nccl rows still hold what was printed
  bool degraded = false;    // a set-up with a fault: shown, no target
  bool held_out = false;    // its machine took no part in fitting
  bool every_pair = false;  // p2p: one value for each pair of the machine
  std::size_t too_coarse = 0, outside = 0, missing = 0;  // rows that are not compared, by reason
  std::vector<CaseRow> rows;
  std::string measured, source, confidence, note;  // for people
  std::string reason;                              // why weft is off, as far as is known
  Place place;

  // Empty for a scenario, which brings its own.
  std::string fabric() const {
    switch (kind) {
      case CaseKind::nccl:
        return nccl.fabric;
      case CaseKind::p2p:
        return p2p.fabric;
      case CaseKind::train:
        return train.fabric;
      case CaseKind::roce:
        break;
    }
    return {};
  }
};

// What a set must reach. Median and p90 are of the absolute relative error, bias is the median of the signed one.
struct SetLimits {
  std::optional<double> median, median_large, p90, bias;
  template <class V>
  void visit(V&& v) {
    v("median", median, "of the absolute error, all rows", between(0, 1e6));
    v("median_large", median_large, "the same of rows of 16 MiB and more", between(0, 1e6));
    v("p90", p90, "ninth decile of the absolute error", between(0, 1e6));
    v("bias", bias, "absolute value of the median of the signed error", between(0, 1e6));
  }
};

struct SetSpec {
  std::string name, summary;
  bool provisional = false;
  SetLimits limit;
  template <class V>
  void visit(V&& v) {
    v("name", name, "as the records give it", required, not_empty);
    v("summary", summary, "one line for people");
    v("provisional", provisional, "the limits are not yet what the model should reach");
    v("limit", limit, "what the set must reach");
  }
};

// A measurement that weft cannot reproduce, and why.
struct OutOfReach {
  std::string id, reason;
  template <class V>
  void visit(V&& v) {
    v("id", id, "of the record where it was published, or a few of them", required, not_empty);
    v("reason", reason, "what weft lacks, or what the record does not say", required, not_empty);
  }
};

// What another simulator says of its own error, and the rows here that come nearest to what it was measured on.
struct PublishedError {
  std::string name, by, url;
  double error = 0;
  std::vector<std::string> rows;
  std::optional<double> limit;
  template <class V>
  void visit(V&& v) {
    v("name", name, "what was predicted", required, not_empty);
    v("by", by, "who says so, and where", required, not_empty);
    v("url", url, "of the source");
    v("error", error, "geometric mean of their relative errors", required, between(0, 1e6));
    v("rows", rows, "ids of rows, record@row; * and ? match anything", required);
    v("limit", limit, "what weft must reach; the published error by default", between(0, 1e6));
  }
};

// Throughputs of training runs that differ in one thing, beside the throughput of one of them. Constants of the machine cancel.
enum class RatioKind { scaling, setting };
constexpr auto enum_names(RatioKind) {
  using enum RatioKind;
  return std::array<EnumName<RatioKind>, 2>{{{scaling, "scaling"}, {setting, "setting"}}};
}
struct RatioSpec {
  std::string name, base;
  RatioKind kind = RatioKind::scaling;
  std::vector<std::string> rows;
  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("name", name, "what was changed", required, not_empty);
    v("kind", kind, "scaling: the number of GPUs; setting: one key of the plan or the software",
      required);
    v("base", base, "id of the row the others are divided by", required, not_empty);
    v("rows", rows, "ids of the others", required, not_empty);
  }
};

struct Dataset {
  std::vector<ValidationRecord> records;
  std::vector<SetSpec> sets;
  std::vector<RatioSpec> ratios;
  std::vector<PublishedError> published;
  std::vector<OutOfReach> out_of_reach;
};

// Adds what one file holds; problems go to `diagnostics`, use the dataset only when diagnostics.ok().
void read_validation_file(const Json& document, Dataset& dataset, Diagnostics& diagnostics);

// A file with records, sets, published errors or a list of what is out of reach, and no kind but "validation".
bool is_validation_file(const Json& document);

// The JSON Schema of a validation file.
Json validation_schema();

}  // namespace weft
