// SPDX-License-Identifier: Apache-2.0
// JSON as Python objects, and lists of alike objects as columns of numpy.
#pragma once

#include <string>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "sim/core/json.hpp"

namespace weft::python {

pybind11::object to_python(const Json& json);

// Column name -> array: int64, float64 (NaN where a row has no value), bool, or text and anything else as objects. Columns come in
// the order in which the rows name them.
pybind11::dict columns(const std::vector<Json>& rows);

}  // namespace weft::python
