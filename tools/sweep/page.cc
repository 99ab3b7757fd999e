// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/page.hpp"

namespace weft {

std::optional<std::string> sweep_page(const Json& table) {
  const std::string documents[] = {to_text(table, 0)};
  return page_of("sweep.html", documents);
}

}  // namespace weft
