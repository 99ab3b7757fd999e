// SPDX-License-Identifier: Apache-2.0
// Topologies and channel graphs of NCCL: whatever is accepted has consistent facts and makes a server that builds.
#include "tests/fuzz/import_machine.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz::check_import("nccl-xml", weft::fuzz::view(data, size));
  weft::fuzz::check_import("nccl-graph", weft::fuzz::view(data, size));
  return 0;
}
