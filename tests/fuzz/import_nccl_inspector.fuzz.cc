// SPDX-License-Identifier: Apache-2.0
// Files of NCCL's Inspector.
#include "calibrate/import/nccl_inspector.hpp"
#include "tests/fuzz/import_log.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weft::fuzz::check_import(weft::kNcclInspectorImporter, data, size);
}
