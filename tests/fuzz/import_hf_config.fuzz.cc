// SPDX-License-Identifier: Apache-2.0
// config.json of language models.
#include "calibrate/import/hf_config.hpp"
#include "tests/fuzz/import_log.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weft::fuzz::check_import(weft::kHfConfigImporter, data, size);
}
