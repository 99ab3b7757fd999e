// SPDX-License-Identifier: Apache-2.0
// Output of nvidia-smi nvlink --status: which NVLinks of each GPU are up, and the rate each signals at.
//
// Rates are those of one direction of one link. They are what the link is set to, not what was measured on it, so there is no
// measurement.
//
// Facts:  gpus [{index, name, links, active, inactive [link ...], gbs}], problems.
#pragma once

#include "calibrate/import/import.hpp"

namespace weft {

extern const Importer kNvlinkStatusImporter;

}  // namespace weft
