// SPDX-License-Identifier: Apache-2.0
// Output of nccl-tests, every release: the text of a run with whatever stands around it, or the report of its option -J.
//
// Facts:  tool, version, nccl, collective, collective_inferred, ranks, ranks_inferred, ranks_low, ranks_high, nodes, rows,
//         average_printed, average_recomputed, smallest_bytes, largest_bytes, latency_us, latency_up_to, busbw_gbs, saturated,
//         in_switch_gbs, devices, problems, runs (an array of the same for each table; the keys above are those of the first).
// Refused: no rows; wrong results (unless forced); a table whose numbers contradict each other.
#pragma once

#include "calibrate/import/import.hpp"

namespace weft {

extern const Importer kNcclTestsImporter;

}  // namespace weft
