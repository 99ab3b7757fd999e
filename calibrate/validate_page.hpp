// SPDX-License-Identifier: Apache-2.0
// The page that says how good weft is: docs/validation.md and its plots, from one validation run.
#pragma once

#include <map>
#include <string>

#include "calibrate/validate.hpp"

namespace weft {

struct ValidationPage {
  std::string markdown;
  std::map<std::string, std::string> plots;  // file name -> SVG
};

// `notes` is hand-written markdown that goes in as it is; plots are linked as `folder`/NAME.svg.
ValidationPage validation_page(const Dataset& dataset, const ValidationResult& result,
                               const std::string& notes, const std::string& folder);

}  // namespace weft
