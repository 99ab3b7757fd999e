// SPDX-License-Identifier: Apache-2.0
// How much of a flow crosses a resource: 1 for a plain hop, 1/6 for one of six striped planes, more than 1 when a coupled
// channel crosses the same link several times.
#pragma once

#include <cstdint>

namespace weft {

struct Share {
  std::uint32_t resource = 0;
  double weight = 1;
};

}  // namespace weft
