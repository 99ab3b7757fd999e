// SPDX-License-Identifier: Apache-2.0
// What a capture does not tell and the catalogue does: which GPU has such NVLinks, and how machines with that GPU are built.
//
// Twin. A server of the catalogue with the same GPU. What the capture leaves open (sockets, memory, copies through host memory,
//       the PCIe link below a switch) is taken from it and tagged "assumed: as TWIN".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "calibrate/import/machine.hpp"
#include "sim/core/loader.hpp"

namespace weft {

struct GpuChoice {
  std::string name;  // of the catalogue; empty: cannot be told
  GpuSpec spec;
  bool assumed = false;
  std::string reason;  // "18 NVLinks per GPU (switched)"
  std::string source;  // for the server file: "assumed: --gpu"
  std::string others;  // what else it might be
};

// The answer --gpu, else what the capture names, else what the wiring of the NVLinks is known for.
GpuChoice choose_gpu(const Machine& machine, const ImportOptions& options);

// The catalogue's name of a PCI device ("0x10de", "0x20b5"), empty when it is none of its GPUs.
std::string_view gpu_of_pci_id(std::string_view vendor, std::string_view device);

// The same for a NIC; an adapter that speaks both comes as one or the other.
std::string_view nic_of_pci_id(std::string_view vendor, std::string_view device, bool infiniband);

struct Twin {
  std::string name;
  bool same_gpu = true;
  Json gpu_above, gpu_to_cpu, switch_above, dram, socket;  // links; null: it has none
  std::string nic, storage_nic, nvswitch;                  // models
  std::size_t nvswitches = 0;
  Json cpu_latency, switch_latency;
  Json peer_access, gpudirect_rdma, staging, copy;
};

// The twin for a GPU model: of several the one that has NVSwitches if the machine has, then the nearest in GPUs, then the
// shortest name. Without one, a server stands in whose GPU has the same PCIe generation, of the same family if there is one.
std::optional<Twin> find_twin(const Machine& machine, const GpuChoice& gpu, FileSource& catalogue);

// A component of the catalogue, or nullopt.
std::optional<GpuSpec> catalogue_gpu(FileSource& catalogue, const std::string& name);
std::optional<NicSpec> catalogue_nic(FileSource& catalogue, const std::string& name);
std::optional<LinkSpec> catalogue_link(FileSource& catalogue, const std::string& name);

}  // namespace weft
