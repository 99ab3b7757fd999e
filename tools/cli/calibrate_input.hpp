// SPDX-License-Identifier: Apache-2.0
// What the actions of `weft calibrate` share: measurement files and logs, the machine they are of, and what they do not say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/intervals.hpp"
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
  Settings sets;
  bool force = false, other_gpus = false;
};
void add_calibrate_flags(CLI::App& app, CalibrateFlags& flags);

struct CalibrateInput {
  FitMachine machine{Json{}};
  FitData data;
  std::vector<std::string> notes;
};
// Throws InputError with all problems of all files.
CalibrateInput read_calibrate_input(const CalibrateFlags& flags, Io& io);
// Where a JSON answer has no room for them.
void tell_notes(const CalibrateInput& input, Io& io);

// Of a file of kind "measurement", or of a log or output that an importer understands.
std::optional<MeasuredFile> read_measured(const std::string& path, const CalibrateFlags& flags,
                                          std::vector<std::string>& notes, Diagnostics& out);

// The calibration that a fabric reference holds: a path to a patch, whose fabric is still the one that was fitted. Values at
// `held`, JSON pointers into the fabric, are set by somebody else and known: they have no interval. Throws InputError with all
// problems.
Calibration calibration_of(const std::string& fabric, const std::vector<std::string>& held);
// The same of a scenario whose fabric is a patch, with what it and `sets` set held.
Calibration calibration_of_scenario(const std::string& path, const Settings& sets);

// How a scenario names its fabric, and what it and `sets` change of it, by JSON pointer into the fabric. Empty where it does not
// say so itself.
struct NamedFabric {
  std::string name, folder;  // a path is seen from there
  ValueChanges sets;
  std::string path() const;
  std::vector<std::string> held() const;  // the pointers of `sets`
};
NamedFabric fabric_of_scenario(const std::string& path, const Settings& sets);

// Where they set, in a loaded document.
std::vector<std::string> pointers_of(const Settings& sets);

}  // namespace weft
