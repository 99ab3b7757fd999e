// SPDX-License-Identifier: Apache-2.0
// The machine that a measurement is about, as its driver and its operating system describe it. Facts, not measurements: what
// somebody must know to read the numbers (clocks, versions) or to build the fabric that they are fitted to (topology).
//
// Names: the GPUs of one server are gpu0, gpu1, ..., its sockets with their memory cpu0, cpu1, ..., its NICs nic0, nic1, ...;
// where a measurement is about several servers each name has its server in front, server1/gpu0, as in a fabric.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.hpp"

namespace weft {

struct MeasuredGpu {
  int device = -1;
  std::string product, bus, uuid, compute_capability;
  int sms = 0, copy_engines = 0, numa = -1, nvlinks = 0;
  std::optional<Bytes> memory, l2_cache;
  std::optional<Frequency> clock, memory_clock;
  std::optional<int> memory_bus, pcie_generation, pcie_width;
  std::optional<Power> power_limit;
  template <class V>
  void visit(V&& v) {
    v("device", device, "number on its server", required, between(0, 1'000'000));
    v("product", product, "name as the driver prints it", not_empty);
    v("bus", bus, "PCI address", not_empty);
    v("uuid", uuid, "of the driver; absent when anonymised", not_empty);
    v("compute_capability", compute_capability, "9.0, ...", not_empty);
    v("sms", sms, "streaming multiprocessors", between(1, 100'000));
    v("copy_engines", copy_engines, "asynchronous copy engines", between(1, 1000));
    v("numa", numa, "NUMA node it sits at", between(0, 1'000'000));
    v("nvlinks", nvlinks, "active NVLinks", between(1, 1000));
    v("memory", memory, "device memory", positive);
    v("l2_cache", l2_cache, "last-level cache", positive);
    v("clock", clock, "highest clock of the multiprocessors", positive);
    v("memory_clock", memory_clock, "highest clock of the memory", positive);
    v("memory_bus", memory_bus, "bits", between(1, 1'000'000));
    v("pcie_generation", pcie_generation, "as it runs now", between(1, 8));
    v("pcie_width", pcie_width, "lanes as it runs now", between(1, 32));
    v("power_limit", power_limit, "enforced", positive);
  }
};

struct MeasuredNic {
  std::string name, bus;
  std::optional<Bandwidth> rate;
  int numa = -1;
  template <class V>
  void visit(V&& v) {
    v("name", name, "mlx5_0, ...", required, not_empty);
    v("bus", bus, "PCI address", not_empty);
    v("rate", rate, "of the port as it runs now", positive);
    v("numa", numa, "NUMA node it sits at", between(0, 1'000'000));
  }
};

struct MeasuredHost {
  int server = 0;
  std::string host, processor, system, driver, cuda, nccl, topology;
  int sockets = 0;
  std::optional<Bytes> memory;
  std::vector<MeasuredGpu> gpus;
  std::vector<MeasuredNic> nics;
  std::map<std::string, std::string> paths;
  template <class V>
  void visit(V&& v) {
    v("server", server, "its number in the names of this file", between(0, 1'000'000));
    v("host", host, "name of the server; host0, host1, ... when anonymised", not_empty);
    v("processor", processor, "model of the CPUs", not_empty);
    v("sockets", sockets, "CPUs, or NUMA nodes where the system shows no sockets",
      between(1, 100'000));
    v("memory", memory, "of the host", positive);
    v("system", system, "kernel and its version", not_empty);
    v("driver", driver, "version of the GPU driver", not_empty);
    v("cuda", cuda, "version of the CUDA runtime", not_empty);
    v("nccl", nccl, "version of the library of collectives", not_empty);
    v("gpus", gpus, "in the order of their numbers", not_empty);
    v("nics", nics, "in the order of the system", not_empty);
    v("paths", paths,
      "pair of devices (gpu0-gpu1) -> what joins them: NV18, PIX, PXB, PHB, NODE or SYS",
      not_empty);
    v("topology", topology, "NCCL's dump of the machine, XML", not_empty);
  }
};

}  // namespace weft
