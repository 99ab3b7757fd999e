// SPDX-License-Identifier: Apache-2.0
// The backend of this machine. Without a usable GPU making it throws NoMachine with one line.
#pragma once

#include <memory>

#include "calibrate/probe/backend.hpp"

namespace weft {

std::unique_ptr<ProbeBackend> make_cuda_backend();

}  // namespace weft
