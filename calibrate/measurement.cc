// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measurement.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr double kMostCount = 9e18;  // below 2^63

std::optional<std::int64_t> rounded(double value) {
  if (!std::isfinite(value) || value < 0 || value > kMostCount) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(value));
}

}  // namespace

std::optional<Time> time_from_us(double us) {
  const auto ps = rounded(us * 1e6);
  return ps ? std::optional<Time>(Time{*ps}) : std::nullopt;
}

std::optional<Bandwidth> bandwidth_from_gbytes(double gbytes_per_s) {
  const auto bps = rounded(gbytes_per_s * 8e9);
  return bps ? std::optional<Bandwidth>(Bandwidth{*bps}) : std::nullopt;
}

Measurement new_measurement(std::string name, std::string tool, const std::string& file) {
  Measurement out;
  out.kind = "measurement";
  out.name = std::move(name);
  out.sources[""] = fmt::format("measured: {}, read from {}", tool, file);
  out.tool = std::move(tool);
  return out;
}

Json write_measurement(const Measurement& measurement) { return write_config(measurement); }

Measurement read_measurement(const Json& document, Diagnostics& out) {
  Measurement measurement;
  const Json* kind = document.find("kind");
  if (kind == nullptr || !kind->is_string() || kind->text != "measurement") {
    out.error(kind == nullptr ? document.place : kind->place, "/kind",
              "this is not a file of kind \"measurement\"",
              "make one from a log with `weft import`");
    return measurement;
  }
  const std::size_t before = out.error_count();
  read_config(document, {}, measurement, out);
  if (out.error_count() == before && measurement.empty() && measurement.hosts.empty() &&
      measurement.tests.empty()) {
    out.error(document.place, {}, "nothing was measured",
              "one of the keys runs, matrices, messages, experts, copies, latencies, kernels and "
              "overlaps is needed");
  }
  return measurement;
}

}  // namespace weft
