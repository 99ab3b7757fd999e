// SPDX-License-Identifier: Apache-2.0
// A machine as a capture shows it: devices below PCIe bridges below sockets, and NVLinks beside that tree. Importers of
// topologies fill it; what they share starts here: distances, rails, the wiring of the NVLinks, facts for people and the
// server description that `weft run` takes.
//
// Distance. How much of the PCIe tree lies between two devices, in the words of `nvidia-smi topo`: PIX at most one bridge,
//           PXB several bridges, PHB a host bridge, NODE several host bridges of one NUMA node, SYS several NUMA nodes.
//           It names what is crossed, not how fast that is.
// Rail.     The NIC that a GPU uses: the nearest one, of equals the one with the fewest GPUs so far.
// Wiring.   NVLinks join pairs (a bridge), some pairs unequally (a mesh), or end at NVSwitches. A matrix shows `NV12` in
//           every cell for a switch and also for a mesh of twelve links per pair; the links a part has tell them apart.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/import/import.hpp"
#include "sim/core/units.hpp"
#include "sim/fabric/spec.hpp"

namespace weft {

enum class Distance { self, pix, pxb, phb, node, sys, unknown };
std::string_view word(Distance distance);  // "PIX"; "X" for self

inline constexpr std::size_t kNoPart = static_cast<std::size_t>(-1);

// A socket (kind cpu), bridge (kind pcie_switch), GPU or NIC. Text is empty and numbers are absent where the capture does not
// tell.
struct MachinePart {
  NodeKind kind = NodeKind::gpu;
  std::string name;    // as the capture names it: "GPU0", "mlx5_0", "0000:17:00.0"
  std::string device;  // another name of it: "mlx5_0" of "NIC0", the bus address of "GPU0"
  std::size_t parent = kNoPart;  // the bridge or socket above
  std::optional<double> gts;     // PCIe link to what is above: GT/s of a lane
  std::optional<int> width;      // and its lanes
  std::string host, numa, cpus;
  std::string memory_numa;  // NUMA node of the GPU's own memory, where the CPU sees it (Grace)
  // GPUs
  std::string model;             // in the catalogue, if the capture names the part
  std::optional<int> sm;         // compute capability x 10
  std::optional<bool> gdr;       // direct access by NICs
  std::optional<Bandwidth> c2c;  // to the CPU, all links together
  int c2c_links = 0;
  // NICs
  std::optional<Bandwidth> speed;  // of one port
  int ports = 1;
  bool compute = true;  // used for GPU traffic
  Place place{};
};

// NVLinks between two GPUs, by position in Machine::gpus. In a matrix those through switches look the same.
struct NvlinkPair {
  std::size_t a = 0, b = 0;
  int count = 0;
};
// NVLinks of a GPU to a switch, or to a device that is not in the capture.
struct NvlinkEnd {
  std::size_t gpu = 0;
  std::string target;
  int count = 0;
};

// NCCL writes fffffff:ffff:ff or fffffff:ff:ff.0 for an NVSwitch that the host cannot see.
bool is_hidden_switch(std::string_view target);

enum class Wiring { none, pairs, mesh, switched, unknown };
std::string_view word(Wiring wiring);

// GPUs that reach each other over NVLink.
struct Island {
  Wiring wiring = Wiring::none;
  std::vector<std::size_t> gpus;
};

struct Rail {
  std::size_t gpu = 0;
  std::vector<std::size_t> nearest;  // NICs, by position in Machine::nics
  std::size_t nic = kNoPart;         // the one that it uses
  Distance distance = Distance::unknown;
};

struct Machine {
  std::vector<MachinePart> parts;
  std::vector<std::size_t> gpus, nics, bridges, sockets;  // into parts
  std::vector<NvlinkPair> pairs;
  std::vector<NvlinkEnd> switch_ends, hidden_ends;
  bool nvlink_unknown = false;  // the capture does not say whether there are any
  bool tree_unknown = false;    // GPUs and NICs stand side by side although they cannot
  bool coherent = false;        // the CPU addresses GPU memory over C2C (Grace)
  std::vector<std::vector<Distance>> distances;  // of GPUs, then NICs
  // Filled by what stands below.
  std::vector<int> links;  // NVLinks of each GPU
  std::vector<Island> islands;
  std::vector<Rail> rails;

  std::size_t add(MachinePart part);  // returns its place in `parts` and lists it under its kind
  const MachinePart& gpu(std::size_t g) const { return parts[gpus[g]]; }
  const MachinePart& nic(std::size_t n) const { return parts[nics[n]]; }
  Distance gpu_to_nic(std::size_t g, std::size_t n) const { return distances[g][gpus.size() + n]; }
  Wiring wiring() const;  // of the largest island
  std::size_t host_count() const;
};

// How many devices a capture may name; a machine of today has fewer than a hundred.
inline constexpr std::size_t kMostMachineDevices = 512;

// The generation whose lanes signal at this rate, 0 for a rate of none.
int pcie_generation(double gts);

// Distances from the tree, as NCCL counts them: PIX below one bridge, PXB below one root port, PHB at one socket.
void find_distances(Machine& machine);

// Fills links and islands. `links_of_part`: how many NVLinks the GPU model has, 0 when it is not known.
void find_wiring(Machine& machine, int links_of_part, Imported& out);

// Fills rails and MachinePart::compute of the NICs.
void find_rails(Machine& machine);

// {gpus, nics, sockets, counts, hosts, nvlink {wiring, edges, links, links_per_gpu, pairs, to_switches, hidden, domains},
//  distances {names, matrix}, rails, nics_not_used, pcie_links}
Json machine_facts(const Machine& machine);
// Lines under "read" and "warnings" that every machine has.
void add_machine_notes(const Machine& machine, Imported& out);

// Sets out.server, or out.open_questions where a fact is missing that has no sane default. `format` names the capture in
// `sources`: "nvidia-smi topo -m". Whatever was not read is tagged "assumed" and listed under "unknown".
void add_server(const Machine& machine, const ImportOptions& options, const std::string& format,
                Imported& out);

}  // namespace weft
