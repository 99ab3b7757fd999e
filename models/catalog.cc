// SPDX-License-Identifier: Apache-2.0
#include "models/catalog.hpp"

#include "models/analytic/analytic_network.hpp"
#include "models/collectives/algorithms.hpp"
#include "models/fluid/fluid_network.hpp"
#include "models/link/cxl.hpp"
#include "models/link/ethernet.hpp"
#include "models/link/given_rate.hpp"
#include "models/link/infiniband.hpp"
#include "models/link/nvlink.hpp"
#include "models/link/pcie.hpp"
#include "models/link/slingshot.hpp"
#include "models/packet/packet_network.hpp"
#include "sim/core/check.hpp"

namespace weft {

LinkClasses link_classes() {
  static constexpr const LinkClassEntry* kAll[] = {
      &kPcieLink, &kNvlinkLink, &kC2cLink,  &kInfinibandLink, &kEthernetLink, &kSlingshotLink,
      &kCxlLink,  &kUalinkLink, &kXgmiLink, &kHccsLink,       &kSocketLink,   &kMemoryLink,
  };
  return kAll;
}

std::span<const AlgorithmEntry* const> collective_algorithms() {
  return collectives::all_algorithms();
}

std::unique_ptr<NetworkModel> make_network(Fidelity fidelity, std::span<const Bandwidth> capacities,
                                           NetworkOptions options) {
  switch (fidelity) {
    case Fidelity::analytic:
      return std::make_unique<AnalyticNetwork>(capacities);
    case Fidelity::fluid:
      return std::make_unique<FluidNetwork>(capacities, options);
    case Fidelity::packet:
      WEFT_CHECK(options.fabric != nullptr && options.packet != nullptr, capacities.size());
      return std::make_unique<PacketNetwork>(options);
  }
  return nullptr;
}

}  // namespace weft
