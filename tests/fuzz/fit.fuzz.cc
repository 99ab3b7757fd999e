// SPDX-License-Identifier: Apache-2.0
// Measurement files as questions to a fit: refused with places, or every row that is fitted has a prediction.
#include "calibrate/fit/fit.hpp"

#include <cmath>

#include "calibrate/fit/tables.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tools/cli/cli.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  constexpr std::size_t kMostRows = 200;
  static Diagnostics quiet;
  static const LoadedFabric box = load_fabric("sli-rtx2080", {}, quiet);
  static const FitMachine machine(box.document);
  Diagnostics out;
  MeasuredFile file;
  file.document = parse_json(fuzz::view(data, size), "input.json", out);
  if (!out.ok()) return 0;
  file.file = file.document.place.file;
  file.measurement = read_measurement(file.document, out);
  if (!out.ok()) return 0;
  FitData some;
  std::vector<std::string> notes;
  add_measurement(file, box.fabric, {.other_gpus = true}, some, notes, out);
  fuzz::check_problems(out);
  for (const std::string& note : notes) FUZZ_CHECK(!note.empty());
  if (!out.ok()) return 0;
  const std::vector<MeasuredPoint> points = measured_points(some);
  if (points.empty() || points.size() > kMostRows || some.servers > 1) return 0;
  try {
    const FitResult found = fit(machine, some, {.bootstrap = 0});
    FUZZ_CHECK(found.residuals.size() == points.size());
    for (const FitResidual& row : found.residuals)
      FUZZ_CHECK(!row.fitted || (row.predicted > 0 && std::isfinite(row.predicted)));
  } catch (const InputError&) {
    return 0;  // nothing that can be fitted
  } catch (const LimitReached&) {
    return 0;
  }
  return 0;
}
