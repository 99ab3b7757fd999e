// SPDX-License-Identifier: Apache-2.0
// Output of perftest: ib_write_bw, ib_read_bw, ib_send_bw and their latency programs, with any prefix before the lines.
//
// Bandwidths are per direction: the sum that a bidirectional test prints is halved. "MB/sec" of old builds is MiB/s, as their
// source divides by 2^20, and "MiB/sec" of new ones is the same; both become decimal. A peak of 0.00 means that it was not
// measured. A row counts only when its average agrees with its message rate.
//
// Facts:  tool, tests [{name, bidirectional, device, link, qps, mtu, rows, largest_bytes, gbit_per_s (largest size, one
//         direction), mbyte_per_s, latency_us (smallest size, typical)}], problems.
#pragma once

#include "calibrate/import/import.hpp"

namespace weft {

extern const Importer kPerftestImporter;

}  // namespace weft
