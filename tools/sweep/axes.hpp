// SPDX-License-Identifier: Apache-2.0
// The axes of a sweep: what changes from point to point, and how a file writes it.
//
//   {"pointer": "/fabric/servers", "values": [2, 4, 8]}
//   {"pointer": "/workload/size", "log_range": {"from": "1 MiB", "to": "1 GiB", "factor": 4}}
//   {"name": "load", "pointer": "/models/x", "range": {"from": 0.5, "to": 2, "step": 0.5}}
//   {"together": [{"name": "plan", "values": ["wide", "deep"]},
//                 {"pointer": "/jobs/0/plan", "values": [{"tp": 8, "pp": 1}, {"tp": 1, "pp": 8}]}]}
//
// An axis without a pointer changes nothing by itself: it labels what its companions change, and conditions can name it.
// Ranges begin at `from` and end at `to`, or at the last step before it. Steps of quantities are taken in whole picoseconds, bytes or bits per second.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.hpp"

namespace weft {

struct RangeSpec {
  Json from, to, step;
  std::optional<std::int64_t> count;
  Place place;
  template <class V>
  void visit(V&& v) {
    v("from", from, "the first value", required);
    v("to", to, "the last value", required);
    v("step", step, "distance of two values");
    v("count", count, "number of values, instead of a step", between(2, 100'000));
  }
};

struct LogRangeSpec {
  Json from, to;
  std::optional<double> factor;
  std::optional<std::int64_t> count;
  Place place;
  template <class V>
  void visit(V&& v) {
    v("from", from, "the first value, above zero", required);
    v("to", to, "the last value", required);
    v("factor", factor, "of two values", between(1.000001, 1e12));
    v("count", count, "number of values, instead of a factor", between(2, 100'000));
  }
};

struct AxisLine {
  std::string name, target;  // `target`: a JSON pointer into the scenario
  std::vector<Json> values;
  std::optional<RangeSpec> range;
  std::optional<LogRangeSpec> log_range;
  Place place;
  std::string pointer;  // of this axis in its file
  template <class V>
  void visit(V&& v) {
    v("name", name, "column of the table; default: the last key of the pointer", not_empty);
    v("pointer", target, "what it changes in the scenario: /fabric/servers", not_empty);
    v("values", values, "a list of any JSON values");
    v("range", range, "from, to and step or count");
    v("log_range", log_range, "from, to and factor or count");
  }
};

struct AxisSpec : AxisLine {
  std::vector<AxisLine> together;
  template <class V>
  void visit(V&& v) {
    AxisLine::visit(v);
    v("together", together, "axes whose i-th values belong together");
  }
};

struct Axis {
  std::string name, target;
  std::vector<Json> values;
  Place place;          // of the axis in its file
  std::string pointer;  // the same
};

// Axes that move together: all have as many values.
using AxisGroup = std::vector<Axis>;

// Columns of a table have names that also SQL tells apart: upper and lower case are one.
std::string column_key(const std::string& name);
// Whether every table has a column of this name that is no axis and no output.
bool is_reserved_column(const std::string& name);

// Problems go to `out`; use the result only when out.ok().
std::vector<AxisGroup> read_axes(const std::vector<AxisSpec>& specs, Diagnostics& out);

}  // namespace weft
