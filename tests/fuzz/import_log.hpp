// SPDX-License-Identifier: Apache-2.0
// What every importer of logs must do with every text: answer twice the same, with a measurement that is read back to itself or
// with an error, and with facts that are JSON. What is computed from a measurement is finite.
#pragma once

#include <cmath>

#include "calibrate/import/import.hpp"
#include "calibrate/latency_bandwidth.hpp"
#include "calibrate/log_facts.hpp"
#include "calibrate/measurement.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft::fuzz {

inline void check_run(const MeasuredRun& run) {
  FUZZ_CHECK(!run.samples.empty());
  const RankGuess guess = infer_ranks(run);
  FUZZ_CHECK(guess.agree <= guess.total && guess.fewest <= guess.most);
  if (guess.ranks) FUZZ_CHECK(*guess.ranks >= guess.fewest && *guess.ranks <= guess.most);
  FUZZ_CHECK(std::isfinite(average_busbw_gbs(run)));
  fixed_cost(run);
  if (const auto limit = asymptotic_busbw(run)) FUZZ_CHECK(std::isfinite(limit->busbw_gbs));
  anomalies(run);
  if (const auto estimate = link_estimate(run, 450_GBps)) FUZZ_CHECK(estimate->gbs <= 450);
  network_gbs(run, 8);
  if (const auto fit = fit_latency_bandwidth(run)) {
    FUZZ_CHECK(std::isfinite(fit->worst_error) && !fit->pieces.empty());
    for (const LatencyBandwidthPiece& piece : fit->pieces)
      FUZZ_CHECK(piece.from <= piece.to && piece.latency_us >= 0 && piece.us_per_byte >= 0);
  }
}

inline void check_measurement(const Json& json) {
  Diagnostics out;
  const std::string text = to_text(json);
  const Measurement measurement = read_measurement(parse_json(text, "m.json", out), out);
  FUZZ_CHECK(out.ok());
  FUZZ_CHECK(to_text(write_measurement(measurement)) == text);
  for (const MeasuredRun& run : measurement.runs) check_run(run);
  for (const MeasuredMatrix& matrix : measurement.matrices)
    FUZZ_CHECK(std::isfinite(median_gbs(matrix)));
  peer_access_works(measurement);
}

inline int check_import(const Importer& importer, const std::uint8_t* data, std::size_t size) {
  // The first byte chooses whether a measurement that failed its own check is kept.
  if (size == 0) return -1;
  ImportOptions options;
  options.force = (data[0] & 1) != 0;
  const std::string_view text = view(data + 1, size - 1);
  Diagnostics first, second;
  const Imported imported = importer.read(text, "input.log", options, first);
  check_problems(first);
  FUZZ_CHECK(imported.kind == importer.name);
  for (const ImportNote& note : imported.notes) FUZZ_CHECK(!note.text.empty());
  if (imported.measurement.is_object()) {
    FUZZ_CHECK(first.ok());
    check_measurement(imported.measurement);
  }
  const std::string facts = to_text(imported.facts);
  Diagnostics problems;
  parse_json(facts, "facts", problems);
  FUZZ_CHECK(problems.ok());
  const Imported again = importer.read(text, "input.log", options, second);
  FUZZ_CHECK(to_text(again.facts) == facts && first.text() == second.text());
  return 0;
}

}  // namespace weft::fuzz
