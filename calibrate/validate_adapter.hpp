// SPDX-License-Identifier: Apache-2.0
// Stands in for models/nccl/predict.hpp until its body is there: weft's own algorithms with three assumed software costs.
#pragma once

#include "models/nccl/predict.hpp"

namespace weft::adapter {

std::vector<NcclRow> predict_nccl(const Fabric& fabric, std::span<const NodeId> gpus,
                                  CollectiveKind kind, std::span<const Bytes> sizes,
                                  const NcclSetup& setup);

std::optional<NcclVersion> parse_nccl_version(std::string_view text);

}  // namespace weft::adapter
