// SPDX-License-Identifier: Apache-2.0
// Matrices of nvidia-smi: whatever is accepted is symmetric, has a tree with a root for each device, and makes a server that
// builds.
#include "tests/fuzz/import_machine.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz::check_import("topo-m", weft::fuzz::view(data, size));
  return 0;
}
