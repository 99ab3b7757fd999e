// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/nccl_channels.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "models/nccl/machine.hpp"
#include "models/nccl/predict.hpp"
#include "sim/core/config.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/nccl_flags.hpp"
#include "tools/cli/terminal.hpp"

namespace weft {
namespace {

bool read_number(std::string_view text, std::size_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

// "0-3,7" as positions below `count`.
std::vector<std::size_t> read_positions(std::string_view text, std::size_t count,
                                        Diagnostics& diagnostics) {
  std::vector<std::size_t> out;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t dash = item.find('-');
    std::size_t first = 0, last = 0;
    const bool read = read_number(item.substr(0, dash), first) &&
                      (dash == std::string_view::npos ? (last = first, true)
                                                      : read_number(item.substr(dash + 1), last));
    if (!read || first > last || last >= count) {
      diagnostics.error({}, "--gpus",
                        fmt::format("\"{}\" names no GPUs of the {} there are", item, count),
                        "positions and ranges from 0, e.g. 0-3,7");
      return {};
    }
    for (std::size_t g = first; g <= last; ++g) out.push_back(g);
  }
  return out;
}

// Names of the first node stand for all nodes.
class Names {
 public:
  Names(const Fabric& fabric, const NcclAnswer& answer)
      : type_(fabric.type_of(fabric.node(answer.gpus[0]).server)) {
    const std::uint32_t base = fabric.server(fabric.node(answer.gpus[0]).server).node_base;
    for (std::size_t r = 0; r < answer.gpus.size() && answer.topology.node_of_rank[r] == 0; ++r)
      gpus_.push_back(type_.node_names[answer.gpus[r].v - base]);
  }
  const std::string& gpu(std::uint32_t local_rank) const { return gpus_[local_rank]; }
  const std::string& nic(std::int32_t position) const {
    return type_.node_names[type_.nics[static_cast<std::size_t>(position)]];
  }

 private:
  const ServerType& type_;
  std::vector<std::string> gpus_;
};

std::string pattern_text(const NcclGraph& graph) {
  if (graph.pattern != NcclPattern::tree) return write_config(graph.pattern).text;
  return fmt::format("tree, {}", write_config(graph.tree_shape).text);
}

std::string channel_text(const NcclChannel& channel, const NcclGraph& graph, const Names& names) {
  std::vector<std::string> stops;
  if (channel.nic_in >= 0) stops.push_back(names.nic(channel.nic_in));
  const bool heads =
      graph.pattern == NcclPattern::nvls || graph.pattern == NcclPattern::collnet_direct;
  for (const std::uint32_t gpu : channel.gpus) {
    stops.push_back(names.gpu(gpu));
    if (heads) break;
  }
  if (channel.nic_out >= 0 && !heads) stops.push_back(names.nic(channel.nic_out));
  return join(stops, " ");
}

std::string number(double value) { return fmt::format("{:g}", value); }

// Equal channels in a row become one line, as "0-11".
void list_channels(const NcclGraph& graph, const Names& names, std::string& out) {
  for (std::size_t c = 0; c < graph.channels.size();) {
    const std::string text = channel_text(graph.channels[c], graph, names);
    std::size_t end = c + 1;
    while (end < graph.channels.size() && channel_text(graph.channels[end], graph, names) == text)
      ++end;
    const std::string range =
        end == c + 1 ? fmt::format("{}", c) : fmt::format("{}-{}", c, end - 1);
    out += fmt::format("  {:>6}  {}\n", range, text);
    c = end;
  }
}

int graph_id(NcclPattern pattern) {
  switch (pattern) {
    case NcclPattern::ring:
      return 0;
    case NcclPattern::tree:
      return 1;
    case NcclPattern::collnet_chain:
      return 2;
    case NcclPattern::nvls:
      return 3;
    case NcclPattern::collnet_direct:
      return 4;
  }
  return -1;
}

int pattern_number(const NcclGraph& graph) {
  switch (graph.pattern) {
    case NcclPattern::ring:
      return 4;
    case NcclPattern::tree:
      return graph.tree_shape == NcclTreeShape::balanced ? 1
             : graph.tree_shape == NcclTreeShape::split  ? 2
                                                         : 3;
    case NcclPattern::collnet_chain:
      return 3;
    case NcclPattern::nvls:
      return 5;
    case NcclPattern::collnet_direct:
      return 6;
  }
  return -1;
}

// Device numbers of a graph file: of a GPU or NIC within its host, the host in the top byte. Since 2.21 in hexadecimal.
class DeviceNumbers {
 public:
  DeviceNumbers(const Fabric& fabric, const NcclAnswer& answer)
      : hexadecimal_(answer.topology.version >= NcclVersion{2, 21, 5}) {
    const ServerId server = fabric.node(answer.gpus[0]).server;
    const ServerType& type = fabric.type_of(server);
    const std::uint32_t base = fabric.server(server).node_base;
    const std::vector<std::uint32_t> hosts = nccl::hosts_of(type);
    std::map<std::uint32_t, std::uint64_t> number_of_host;
    for (std::size_t r = 0; r < answer.gpus.size() && answer.topology.node_of_rank[r] == 0; ++r)
      number_of_host.emplace(hosts[answer.gpus[r].v - base], 0);
    std::uint64_t next = 0;
    for (auto& [host, value] : number_of_host) value = next++;
    const auto count = [&](const std::vector<std::uint32_t>& locals, std::uint32_t local) {
      std::uint64_t at = 0;
      for (const std::uint32_t other : locals) {
        if (other == local) break;
        if (hosts[other] == hosts[local]) ++at;
      }
      const auto found = number_of_host.find(hosts[local]);
      return at | ((found == number_of_host.end() ? 0 : found->second) << 56);
    };
    for (std::size_t r = 0; r < answer.gpus.size() && answer.topology.node_of_rank[r] == 0; ++r)
      gpus_.push_back(count(type.gpus, answer.gpus[r].v - base));
    for (const std::uint32_t local : type.nics) nics_.push_back(count(type.nics, local));
  }
  std::string gpu(std::uint32_t local_rank) const { return text(gpus_[local_rank]); }
  std::string nic(std::int32_t position) const {
    return text(nics_[static_cast<std::size_t>(position)]);
  }

 private:
  std::string text(std::uint64_t value) const {
    return hexadecimal_ ? fmt::format("0x{:x}", value) : fmt::format("{}", value);
  }
  bool hexadecimal_;
  std::vector<std::uint64_t> gpus_, nics_;
};

}  // namespace

NcclAnswer find_nccl_channels(const Fabric& fabric, const NcclQuestion& question,
                              Diagnostics& diagnostics) {
  const NcclVersion version =
      read_nccl_release(question.version, diagnostics).value_or(NcclVersion{});
  const NcclEnvironment environment = read_nccl_variables(question.variables, diagnostics);
  const std::vector<std::size_t> positions =
      read_positions(question.gpus, fabric.gpus().size(), diagnostics);
  diagnostics.throw_if_errors();
  NcclAnswer out;
  for (const std::size_t g : positions) out.gpus.push_back(fabric.gpus()[g]);
  if (out.gpus.empty()) out.gpus.assign(fabric.gpus().begin(), fabric.gpus().end());
  out.topology = nccl_topology(fabric, out.gpus, version, environment);
  return out;
}

std::string nccl_text(const Fabric& fabric, const NcclAnswer& answer, bool colour) {
  const NcclTopology& t = answer.topology;
  const Names names(fabric, answer);
  std::string out = fmt::format(
      "{}  NCCL {}, {} GPUs on {} {}\n", paint(fabric.spec().name, Colour::bold, colour),
      version_text(t.version), t.ranks, t.nodes, t.nodes == 1 ? "node" : "nodes");
  const auto heading = [&](std::string_view text) {
    out += "\n" + paint(text, Colour::bold, colour) + "\n";
  };

  heading("Channels (speeds are what NCCL believes of one channel)");
  Table graphs({"pattern", "searched", "GB/s inside", "GB/s network", "ways inside", "to NICs",
                "same order"});
  for (const auto& [pattern, graph] : t.graphs) {
    const bool network = t.nodes > 1;
    graphs.row(
        {pattern_text(graph), fmt::format("{}", graph.channels.size()), number(graph.bw_intra),
         network ? number(graph.bw_inter) : "", write_config(graph.type_intra).text,
         network ? write_config(graph.type_inter).text : "", graph.same_channels ? "yes" : "no"});
  }
  out += graphs.text("  ");
  Table counts({"", ""});
  counts.row({"rings and trees", fmt::format("{} channels", t.connections.rings.size())});
  if (t.nvls) {
    counts.row({"NVLS", fmt::format("{} channels, {} heads", t.nvls_channels,
                                    t.connections.nvls_heads.size())});
  }
  counts.row({"point to point",
              fmt::format("{} channels, {} per peer", t.p2p_channels, t.p2p_channels_per_peer)});
  out += counts.text("  ");

  for (const auto& [pattern, graph] : t.graphs) {
    heading(fmt::format("{}{}", pattern_text(graph), t.nodes > 1 ? " (first node)" : ""));
    list_channels(graph, names, out);
  }
  if (t.nodes > 1) {
    heading("Rings by NIC (first two nodes)");
    Table nics({"node", "NIC", "in", "out"});
    for (const NcclNicUse& use : nccl_ring_nic_use(t)) {
      if (use.node > 1) break;
      nics.row({fmt::format("{}", use.node), names.nic(use.nic), fmt::format("{}", use.in),
                fmt::format("{}", use.out)});
    }
    out += nics.text("  ");
  }
  if (t.notes.empty()) return out;
  heading("Notes");
  for (const std::string& note : t.notes) out += "  " + note + "\n";
  return out;
}

Json nccl_json(const Fabric& fabric, const NcclAnswer& answer) {
  const NcclTopology& t = answer.topology;
  const Names names(fabric, answer);
  Json out = Json::object();
  out.set("version", version_text(t.version));
  out.set("ranks", std::uint64_t{t.ranks});
  out.set("nodes", std::uint64_t{t.nodes});
  Json& graphs = out.set("graphs", Json::object());
  for (const auto& [pattern, graph] : t.graphs) {
    Json& one = graphs.set(write_config(pattern).text, Json::object());
    if (pattern == NcclPattern::tree) one.set("shape", write_config(graph.tree_shape).text);
    one.set("bw_intra_gbs", graph.bw_intra);
    one.set("bw_inter_gbs", graph.bw_inter);
    one.set("type_intra", write_config(graph.type_intra).text);
    one.set("type_inter", write_config(graph.type_inter).text);
    one.set("cross_nic", graph.cross_nic);
    one.set("same_channels", graph.same_channels);
    Json& channels = one.set("channels", Json::array());
    for (const NcclChannel& channel : graph.channels) {
      Json row = Json::object();
      Json& gpus = row.set("gpus", Json::array());
      for (const std::uint32_t gpu : channel.gpus) gpus.push(names.gpu(gpu));
      row.set("nic_in", channel.nic_in < 0 ? Json{} : Json(names.nic(channel.nic_in)));
      row.set("nic_out", channel.nic_out < 0 ? Json{} : Json(names.nic(channel.nic_out)));
      channels.push(std::move(row));
    }
  }
  out.set("channels", std::uint64_t{t.connections.rings.size()});
  out.set("nvls_channels", std::uint64_t{t.nvls_channels});
  out.set("p2p_channels", std::uint64_t{t.p2p_channels});
  out.set("p2p_channels_per_peer", std::uint64_t{t.p2p_channels_per_peer});
  Json& rings = out.set("rings", Json::array());
  for (const auto& ring : t.connections.rings) {
    Json ranks = Json::array();
    for (const std::uint32_t rank : ring.ranks) ranks.push(std::uint64_t{rank});
    rings.push(std::move(ranks));
  }
  Json& notes = out.set("notes", Json::array());
  for (const std::string& note : t.notes) notes.push(note);
  return out;
}

std::string nccl_graph_xml(const Fabric& fabric, const NcclAnswer& answer) {
  const NcclTopology& t = answer.topology;
  const DeviceNumbers numbers(fabric, answer);
  const int crossing = t.version >= NcclVersion{2, 23, 4} ? 2 : 1;  // 2: mirrored pairs
  std::string out = "<graphs version=\"1\">\n";
  for (const auto& [pattern, graph] : t.graphs) {
    out += fmt::format(
        "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{:g}\" "
        "speedinter=\"{:g}\" latencyinter=\"{:g}\" typeintra=\"{}\" typeinter=\"{}\" "
        "samechannels=\"{}\">\n",
        graph_id(pattern), pattern_number(graph), graph.cross_nic ? crossing : 0,
        graph.channels.size(), graph.bw_intra, graph.bw_inter, graph.latency_inter,
        write_config(graph.type_intra).text, write_config(graph.type_inter).text,
        graph.same_channels ? 1 : 0);
    for (const NcclChannel& channel : graph.channels) {
      out += "    <channel>\n";
      const auto net = [&](std::int32_t nic) {
        if (nic >= 0) out += fmt::format("      <net dev=\"{}\"/>\n", numbers.nic(nic));
      };
      net(channel.nic_in);
      for (const std::uint32_t gpu : channel.gpus) {
        out += fmt::format("      <gpu dev=\"{}\" rank=\"{}\"/>\n", numbers.gpu(gpu), gpu);
        if (pattern == NcclPattern::nvls) break;  // only its head
      }
      net(channel.nic_out);
      out += "    </channel>\n";
    }
    out += "  </graph>\n";
  }
  return out + "</graphs>\n";
}

}  // namespace weft
