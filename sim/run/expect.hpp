// SPDX-License-Identifier: Apache-2.0
// What a scenario promises of its report: a sentence, a number of the report and the band that it must lie in.
//
//   {"what": "with NVLink four GPUs sum about four times faster than over PCIe", "pointer": "/jobs/0/busbw_gbs",
//    "against": {"set": {"/fabric/peer_access/nvlink": false}}, "min": 3, "max": 4.5, "claim": "C5"}
//
// With `against` the tested number is a ratio: this run's over the same number of the run with `set` applied, or over the
// number at another pointer. A disputed expectation prints its number beside the claim and never fails.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/config.hpp"

namespace weft {

struct AgainstSpec {
  std::map<std::string, Json> set;
  std::string number;
  Place place;
  std::string pointer;
  template <class V>
  void visit(V&& v) {
    v("set", set, "pointer -> value: the other run is the scenario with these changed");
    v("pointer", number, "another number to divide by; default: the expectation's own pointer");
  }
};

struct ExpectSpec {
  std::string what, number, claim, note;  // `number`: a JSON pointer into the report
  std::optional<double> min, max;
  std::optional<AgainstSpec> against;
  bool disputed = false;
  Place place;
  std::string pointer;  // of this expectation in its file
  template <class V>
  void visit(V&& v) {
    v("what", what, "a sentence that is true when the number lies in the band", required,
      not_empty);
    v("pointer", number,
      "JSON pointer to a number of the report: /jobs/0/busbw_gbs, /links/leaf0:spine1/drops",
      required, not_empty);
    v("min", min, "smallest value that is right");
    v("max", max, "largest value that is right");
    v("against", against,
      "test a ratio: this run's number over that of a changed run or at another pointer");
    v("claim", claim, "the claim that it reproduces, C1 to C19");
    v("disputed", disputed, "the claim is doubted: show the number beside it, assert nothing");
    v("note", note, "why the band is what it is, or why the claim is doubted");
  }
};

// Reports expectations that cannot be tested.
void check_expectations(const std::vector<ExpectSpec>& expect, Diagnostics& out);

struct Judgement {
  const ExpectSpec* expected = nullptr;
  std::optional<double> value;  // absent when the report has no such number
  std::string problem;          // then: why
  bool met = false;             // true for every disputed one that has a value
};

// Runs the scenario with the changes and returns its report.
using RunChanged = std::function<Json(const std::map<std::string, Json>& set)>;

// One judgement per expectation, in their order. Equal changes are run once.
std::vector<Judgement> judge(const std::vector<ExpectSpec>& expect, const Json& report,
                             const RunChanged& run);

// "3 to 4.5", "at least 4", "at most 0.5"; empty when there is no band.
std::string band_text(const ExpectSpec& expected);

// The value at a JSON pointer, nullptr when there is none. An element of a list also goes by its "id" or "name":
// /links/leaf0:spine1/drops, /jobs/victim/time_s; a slash in a name is written ~1.
const Json* find_at(const Json& document, std::string_view pointer);

}  // namespace weft
