// SPDX-License-Identifier: Apache-2.0
// The file of NCCL's example tuner plug-in: which algorithm, protocol and channel count to take from one size to another.
// Columns: collective_type, min_bytes, max_bytes, algorithm, protocol, channels, nNodes, nRanks, numPipeOps, regBuff; -1 is
// any. The plug-in takes the first line that fits, so lines go up in size and do not overlap.
// Source: NVIDIA/nccl ext-tuner/example.
#pragma once

#include <span>
#include <string>

#include "models/nccl/predict.hpp"

namespace weft {

// Neighbouring rows with the same choice become one line; the last one has no upper end. Only collectives that NCCL tunes:
// throws InputError for sends and receives.
std::string tuner_csv(CollectiveKind kind, std::span<const NcclRow> rows, std::size_t nodes,
                      std::size_t ranks);

}  // namespace weft
