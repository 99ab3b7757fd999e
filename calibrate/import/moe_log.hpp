// SPDX-License-Identifier: Apache-2.0
// Output of the tests of DeepEP and its relatives: the rates of dispatch and combine of an expert layer. Read are the "Best"
// lines of the tuning runs and the lines of the low-latency test; other tuning lines are counted only.
//
//   [tuning] Best dispatch (FP8): SMs 24, NVL chunk 28, RDMA chunk 24: 38.19 GB/s (RDMA), 124.92 GB/s (NVL)
//   [rank 0] Dispatch bandwidth: 40.02 GB/s, avg_t=187.74 us | Combine bandwidth: 41.20 GB/s, avg_t=352.88 us
//
// (RDMA) is what one GPU sends over the network, (NVL) what it receives over NVLink; GB = 10^9. A line "# 4 nodes" says how many
// nodes the lines below it were measured on.
//
// Facts:  tool, experts [{operation, type, nodes, network_gbs, nvlink_gbs, time_us}], problems.
#pragma once

#include "calibrate/import/import.hpp"

namespace weft {

extern const Importer kMoeLogImporter;

}  // namespace weft
