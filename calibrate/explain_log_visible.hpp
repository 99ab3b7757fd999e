// SPDX-License-Identifier: Apache-2.0
// Causes that a log shows by itself, without a simulation of the machine with a fault.
//
//   shared-gpu            two ranks on one GPU
//   wrong-unit            every row, the smallest too, is off by 8 or by the factor between algbw and busbw
//   congestion-collapse   bandwidth falls from one size to the next and stays down: no constant limit of a link does that
//   gpu-nic-topology      GPUs on consecutive bus numbers: PCIe switches are hidden, so NCCL cannot pair GPUs and NICs
//   between-nvlink-groups NVLink joins the GPUs in groups, and the whole moves slower than one GPU's NVLinks by far
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/explain_log.hpp"

namespace weft {

// Half of the GPUs or more on neighbouring bus numbers: every device hangs from one flat bus, as virtual machines show it.
bool flat_buses(const std::vector<MeasuredDevice>& devices);
LogCause topology_cause(std::string evidence);

std::optional<LogCause> shared_gpu(const std::vector<MeasuredDevice>& devices);
// `rows` hold the prediction without any offset.
std::optional<LogCause> wrong_unit(std::span<const LogRow> rows, double busbw_factor);
// The first of two rows in a row of sizes between which the bandwidth collapses.
LogCause collapse_cause(const LogRow& before, const LogRow& after);
// For one server; `algbw_gbs` of the largest size.
std::optional<LogCause> between_groups(const Fabric& fabric, std::span<const NodeId> gpus,
                                       double algbw_gbs);

}  // namespace weft
