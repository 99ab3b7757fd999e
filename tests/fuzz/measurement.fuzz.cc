// SPDX-License-Identifier: Apache-2.0
// Measurement files: refused with places, or read back to the same; merged with itself nothing is added, and what is in it can be
// told and made anonymous.
#include "calibrate/measurement_inspect.hpp"
#include "calibrate/measurement_merge.hpp"
#include "tests/fuzz/import_log.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  Diagnostics out;
  const Json document = parse_json(fuzz::view(data, size), "input.json", out);
  if (!out.ok()) return 0;
  const Measurement measurement = read_measurement(document, out);
  fuzz::check_problems(out);
  if (!out.ok()) return 0;
  const std::string text = to_text(write_measurement(measurement));
  Diagnostics again;
  const Measurement second = read_measurement(parse_json(text, "again.json", again), again);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(to_text(write_measurement(second)) == text);
  MeasurementUnion once, twice;
  once.add(measurement);
  twice.add(measurement);
  twice.add(measurement);
  FUZZ_CHECK(to_text(write_measurement(once.result())) ==
             to_text(write_measurement(twice.result())));
  inspect_measurement(measurement);
  Measurement anonymous = measurement;
  anonymise(anonymous);
  const std::string hidden = to_text(write_measurement(anonymous));
  anonymise(anonymous);
  FUZZ_CHECK(to_text(write_measurement(anonymous)) == hidden);
  return 0;
}
