// SPDX-License-Identifier: Apache-2.0
// Output of p2pBandwidthLatencyTest.
#include "calibrate/import/p2p_bandwidth.hpp"
#include "tests/fuzz/import_log.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weft::fuzz::check_import(weft::kP2pImporter, data, size);
}
