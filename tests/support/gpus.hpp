// SPDX-License-Identifier: Apache-2.0
// GPUs of the catalogue for tests.
#pragma once

#include <string>

#include "sim/core/config.hpp"
#include "sim/fabric/spec.hpp"
#include "tests/support/fabric_text.hpp"

namespace weft::testing {

inline GpuSpec catalogue_gpu(const std::string& name) {
  Diagnostics out;
  GpuSpec gpu;
  read_config(catalogue_document("model", name), {}, gpu, out);
  EXPECT_TRUE(out.ok()) << out.text();
  return gpu;
}

}  // namespace weft::testing
