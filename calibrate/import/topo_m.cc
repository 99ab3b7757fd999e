// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/topo_m.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "calibrate/import/machine_parts.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;

bool is_bond(const TopoMatrix::Device& device) {
  return (device.device.empty() ? device.name : device.device).find("bond") != std::string::npos;
}

Machine machine_of(const TopoMatrix& matrix) {
  Machine machine;
  for (std::size_t d = 0; d < matrix.devices.size(); ++d) {
    const TopoMatrix::Device& device = matrix.devices[d];
    MachinePart part{.kind = d < matrix.gpus ? NodeKind::gpu : NodeKind::nic};
    part.name = device.name;
    part.device = device.device;
    part.cpus = device.cpus;
    part.numa = device.numa;
    part.memory_numa = device.memory_numa;
    part.place = device.place;
    if (d >= matrix.gpus && is_bond(device)) part.ports = 2;
    machine.coherent = machine.coherent || !part.memory_numa.empty();
    machine.add(std::move(part));
    std::vector<Distance>& row = machine.distances.emplace_back();
    for (std::size_t e = 0; e < matrix.devices.size(); ++e) {
      const TopoMatrix::Cell& cell = matrix.cells[d][e];
      row.push_back(d == e ? Distance::self : cell.distance);
      if (d < e && cell.nvlinks > 0) machine.pairs.push_back({d, e, cell.nvlinks});
    }
  }
  return machine;
}

void note_devices(const Machine& machine, Imported& out) {
  std::vector<std::string> bonds;
  for (std::size_t n = 0; n < machine.nics.size(); ++n) {
    if (machine.nic(n).ports > 1) bonds.push_back(machine.nic(n).name);
  }
  if (!bonds.empty())
    out.note(Kind::read, "bonds, each one device with two ports: " + join(bonds, ", "));
  if (machine.coherent) {
    out.note(Kind::read,
             "the CPU addresses the GPUs' memory: GPU and CPU are joined by C2C, and SYS is not a "
             "way across slow PCIe");
  }
  out.note(Kind::unknown,
           "speed and generation of PCIe, NVLink and NICs: the matrix names what is crossed, not "
           "how fast it is");
}

Imported read_topo_m(std::string_view text, const std::string& file, const ImportOptions& options,
                     Diagnostics& diagnostics) {
  Imported out;
  out.kind = "topo-m";
  const TopoMatrix matrix = read_topo_matrix(text, file, out, diagnostics);
  if (!diagnostics.ok()) return out;
  Machine machine = machine_of(matrix);
  int links_of_part = 0;
  if (const auto gpu = options.answers.find("gpu");
      gpu != options.answers.end() && options.catalogue != nullptr) {
    const auto spec = catalogue_gpu(*options.catalogue, gpu->second);
    if (spec && spec->nvlink) links_of_part = spec->nvlink->links;
  }
  find_wiring(machine, links_of_part, out);
  build_topo_tree(machine, options, out);
  find_rails(machine);
  add_machine_notes(machine, out);
  note_devices(machine, out);
  out.facts = machine_facts(machine);
  add_server(machine, options, "nvidia-smi topo -m", out);
  return out;
}

}  // namespace

const Importer kTopoMImporter{
    .name = "topo-m",
    .summary = "nvidia-smi topo -m",
    .reference = "legend of its own output; NVIDIA Management Library, nvmlGpuTopologyLevel_t",
    .answers = "gpu nic pcie",
    .read = read_topo_m};

}  // namespace weft
