// SPDX-License-Identifier: Apache-2.0
// The published tables of tests/validation, machine by machine, as data for a fit.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "calibrate/fit/check.hpp"
#include "calibrate/fit/tables.hpp"
#include "calibrate/validate_case.hpp"
#include "sim/core/text.hpp"
#include "tests/support/nccl_records.hpp"
#include "tools/cli/cli.hpp"

namespace weft::calibrate_test {

// Tables that one person measured on one machine or cluster.
struct PublishedMachine {
  std::string name;
  std::vector<std::string> records;  // ids, with * and ?
  std::string wanted;                // class of the acceptance: "single", "multi" or empty
};

inline const std::vector<PublishedMachine>& published_machines() {
  static const std::vector<PublishedMachine> all{
      {"8 x A100 40 GB (Azure NDv4)", {"a100-40g-8-*"}, "single"},
      {"8 x A100 80 GB (Azure)", {"azure-a100-8-allreduce"}, "single"},
      {"8 x A100 80 GB", {"a100-8-allreduce-mleng"}, "single"},
      {"8 x H100 (DGX)", {"h100-dgx-8-allreduce"}, "single"},
      {"8 x H100 (Azure)", {"azure-h100-8-allreduce"}, "single"},
      {"8 x H100, ten nodes", {"h100-1node-g8-*-spread"}, "single"},
      {"DGX-2, 12 V100", {"dgx2-12-*"}, "single"},
      {"DGX-1, 8 P100", {"tartan-p100-cl-nccl-v2-*"}, "single"},
      {"2 and 4 x RTX 4090", {"rtx4090-?-pcie-allreduce-docker"}, "single"},
      {"8 x V100, cube mesh", {"v100-8-nvmesh-allreduce"}, ""},
      {"8 x B200", {"b200-8-allreduce-mleng"}, ""},
      {"2 to 8 x B300", {"b300-8-allreduce-default", "b300-?-allreduce"}, ""},
      {"2 x 8 A100, EFA", {"aws-p4d-allreduce"}, "multi"},
      {"2 x 8 H100, EFA", {"aws-p5-allreduce"}, "multi"},
      {"2 x 8 H100, EFA, NCCL 2.20", {"aws-p5-2n-allreduce-nccl2.20.3"}, "multi"},
      {"2 x 8 H100, EFA, NCCL 2.22", {"aws-p5-2n-allreduce-nccl2.22.3-tuner"}, "multi"},
      {"2 x 8 H100, TCPXO", {"gcp-a3mega-2n-allgather"}, "multi"},
      {"2 x 8 H200, RoCE", {"gcp-dwsflex-2n-allgather"}, "multi"},
      {"2 racks of 64 GB200", {"oci-gb200-128gpu-allreduce"}, "multi"},
      {"2 x 8 V100, RoCE", {"dgx1v-roce-2n-allreduce"}, "multi"},
      {"4 x 8 A100, HDR", {"dgxa100-ib-4n-allreduce"}, "multi"},
      {"2 x 8 A100, HDR", {"sophia-dgxa100-2n-*"}, "multi"},
      {"10 x 1 and 8 H100, NDR",
       {"h100-n10-g?-all_reduce", "h100-n10-g?-all_gather", "h100-n10-g?-reduce_scatter",
        "h100-n10-g?-alltoall"},
       "multi"},
      {"2 x L40S, TCP", {"l40s-2n-2gpu-allreduce-tcp"}, "multi"},
      {"2, 8 and 540 x 4 A100, Slingshot", {"polaris-n*-nccl2.21-*-s5"}, "multi"},
  };
  return all;
}

struct PublishedData {
  FitMachine machine{Json{}};
  FitData data;
};

inline PublishedData load_machine(const PublishedMachine& which) {
  PublishedData out;
  for (const ValidationRecord& record : test::nccl_records().dataset.records) {
    bool wanted = false;
    for (const std::string& pattern : which.records) wanted |= glob_match(pattern, record.id);
    if (!wanted || record.degraded) continue;
    Diagnostics diagnostics;
    LoadedFabric loaded = load_fabric(record.fabric(), settings_of(record.nccl.set), diagnostics);
    const std::size_t each = loaded.fabric.types().front().gpus.size();
    out.machine = FitMachine(std::move(loaded.document));
    for (FitTable& table : tables_of(record, each)) {
      const std::size_t ranks = (!table.positions.empty() ? table.positions.size()
                                 : table.per_node ? static_cast<std::size_t>(*table.per_node)
                                                  : each) *
                                static_cast<std::size_t>(table.nodes);
      table.ranks = static_cast<std::int64_t>(ranks);
      table.name = write_config(table.collective).text + " of " + std::to_string(ranks);
      std::ranges::sort(table.rows, {}, &FitRow::bytes);
      refuse_rows(table);
      out.data.tables.push_back(std::move(table));
    }
  }
  EXPECT_FALSE(out.data.tables.empty()) << which.name;
  return out;
}

// 32 KiB, 1 MiB and 1 GiB of every table, of the smallest and the next group of ranks.
HoldOut hold_out_published(const PublishedData& published, const FitOptions& options);

}  // namespace weft::calibrate_test
