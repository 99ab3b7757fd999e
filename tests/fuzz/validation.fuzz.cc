// SPDX-License-Identifier: Apache-2.0
// Validation records: refused with places, or every row has something to compare with.
#include <cmath>

#include "calibrate/validate_case.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  Diagnostics out;
  const Json document = parse_json(fuzz::view(data, size), "input.json", out);
  if (!out.ok()) return 0;
  Dataset dataset;
  read_validation_file(document, dataset, out);
  fuzz::check_problems(out);
  if (!out.ok()) return 0;
  for (const ValidationRecord& record : dataset.records) {
    FUZZ_CHECK(!record.id.empty() && !record.set.empty() && !record.fabric().empty());
    for (const CaseRow& row : record.rows) {
      FUZZ_CHECK(row.measured > 0);
      FUZZ_CHECK(row.bytes.count >= 0 && row.nodes >= 1);
      FUZZ_CHECK(record.kind == CaseKind::p2p || row.bytes.count > 0);
      FUZZ_CHECK(row.src.empty() == row.dst.empty());
    }
  }
  return 0;
}
