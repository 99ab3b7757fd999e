// SPDX-License-Identifier: Apache-2.0
// `nvidia-smi topo -m`: a matrix of what lies between each two devices.
//
//           GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
//   GPU0     X      NV12    PXB     0-31,64-95      0
//   GPU1    NV12     X      NODE    0-31,64-95      0
//   NIC0    PXB     NODE     X
//
// Tolerated: escape codes, spaces or tabs, lines of other programs around, a missing legend, rows that a terminal wrapped, NIC
//            columns that the header lost, a short or damaged cell that the mirrored cell can replace (each with a warning).
// Refused:   two cells of one pair that differ, a row whose X is not on the diagonal, a pair that stands in no row, a second
//            matrix. Affinities that lost characters count as unknown.
// Not in it: how fast anything is, whether NVLinks end at switches, the PCIe tree below PIX and PXB, NIC models. The tree that
//            is written is the smallest that agrees; between GPUs joined by NVLink the matrix hides it.
// Facts:     see machine_facts().
#pragma once

#include "calibrate/import/machine.hpp"

namespace weft {

extern const Importer kTopoMImporter;

// The matrix as it was read. GPUs come first, each group in the order of the header.
struct TopoMatrix {
  struct Cell {
    bool known = false;
    Distance distance = Distance::unknown;
    int nvlinks = 0;  // NV#: then `distance` is not known
    Place place{};
  };
  struct Device {
    std::string name, device;  // "NIC0" and, by the legend, "mlx5_0"
    std::string cpus, numa, memory_numa;
    Place place{};
  };
  std::vector<Device> devices;
  std::size_t gpus = 0;
  std::vector<std::vector<Cell>> cells;  // symmetric
};

TopoMatrix read_topo_matrix(std::string_view text, const std::string& file, Imported& out,
                            Diagnostics& diagnostics);

// Gives the devices of `machine` sockets and bridges: the smallest tree that agrees with the known distances.
void build_topo_tree(Machine& machine, const ImportOptions& options, Imported& out);

}  // namespace weft
