// SPDX-License-Identifier: Apache-2.0
// The list of importers: one line each.
#include "calibrate/import/import.hpp"

namespace weft {

std::span<const Importer* const> importers() { return {}; }

}  // namespace weft
