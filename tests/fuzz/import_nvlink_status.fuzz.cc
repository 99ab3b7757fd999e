// SPDX-License-Identifier: Apache-2.0
// Output of nvidia-smi nvlink --status.
#include "calibrate/import/nvlink_status.hpp"
#include "tests/fuzz/import_log.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weft::fuzz::check_import(weft::kNvlinkStatusImporter, data, size);
}
