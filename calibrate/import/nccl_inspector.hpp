// SPDX-License-Identifier: Apache-2.0
// What NCCL's Inspector plug-in writes beside a job: one JSON object per collective, rank and call, one after the other (the files
// of several ranks may be joined to one).
//
//   {"header": {"id": "0xe62d", "rank": 4, "n_ranks": 8, "nnodes": 1}, "metadata": {...},
//    "coll_perf": {"coll": "ReduceScatter", "coll_sn": 1231, "coll_msg_size_bytes": 2147483648, "coll_exec_time_us": 41057,
//                  "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": 418.439467, "coll_busbw_gbs": 366.134533}}
//
// Size:   of all-gather and reduce-scatter the message is one rank's part: the whole is that times the ranks, as algbw times the
//         time confirms. A record whose numbers do not agree is not used.
// Time:   a rank that comes early waits within its kernel. Of one call the rank that was there shortest is taken; of all calls of
//         a size the median, with their spread. One rank's file alone therefore says too much, and that is told.
// Facts:  collectives[] {collective, ranks, nodes, sizes, calls, fastest_busbw_gbs}, records, timing.
#pragma once

#include "calibrate/import/import.hpp"

namespace weft {

extern const Importer kNcclInspectorImporter;

}  // namespace weft
