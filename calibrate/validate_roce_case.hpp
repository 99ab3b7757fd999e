// SPDX-License-Identifier: Apache-2.0
// The `weft` object of a measurement of a congested network: a whole scenario, and which number of its report is the answer.
//
//   {"id": "trunk", "set": "roce", "unit": "Gb/s",
//    "weft": {"kind": "roce", "scenario": {"fabric": ..., "jobs": ...}, "column": "Gb/s",
//             "quantity": "/link_series/near:far/bytes", "per": "/link_series/near:far/every_s", "windows": [3, 10],
//             "scale": 8e-9},
//    "columns": ["rtt_us", "/models/packet/window", "Gb/s"], "rows": [[632, "1 MB", 100]]}
//
// Predicted is (quantity, of a list the mean or largest of some windows) / per x scale. Columns that are JSON pointers change the
// scenario from row to row; the first other column names the row.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/config.hpp"

namespace weft {

enum class Take { mean, most };
constexpr auto enum_names(Take) {
  return std::array<EnumName<Take>, 2>{{{Take::mean, "mean"}, {Take::most, "most"}}};
}

struct RoceCase {
  std::string kind;
  Json scenario, set;
  std::string quantity, per, column;
  std::vector<std::int64_t> windows;
  Take take = Take::mean;
  double scale = 1;
  std::string unit;  // of the record
  template <class V>
  void visit(V&& v) {
    v("kind", kind, "roce", required);
    v("scenario", scenario, "a scenario, or a path ending in .json", required);
    v("set", set, "changes to the scenario: pointer and value");
    v("quantity", quantity, "JSON pointer to a number of the report, or to a list of numbers",
      required, not_empty);
    v("per", per, "JSON pointer to a number of the report that it is divided by");
    v("windows", windows, "of a list: from the first to before the second; all by default");
    v("take", take, "of those: mean or most");
    v("scale", scale, "into the unit of the record", between(1e-18, 1e18));
    v("column", column, "the column that is predicted");
  }
};

}  // namespace weft
