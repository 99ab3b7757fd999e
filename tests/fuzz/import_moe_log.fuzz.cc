// SPDX-License-Identifier: Apache-2.0
// Output of tests of DeepEP.
#include "calibrate/import/moe_log.hpp"
#include "tests/fuzz/import_log.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weft::fuzz::check_import(weft::kMoeLogImporter, data, size);
}
