// SPDX-License-Identifier: Apache-2.0
// A text as a .gz file; the same text gives the same bytes.
#pragma once

#include <string>
#include <string_view>

namespace weft {

std::string gzip(std::string_view text);

}  // namespace weft
