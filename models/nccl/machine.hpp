// SPDX-License-Identifier: Apache-2.0
// One node as NCCL's topology code sees it: GPUs and NICs hanging from trees of PCIe switches under sockets, all NVSwitches
// melted into one, every link at the speed NCCL believes. Built from a kind of server and the GPUs a communicator uses there.
//
// A host is what shares sockets: a server is one, a rack of trays behind NVSwitches has one per tray. Only hosts with a GPU of
// the communicator show their NICs. A NIC has one NET per port that is cabled; ports of one NIC share its ASIC.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/nccl/assumed.hpp"
#include "sim/fabric/fabric.hpp"

namespace weft::nccl {

enum class DeviceKind : std::uint8_t { gpu, pci, nvs, cpu, nic, net };
inline constexpr std::size_t kDeviceKinds = 6;
enum class Wire : std::uint8_t { nvlink, c2c, pcie, socket, network };

struct MachineLink {
  std::uint32_t from, to, reverse;
  Wire wire;
  Speed speed;  // what is left of it while a search runs
};

struct Device {
  DeviceKind kind = DeviceKind::gpu;
  std::uint32_t index = 0;  // among its kind
  std::uint32_t host = 0;
  std::uint32_t local = 0;           // the server's node, where there is one
  std::vector<std::uint32_t> links;  // in the order NCCL walks them
  // gpu
  std::uint32_t rank = 0;    // position in the given order
  std::uint32_t number = 0;  // of the device in its host
  int compute_capability = 0;
  bool gpudirect = true;
  // net
  std::int32_t nic = -1;  // position among the server's compute NICs
  Speed speed = 0;        // left for searches
  bool collnet = false;
};

// The cabled ports of a server's compute NICs, by position: speed of every port.
using NicPorts = std::vector<std::vector<Speed>>;

struct Machine {
  std::vector<Device> devices;
  std::vector<MachineLink> links;
  std::array<std::vector<std::uint32_t>, kDeviceKinds> by_kind;  // indices into devices
  CpuKind cpu = CpuKind::skylake;
  std::uint32_t hosts = 1;
  // What the driver allows: peer_access[i][j] by index of GPU.
  std::vector<std::vector<bool>> peer_access;
  bool gpudirect = true;

  const std::vector<std::uint32_t>& of(DeviceKind kind) const {
    return by_kind[static_cast<std::size_t>(kind)];
  }
  std::size_t count(DeviceKind kind) const { return of(kind).size(); }
  const Device& at(DeviceKind kind, std::size_t index) const { return devices[of(kind)[index]]; }
};

// The host of every local node of a server.
std::vector<std::uint32_t> hosts_of(const ServerType& type);

// `gpus`: positions in the server's list of GPUs, in rank order. `ports` is empty when the communicator stays in the node.
// Throws InputError for GPUs that NCCL does not drive.
Machine build_machine(const ServerType& type, std::span<const std::uint32_t> gpus,
                      const NicPorts& ports, const Rules& rules);

// 70 for "7.0"; 0 when the text is no compute capability.
int parse_compute_capability(std::string_view text);

}  // namespace weft::nccl
