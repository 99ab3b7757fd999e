// SPDX-License-Identifier: Apache-2.0
// What the actions of `weft calibrate` share: measurement files and logs, the machine they are of, and what they do not say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/patch.hpp"
#include "calibrate/fit/predict.hpp"
#include "calibrate/fit/tables.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/nccl_flags.hpp"

namespace weft {

struct CalibrateFlags {
  std::vector<std::string> files;
  std::string fabric, as, collective;
  std::optional<std::int64_t> ranks;
  NcclFlags nccl;
  std::vector<std::string> sets;
  bool force = false;
};
void add_calibrate_flags(CLI::App& app, CalibrateFlags& flags);

struct CalibrateInput {
  FitMachine machine{Json{}};
  FitData data;
  std::vector<std::string> notes;
};
// Throws InputError with all problems of all files.
CalibrateInput read_calibrate_input(const CalibrateFlags& flags, Io& io);

// Of a file of kind "measurement", or of a log or output that an importer understands.
std::optional<Measurement> read_measured(const std::string& path, const CalibrateFlags& flags,
                                         std::vector<std::string>& notes, Diagnostics& out);

// The calibration that a fabric reference holds: a path to a patch. Throws InputError when it is none.
Calibration calibration_of(const std::string& fabric);
// The same of a scenario file whose fabric is a patch.
Calibration calibration_of_scenario(const std::string& path);

}  // namespace weft
