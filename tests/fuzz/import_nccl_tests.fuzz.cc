// SPDX-License-Identifier: Apache-2.0
// Output of nccl-tests, text and JSON.
#include "calibrate/import/nccl_tests.hpp"
#include "tests/fuzz/import_log.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weft::fuzz::check_import(weft::kNcclTestsImporter, data, size);
}
