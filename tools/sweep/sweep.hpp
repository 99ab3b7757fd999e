// SPDX-License-Identifier: Apache-2.0
// A sweep: one scenario, and axes along which it changes. Every combination that its conditions allow is a point.
//
//   {"weft": {"schema": 1}, "kind": "sweep", "name": "oversubscription",
//    "scenario": {"use": "../scenarios/04-oversubscription.json"},
//    "axes": [{"pointer": "/fabric/servers", "values": [8, 16, 32]},
//             {"pointer": "/fabric/network/oversubscription", "values": [1, 2, 4]}],
//    "skip": ["servers == 32 and oversubscription == 4"],
//    "outputs": {"time_s": "/time_s", "busbw_gbs": "/jobs/0/busbw_gbs"},
//    "pareto": {"minimise": ["time_s"], "maximise": ["oversubscription"]}}
//
// Points count from 0 in the order of the file, the last axis fastest. Changes are applied in the order of the axes, so an axis
// that replaces the fabric stands before one that changes its servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/loader.hpp"
#include "tools/sweep/axes.hpp"

namespace weft {

struct SweepOutput {
  std::string name, pointer;  // of the report
  Place place{};              // where the file asks for it; line 0: by default
};

struct Front {
  std::vector<std::string> minimise, maximise;  // axes or outputs, two in all
  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("minimise", minimise, "axes or outputs that are better when small");
    v("maximise", maximise, "axes or outputs that are better when large");
  }
};

struct Sweep {
  static constexpr std::size_t kMostPoints = 1'000'000;
  static constexpr std::uint64_t kMostCombinations = 50'000'000;

  std::string path, name, question;
  Json base;          // the scenario, resolved
  Diagnostics files;  // names the files of `base`, holds no problem
  std::vector<AxisGroup> groups;
  std::vector<SweepOutput> outputs;
  std::optional<Front> front;
  std::vector<std::uint64_t> points;  // combinations that are left, in order

  std::vector<std::string> axis_names() const;
  // The value of each axis at a point, in the order of axis_names().
  std::vector<const Json*> values(std::size_t point) const;
};

// Throws InputError with all problems.
Sweep read_sweep(const std::string& path, FileSource& files);

// Axes, outputs and the file itself, combined up to the first point only: what `weft check` asks. Use the result only when out.ok().
Sweep check_sweep(const std::string& path, FileSource& files, Diagnostics& out);

// The JSON Schema of a sweep's file.
Json sweep_schema();

}  // namespace weft
