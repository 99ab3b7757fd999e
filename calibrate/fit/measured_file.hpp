// SPDX-License-Identifier: Apache-2.0
// A measurement with the file it came from, and whether it can be about the fabric that it shall be fitted to.
//
//   GPUs     what the file calls its GPUs against the fabric's model: a product must have the model's number in its name (H100,
//            4090), and not another form (SXM, PCIe, NVL). Refused, as a fit always finds some values.
//   devices  every name is one of the fabric's; ranks fit into its servers
//   servers  at most kMostServers; each GPU of a server has its number, each rank its GPU
//   sizes    at most kMostBytes, beyond which no memory holds a buffer and simulated clocks end
// All problems are told at once, each at its place in the file and with its JSON pointer.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measurement.hpp"
#include "sim/fabric/fabric.hpp"

namespace weft {

struct MeasuredFile {
  Measurement measurement;
  Json document;           // as it was read, with places; null for logs of other tools
  std::uint32_t file = 0;  // of the diagnostics
  // Of the value, or of what is nearest around it.
  Place at(const std::string& pointer) const;
};

inline constexpr Bytes kMostBytes = 1024_GiB;
inline constexpr std::int64_t kMostServers = 1 << 17;  // a million GPUs, eight a server

// Whether a GPU whose driver calls it `product` can be of the catalogue's `model`: "NVIDIA H100 80GB HBM3" and "h100-sxm5".
// True where either says nothing.
bool same_gpu(const std::string& product, const std::string& model);

// False with the problems reported. Other GPUs are told in `notes` where they are meant.
bool is_about(const MeasuredFile& file, const Fabric& fabric, bool other_gpus,
              std::vector<std::string>& notes, Diagnostics& out);

}  // namespace weft
