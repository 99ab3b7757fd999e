// SPDX-License-Identifier: Apache-2.0
// A sweep's file is refused with places and cures or read whole; a line of a log is a record or damaged, and a record that was
// read is written as the same bytes.
#include "tools/sweep/sweep.hpp"

#include "tests/fuzz/fuzz.hpp"
#include "tools/sweep/record.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string text(fuzz::view(data, size));
  if (const std::optional<Record> record = read_line(text))
    FUZZ_CHECK(read_line(to_line(*record).substr(0, to_line(*record).size() - 1)).has_value());
  fuzz::CatalogueAndInput files{text};
  Diagnostics out;
  check_sweep("input.json", files, out);
  fuzz::check_problems(out);
  return 0;
}
