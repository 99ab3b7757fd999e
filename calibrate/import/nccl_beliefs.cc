// SPDX-License-Identifier: Apache-2.0
// What NCCL takes a topology file for, where that differs from the machine. Constants: NVIDIA/nccl 2.30 src/graph/topo.cc and
// topo.h.
#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "calibrate/import/nccl_xml.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

constexpr int kUnknownLane = 60;  // generation 3

struct Lane {
  std::string_view text;
  int speed;
};
// In NCCL's order; a text counts when it begins with one of these.
constexpr Lane kLanes[] = {
    {"2.5 GT/s", 15},        {"5 GT/s", 30},          {"8 GT/s", 60},
    {"16 GT/s", 120},        {"32 GT/s", 240},        {"64 GT/s", 480},
    {"2.5 GT/s PCIe", 15},   {"5.0 GT/s PCIe", 30},   {"8.0 GT/s PCIe", 60},
    {"16.0 GT/s PCIe", 120}, {"32.0 GT/s PCIe", 240}, {"64.0 GT/s PCIe", 480}};

// GB/s that NCCL gives one NVLink of a GPU of this compute capability.
struct NvlinkSpeed {
  int sm;
  double gbs;
};
constexpr NvlinkSpeed kNvlinks[] = {{100, 40.1}, {90, 20.6}, {87, 20}, {86, 12},
                                    {80, 20},    {70, 20},   {60, 18}};

void believe(Imported& out, std::string text, Place place = {}) {
  out.note(ImportNote::Kind::belief, std::move(text), place);
}

void speeds(const std::vector<XmlLink>& links, Imported& out) {
  struct Same {
    std::vector<std::string> devices;
    Place place;
  };
  std::map<std::string, Same> misread;
  std::vector<std::string> zero_width;
  for (const XmlLink& link : links) {
    const int believed = nccl_lane_speed(link.speed);
    const auto meant = parse_link_speed(link.speed);
    // NCCL's unit leaves the line code out: 8 GT/s are 60, 15 for each 2 GT/s.
    const int expected = meant && *meant == 2.5 ? 15
                         : meant && *meant == 5 ? 30
                                                : static_cast<int>(meant.value_or(0) * 7.5);
    if (believed != expected) {
      Same& same = misread[link.speed];
      if (same.devices.empty()) same.place = link.place;
      same.devices.push_back(link.device);
    }
    if (link.width == "0" || link.width.empty()) zero_width.push_back(link.device);
  }
  for (const auto& [speed, same] : misread) {
    const auto meant = parse_link_speed(speed);
    believe(
        out,
        fmt::format("link_speed \"{}\" of {} is none of its spellings: taken for 8 GT/s{}", speed,
                    same.devices.size() == 1 ? same.devices.front()
                                             : fmt::format("{} devices", same.devices.size()),
                    meant ? fmt::format(" instead of {:g}; write \"{:g} GT/s\"", *meant, *meant)
                          : ", though nothing is known"),
        same.place);
  }
  if (!zero_width.empty())
    believe(out, fmt::format("link_width 0 or none of {} devices: taken for 16 lanes",
                             zero_width.size()));
}

void nvlinks(const Machine& machine, Imported& out) {
  if (machine.gpus.empty() || machine.links.empty() || machine.links.front() == 0 ||
      !machine.gpu(0).sm)
    return;
  for (const NvlinkSpeed& known : kNvlinks) {
    if (*machine.gpu(0).sm < known.sm) continue;
    believe(out, fmt::format(
                     "an NVLink of SM {} carries {:g} GB/s one way, {:g} GB/s for the {} of a GPU",
                     *machine.gpu(0).sm, known.gbs, known.gbs * machine.links.front(),
                     machine.links.front()));
    return;
  }
}

}  // namespace

int nccl_lane_speed(std::string_view link_speed) {
  for (const Lane& lane : kLanes) {
    if (link_speed.starts_with(lane.text)) return lane.speed;
  }
  return kUnknownLane;
}

std::optional<double> parse_link_speed(std::string_view link_speed) {
  while (link_speed.starts_with(' ')) link_speed.remove_prefix(1);
  double value = 0;
  const auto [end, error] =
      std::from_chars(link_speed.data(), link_speed.data() + link_speed.size(), value);
  if (error != std::errc{} || pcie_generation(value) == 0) return std::nullopt;
  std::string_view rest = link_speed.substr(static_cast<std::size_t>(end - link_speed.data()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (!rest.empty() && !rest.starts_with("GT/s")) return std::nullopt;
  return value;
}

void add_nccl_beliefs(const Machine& machine, const std::vector<XmlLink>& links, Imported& out) {
  speeds(links, out);
  nvlinks(machine, out);
  for (const std::size_t socket : machine.sockets) {
    if (machine.parts[socket].numa != "-1") continue;
    believe(out, "numaid -1: all devices on one CPU, whose affinity is not set",
            machine.parts[socket].place);
    break;
  }
  if (machine.tree_unknown) {
    believe(out,
            "no bridge stands between the devices and the CPU: every NIC is PHB from every GPU, so "
            "rails follow numbers and "
            "GPUDirect RDMA is judged by that");
  }
  const auto told = [&](const std::vector<std::size_t>& parts, bool value) {
    return std::ranges::all_of(parts, [&](std::size_t p) { return machine.parts[p].gdr == value; });
  };
  if (!machine.gpus.empty() && !machine.nics.empty() && told(machine.nics, false))
    believe(out, "gdr=\"0\" at every NIC: data goes through host memory, no NIC reads GPU memory");
  if (!machine.gpus.empty() && told(machine.gpus, false))
    believe(out, "gdr=\"0\" at every GPU: no GPUDirect RDMA");
  const bool no_leaves =
      std::ranges::all_of(machine.gpus, [&](std::size_t p) { return !machine.parts[p].sm; });
  if (no_leaves && !machine.gpus.empty())
    believe(out,
            "gpu and net elements are missing: it adds them when it runs, from the driver and the "
            "network plug-in");
}

}  // namespace weft
