// SPDX-License-Identifier: Apache-2.0
// What was recognised, as JSON for programs and as lines for people.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "calibrate/import/machine.hpp"
#include "models/link/pcie.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json{} : Json(text); }

template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json{};
}

Json names_of(const Machine& machine, const std::vector<std::size_t>& gpus) {
  Json out = Json::array();
  for (const std::size_t g : gpus) out.push(machine.gpu(g).name);
  return out;
}

Json gpu_facts(const Machine& machine, std::size_t g) {
  const MachinePart& gpu = machine.gpu(g);
  Json out = Json::object();
  out.set("name", gpu.name);
  out.set("device", text_or_null(gpu.device));
  out.set("host", text_or_null(gpu.host));
  out.set("numa", text_or_null(gpu.numa));
  out.set("memory_numa", text_or_null(gpu.memory_numa));
  out.set("cpus", text_or_null(gpu.cpus));
  out.set("model", text_or_null(gpu.model));
  out.set("sm", value_or_null(gpu.sm));
  out.set("gdr", value_or_null(gpu.gdr));
  out.set("nvlinks", machine.nvlink_unknown ? Json{} : Json(machine.links[g]));
  if (gpu.c2c) {
    Json& c2c = out.set("c2c", Json::object());
    c2c.set("links", gpu.c2c_links);
    c2c.set("gbs", gpu.c2c->gbytes_per_s());
  }
  return out;
}

Json nic_facts(const MachinePart& nic) {
  Json out = Json::object();
  out.set("name", nic.name);
  out.set("device", text_or_null(nic.device));
  out.set("host", text_or_null(nic.host));
  out.set("numa", text_or_null(nic.numa));
  out.set("ports", nic.ports);
  out.set("speed_gbps", nic.speed ? Json(nic.speed->gbytes_per_s() * 8) : Json{});
  out.set("gdr", value_or_null(nic.gdr));
  out.set("role", nic.compute ? "compute" : "storage");
  return out;
}

Json socket_facts(const MachinePart& socket) {
  Json out = Json::object();
  out.set("name", socket.name);
  out.set("host", text_or_null(socket.host));
  out.set("numa", text_or_null(socket.numa));
  out.set("cpus", text_or_null(socket.cpus));
  return out;
}

Json end_facts(const Machine& machine, const NvlinkEnd& end) {
  Json out = Json::object();
  out.set("gpu", machine.gpu(end.gpu).name);
  out.set("target", end.target);
  out.set("links", end.count);
  return out;
}

// Of links that are pairs of GPUs; through switches nothing joins two GPUs alone.
struct Edges {
  std::int64_t edges = 0, links = 0;
};
Edges direct_edges(const Machine& machine) {
  std::vector<bool> direct(machine.gpus.size(), false);
  for (const Island& island : machine.islands) {
    for (const std::size_t g : island.gpus) direct[g] = island.wiring != Wiring::switched;
  }
  Edges out;
  for (const NvlinkPair& pair : machine.pairs) {
    if (!direct[pair.a]) continue;
    ++out.edges;
    out.links += pair.count;
  }
  return out;
}

Json nvlink_facts(const Machine& machine) {
  Json out = Json::object();
  out.set("wiring", word(machine.wiring()));
  if (machine.nvlink_unknown) return out;
  const Edges direct = direct_edges(machine);
  out.set("edges", direct.edges);
  out.set("links", direct.links);
  Json& per_gpu = out.set("links_per_gpu", Json::array());
  for (const int links : machine.links) per_gpu.push(links);
  Json& pairs = out.set("pairs", Json::array());
  for (const NvlinkPair& pair : machine.pairs) {
    Json one = Json::object();
    one.set("a", machine.gpu(pair.a).name);
    one.set("b", machine.gpu(pair.b).name);
    one.set("links", pair.count);
    pairs.push(std::move(one));
  }
  Json& domains = out.set("domains", Json::array());
  for (const Island& island : machine.islands) {
    Json one = Json::object();
    one.set("wiring", word(island.wiring));
    one.set("gpus", names_of(machine, island.gpus));
    domains.push(std::move(one));
  }
  Json& ends = out.set("to_switches", Json::array());
  for (const NvlinkEnd& end : machine.switch_ends) ends.push(end_facts(machine, end));
  Json& hidden = out.set("hidden", Json::array());
  std::int64_t hidden_links = 0;
  for (const NvlinkEnd& end : machine.hidden_ends) {
    hidden.push(end_facts(machine, end));
    hidden_links += end.count;
  }
  out.set("hidden_links", hidden_links);
  return out;
}

Json distance_facts(const Machine& machine) {
  Json out = Json::object();
  Json& names = out.set("names", Json::array());
  for (const std::size_t gpu : machine.gpus) names.push(machine.parts[gpu].name);
  for (const std::size_t nic : machine.nics) names.push(machine.parts[nic].name);
  const std::size_t n = machine.distances.size();
  std::vector<int> links(n * n, 0);
  for (const NvlinkPair& pair : machine.pairs)
    links[pair.a * n + pair.b] = links[pair.b * n + pair.a] = pair.count;
  Json& rows = out.set("matrix", Json::array());
  for (std::size_t i = 0; i < n; ++i) {
    Json row = Json::array();
    for (std::size_t j = 0; j < n; ++j) {
      row.push(links[i * n + j] > 0 ? fmt::format("NV{}", links[i * n + j])
                                    : std::string(word(machine.distances[i][j])));
    }
    rows.push(std::move(row));
  }
  return out;
}

Json rail_facts(const Machine& machine) {
  Json out = Json::array();
  for (const Rail& rail : machine.rails) {
    Json one = Json::object();
    one.set("gpu", machine.gpu(rail.gpu).name);
    one.set("nic", rail.nic == kNoPart ? Json{} : Json(machine.nic(rail.nic).name));
    one.set("distance", word(rail.distance));
    Json& nearest = one.set("nearest", Json::array());
    for (const std::size_t n : rail.nearest) nearest.push(machine.nic(n).name);
    out.push(std::move(one));
  }
  return out;
}

Json pcie_facts(const Machine& machine) {
  Json out = Json::array();
  for (const MachinePart& part : machine.parts) {
    if (part.kind == NodeKind::cpu) continue;
    Json one = Json::object();
    one.set("device", part.name);
    one.set("above", part.parent == kNoPart ? Json{} : Json(machine.parts[part.parent].name));
    one.set("gts", value_or_null(part.gts));
    one.set("width", value_or_null(part.width));
    const int generation = part.gts ? pcie_generation(*part.gts) : 0;
    one.set("gbs", generation > 0 && part.width
                       ? Json(pcie_rate(generation, *part.width).gbytes_per_s())
                       : Json{});
    out.push(std::move(one));
  }
  return out;
}

std::string join_names(const Machine& machine, const std::vector<std::size_t>& parts) {
  std::vector<std::string> names;
  for (const std::size_t part : parts) names.push_back(machine.parts[part].name);
  return join(names, ", ");
}

void note_nvlinks(const Machine& machine, Imported& out) {
  const auto read = [&](std::string text) { out.note(ImportNote::Kind::read, std::move(text)); };
  std::vector<std::pair<std::string, std::size_t>> kinds;
  for (const Island& island : machine.islands) {
    const auto [least, most] = std::ranges::minmax_element(
        island.gpus, {}, [&](std::size_t g) { return machine.links[g]; });
    const int low = machine.links[*least], high = machine.links[*most];
    std::string how = "joined directly";
    if (island.wiring == Wiring::switched)
      how = "behind NVSwitches: a GPU sends to all peers together at their rate, not to each";
    if (island.wiring == Wiring::mesh) how = "in a mesh: each link leads to one peer";
    std::string text =
        fmt::format("{} GPUs with {} links each, {}", island.gpus.size(),
                    low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high), how);
    const auto same = std::ranges::find(kinds, text, &std::pair<std::string, std::size_t>::first);
    if (same != kinds.end()) {
      ++same->second;
    } else {
      kinds.emplace_back(std::move(text), 1);
    }
    if (island.wiring != Wiring::switched || low == high) continue;
    out.note(ImportNote::Kind::warning,
             fmt::format("{} has {} NVLinks where others have {}: links are down",
                         machine.gpu(*least).name, low, high));
  }
  for (const auto& [text, times] : kinds)
    read(fmt::format("NVLink: {}{}", times > 1 ? fmt::format("{} times ", times) : "", text));
  const Edges direct = direct_edges(machine);
  if (direct.edges > 0)
    read(fmt::format(
        "{} joined by {} NVLinks",
        direct.edges == 1 ? "one pair of GPUs" : fmt::format("{} pairs of GPUs", direct.edges),
        direct.links));
  std::int64_t hidden = 0;
  for (const NvlinkEnd& end : machine.hidden_ends) hidden += end.count;
  if (hidden > 0) {
    out.note(ImportNote::Kind::warning,
             fmt::format(
                 "{} NVLinks lead to GPUs that are not in the capture: counted as hidden, not used",
                 hidden));
  }
}

void note_rails(const Machine& machine, Imported& out) {
  std::map<std::size_t, std::vector<std::size_t>> users;
  std::vector<std::size_t> far, unclear;
  for (const Rail& rail : machine.rails) {
    if (rail.distance == Distance::sys) far.push_back(machine.gpus[rail.gpu]);
    if (rail.distance == Distance::unknown) unclear.push_back(machine.gpus[rail.gpu]);
    if (rail.nic != kNoPart) users[rail.nic].push_back(machine.gpus[rail.gpu]);
  }
  std::vector<std::string> rails;
  std::size_t most = 0, least = machine.gpus.size();
  for (const auto& [nic, gpus] : users) {
    most = std::max(most, gpus.size());
    least = std::min(least, gpus.size());
    rails.push_back(fmt::format("{} for {}", machine.nic(nic).name, join_names(machine, gpus)));
  }
  if (!rails.empty()) out.note(ImportNote::Kind::read, "rails: " + join(rails, "; "));
  if (most > least) {
    out.note(ImportNote::Kind::warning,
             fmt::format("NICs are shared unevenly: {} to {} GPUs on one NIC", least, most));
  }
  if (!far.empty() && !machine.nics.empty()) {
    out.note(
        ImportNote::Kind::warning,
        machine.coherent
            ? fmt::format("{}: SYS to every NIC, which on Grace says only that the way leads over "
                          "C2C and the CPU",
                          join_names(machine, far))
            : fmt::format(
                  "{}: no NIC nearer than SYS, traffic to the network crosses the CPU interconnect",
                  join_names(machine, far)));
  }
  if (!unclear.empty() && !machine.nics.empty()) {
    out.note(ImportNote::Kind::unknown,
             fmt::format("distance of {} from the NICs", join_names(machine, unclear)));
  }
  std::vector<std::size_t> others;
  for (const std::size_t nic : machine.nics) {
    if (!machine.parts[nic].compute) others.push_back(nic);
  }
  if (!others.empty()) {
    out.note(ImportNote::Kind::read,
             fmt::format("not used for GPU traffic, no GPU has them nearest: {}",
                         join_names(machine, others)));
  }
}

}  // namespace

int pcie_generation(double gts) {
  constexpr std::array<double, 6> kRates{2.5, 5, 8, 16, 32, 64};
  const auto at = std::ranges::find(kRates, gts);
  return at == kRates.end() ? 0 : static_cast<int>(at - kRates.begin()) + 1;
}

Json machine_facts(const Machine& machine) {
  Json out = Json::object();
  Json& counts = out.set("counts", Json::object());
  counts.set("gpus", std::uint64_t{machine.gpus.size()});
  counts.set("nics", std::uint64_t{machine.nics.size()});
  counts.set("pcie_switches", std::uint64_t{machine.bridges.size()});
  counts.set("sockets", std::uint64_t{machine.sockets.size()});
  counts.set("hosts", std::uint64_t{machine.host_count()});
  Json& gpus = out.set("gpus", Json::array());
  for (std::size_t g = 0; g < machine.gpus.size(); ++g) gpus.push(gpu_facts(machine, g));
  Json& nics = out.set("nics", Json::array());
  for (std::size_t n = 0; n < machine.nics.size(); ++n) nics.push(nic_facts(machine.nic(n)));
  Json& sockets = out.set("sockets", Json::array());
  for (const std::size_t socket : machine.sockets)
    sockets.push(socket_facts(machine.parts[socket]));
  out.set("nvlink", nvlink_facts(machine));
  out.set("distances", distance_facts(machine));
  out.set("rails", rail_facts(machine));
  Json& others = out.set("nics_not_used", Json::array());
  for (std::size_t n = 0; n < machine.nics.size(); ++n) {
    if (!machine.nic(n).compute) others.push(machine.nic(n).name);
  }
  out.set("pcie_links", pcie_facts(machine));
  return out;
}

void add_machine_notes(const Machine& machine, Imported& out) {
  const auto counted = [](std::size_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : what.ends_with("ch") ? "es" : "s");
  };
  out.note(ImportNote::Kind::read,
           fmt::format("{}, {}, {}, {}", counted(machine.gpus.size(), "GPU"),
                       counted(machine.nics.size(), "NIC"),
                       counted(machine.bridges.size(), "PCIe switch"),
                       counted(machine.sockets.size(), "NUMA node")));
  if (machine.host_count() > 1)
    out.note(ImportNote::Kind::read, fmt::format("{} hosts", machine.host_count()));
  if (machine.nvlink_unknown) {
    out.note(ImportNote::Kind::unknown,
             "NVLinks: the capture does not mention any, present or not");
  } else {
    note_nvlinks(machine, out);
  }
  note_rails(machine, out);
}

}  // namespace weft
