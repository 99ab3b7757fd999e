// SPDX-License-Identifier: Apache-2.0
// The union of measurements: what several runs of a probe and several tools said about one machine, in one file.
//
//   MeasurementUnion all;
//   for (const Measurement& part : parts) all.add(part);
//   write_measurement(all.result());
//
// A sample that is there already, number for number, is kept once. Another number for the same thing is another sample: it is
// kept beside the first (of a table of collectives, in a run of its own), never averaged. Groups of transfers get new numbers.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "calibrate/measurement.hpp"

namespace weft {

class MeasurementUnion {
 public:
  void add(const Measurement& more);
  const Measurement& result() const { return all_; }
  Measurement& result() { return all_; }

 private:
  template <class T>
  void add_new(std::vector<T>& into, const std::vector<T>& more, std::string_view list);
  void add_copies(const std::vector<CopySample>& more);
  void add_runs(const std::vector<MeasuredRun>& more);
  void add_tests(const std::vector<ProbeTest>& more);
  void add_hosts(const std::vector<MeasuredHost>& more);
  void add_head(const Measurement& more);
  bool is_new(std::string key) { return seen_.insert(std::move(key)).second; }

  Measurement all_;
  bool begun_ = false;
  int groups_ = 0;
  std::unordered_set<std::string> seen_;
  std::map<std::string, std::vector<std::size_t>> runs_;  // header -> indices into all_.runs
  std::vector<std::unordered_set<std::string>> sizes_;    // of each run: what it has a number for
  std::map<std::string, std::size_t> tests_;
};

// The union of all, named `name`. Reports parts that are not of one machine: other GPUs at the same place, or of another kind.
// `places` say which file each part is.
Measurement merge_measurements(std::span<const Measurement> parts, std::string name,
                               Diagnostics& out, std::span<const Place> places = {});

// Reports what of the parts is of another machine than those before it, and warns of other versions.
void check_one_machine(std::span<const Measurement* const> parts, std::span<const Place> places,
                       Diagnostics& out);

// Takes out of a part what an earlier one has, number for number; how many samples, by part.
std::vector<std::size_t> drop_repeated(std::span<Measurement* const> parts);

// Takes out what tells whose machine it is: names of hosts (host0, host1, ... instead), serial numbers, GUIDs, how the tools
// were called. Products, PCI addresses, versions and all numbers stay.
void anonymise(Measurement& measurement);

}  // namespace weft
