// SPDX-License-Identifier: Apache-2.0
// The list of importers: one line each.
#include <array>

#include "calibrate/import/hf_config.hpp"
#include "calibrate/import/import.hpp"
#include "calibrate/import/moe_log.hpp"
#include "calibrate/import/nccl_graph.hpp"
#include "calibrate/import/nccl_inspector.hpp"
#include "calibrate/import/nccl_tests.hpp"
#include "calibrate/import/nccl_xml.hpp"
#include "calibrate/import/nvbandwidth.hpp"
#include "calibrate/import/nvlink_status.hpp"
#include "calibrate/import/p2p_bandwidth.hpp"
#include "calibrate/import/perftest.hpp"
#include "calibrate/import/topo_m.hpp"

namespace weft {

std::span<const Importer* const> importers() {
  static constexpr std::array kAll{
      &kTopoMImporter,         &kNcclXmlImporter,     &kNcclGraphImporter, &kNcclTestsImporter,
      &kNcclInspectorImporter, &kNvbandwidthImporter, &kP2pImporter,       &kPerftestImporter,
      &kNvlinkStatusImporter,  &kMoeLogImporter,      &kHfConfigImporter,
  };
  return kAll;
}

}  // namespace weft
