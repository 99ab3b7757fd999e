// SPDX-License-Identifier: Apache-2.0
// Networks from a few numbers: which switches there are and which cables join them to the NIC ports and to each other. Pure
// structure; rates and delays come from the specs when the fabric is built.
//
//   single-switch    one switch, every port
//   leaf-spine       leaves of h NIC ports and u uplinks, h * host rate = oversubscription * u * uplink rate
//   fat-tree         the same in 2 or 3 levels (Al-Fares et al., SIGCOMM 2008); oversubscription sits at the leaf
//   rail-optimised   the leaves are grouped by rail: NIC i of h neighbouring servers meets at one leaf
//   dragonfly        groups of fully joined routers, every two groups joined (Kim et al., ISCA 2008)
//   torus            one switch per point, neighbours joined along each dimension
//   explicit         as listed
//
// h defaults to half the radix, so that changing the oversubscription changes the uplinks and not who shares a leaf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/fabric/fabric.hpp"

namespace weft {

// One port of a compute NIC.
struct HostPort {
  std::uint32_t server = 0;
  std::uint32_t rail = 0;  // position of the NIC among the server's compute NICs
  std::uint32_t port = 0;  // of the NIC
  Bandwidth raw;           // of the port's link
  std::string name;        // for messages and explicit lists: server0/nic0
};

struct PlannedSwitch {
  std::string name;
  std::uint8_t level = 1;
};

struct PlannedCable {
  static constexpr std::uint32_t kHost = 0x8000'0000;  // set in `a`: a host port, else a switch
  std::uint32_t a = 0, b = 0;
  Tier tier = Tier::access;
  std::int32_t custom_link =
      -1;  // index into NetworkSpec::cables whose link is used instead of the default
};

struct NetworkPlan {
  std::vector<PlannedSwitch> switches;
  std::vector<PlannedCable> cables;
};

// `uplink` is the raw rate of a switch-to-switch cable.
NetworkPlan plan_network(const NetworkSpec& spec, const std::vector<HostPort>& hosts,
                         Bandwidth uplink, Diagnostics& out);

}  // namespace weft
