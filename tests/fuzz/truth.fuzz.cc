// SPDX-License-Identifier: Apache-2.0
// Hidden machines of the synthetic backend, as `weft-probe --truth` writes them and as it is given fabrics: refused with places, or
// a machine can be hidden in them that is a fabric again.
#include "calibrate/probe/hidden_machine.hpp"
#include "sim/core/loader.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/limits.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  constexpr std::size_t kMostNodes = 200, kMostPairs = 2000, kMostValues = 20'000;
  fuzz::CatalogueAndInput files{std::string(fuzz::view(data, size))};
  Diagnostics out;
  Loader loader(files, out, kMostValues);
  const Json document = loader.load_file("input.json");
  if (!out.ok()) return 0;
  const FabricSpec spec = read_fabric(document, {}, out);
  if (!out.ok()) return 0;
  const fuzz::FabricSize many = fuzz::size_of(spec);
  if (many.nodes > kMostNodes || many.pairs > kMostPairs || many.gpus == 0) return 0;
  for (const ProbeFault fault : {ProbeFault::none, ProbeFault::slow_link, ProbeFault::half_width,
                                 ProbeFault::wrong_affinity}) {
    Diagnostics hidden;
    const HiddenMachine machine = hide_machine(document, 7, fault, hidden);
    fuzz::check_problems(hidden);
    if (!hidden.ok()) continue;
    Diagnostics again;
    read_fabric(machine.document, {}, again);
    FUZZ_CHECK(again.ok());
  }
  return 0;
}
