// SPDX-License-Identifier: Apache-2.0
// weft topo: what a fabric consists of, how much crosses its middle, where it is weak, and the matrix of a server.
#include <algorithm>
#include <cctype>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/core/config.hpp"
#include "sim/core/text.hpp"
#include "sim/fabric/analysis.hpp"
#include "sim/fabric/network_routes.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/nccl_channels.hpp"
#include "tools/cli/output.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostListed = 100;      // weak spots by name; the rest are counted
constexpr std::size_t kMatrixByDefault = 16;  // GPUs

std::string gbytes(Bandwidth rate) { return fmt::format("{:.1f}", rate.gbytes_per_s()); }

// All names of nodes and links, and of uplinks (leaf3/up1), that match.
std::vector<std::string> matching_names(const Fabric& fabric, const std::string& glob) {
  std::vector<std::string> out;
  const auto offer = [&](std::string name) {
    if (glob_match(glob, name)) out.push_back(std::move(name));
  };
  for (std::size_t i = 0; i < fabric.node_count(); ++i) offer(fabric.name(NodeId{i}));
  for (std::size_t i = 0; i < fabric.link_count(); ++i) offer(fabric.name(LinkId{i}));
  for (const NodeId id : fabric.switches()) {
    const Node& from = fabric.node(id);
    std::size_t k = 0;
    for (const LinkId l : fabric.out_links(id)) {
      const Node& to = fabric.node(fabric.link(l).to);
      if (to.kind != NodeKind::network_switch || to.level <= from.level) continue;
      offer(fmt::format("{}/up{}", fabric.name(id), k++));
    }
  }
  return out;
}

class Topo final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("fabric", fabric_,
                   "a fabric or server: catalogue name or a path ending in .json")
        ->required();
    add_set_option(app, sets_);
    app.add_option("--names", names_,
                   "list the names of nodes and links that match, e.g. \"leaf*:spine0\"")
        ->type_name("GLOB");
    app.add_flag("--matrix", matrix_,
                 "print the matrix of the first kind of server, however large");
    nccl_option_ = app.add_option("--nccl", nccl_.version,
                                  "the channels NCCL builds here; a release from 2.5 to 2.30, "
                                  "default 2.27.7")
                       ->expected(0, 1)
                       ->type_name("VERSION");
    app.add_option("--env", nccl_.variables, "NAME=VALUE of an NCCL variable, any number")
        ->take_all()
        ->needs(nccl_option_);
    app.add_option("--gpus", nccl_.gpus, "the GPUs of the communicator by position, e.g. 0-3,7")
        ->type_name("LIST")
        ->needs(nccl_option_);
    app.add_option("--nccl-graph", graph_file_, "writes the channels as NCCL_GRAPH_DUMP_FILE would")
        ->type_name("FILE")
        ->needs(nccl_option_);
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    Diagnostics diagnostics;
    const LoadedFabric loaded = load_fabric(fabric_, sets_, diagnostics);
    if (nccl_option_->count() == 0) io.err << diagnostics.text();
    const Fabric& fabric = loaded.fabric;
    if (!names_.empty() && !json_) {
      for (const std::string& name : matching_names(fabric, names_)) io.out += name + "\n";
      return kOk;
    }
    if (nccl_option_->count() > 0) return run_nccl(fabric, diagnostics, io);
    Progress progress(io.err);
    progress.show("bisection");
    const Facts facts{count_components(fabric), compute_bisection(fabric),
                      find_oversubscription(fabric), find_weak_spots(fabric), [&] {
                        NetworkRoutes routes(fabric);
                        return find_dependency_cycle(fabric, routes);
                      }()};
    if (json_) {
      io.out += to_text(to_json(fabric, facts)) + "\n";
    } else {
      print(fabric, facts, io);
    }
    return kOk;
  }

 private:
  // Raw, of all NVLinks of the first GPU; data sheets count both directions.
  static Bandwidth nvlink_rate(const Fabric& fabric) {
    Bandwidth sum{0};
    for (const LinkId l : fabric.out_links(fabric.gpus().front())) {
      if (fabric.link(l).link_class == LinkClass::nvlink) sum = {sum.bps + fabric.link(l).raw.bps};
    }
    return sum;
  }
  struct Facts {
    Counts counts;
    Bisection bisection;
    Oversubscription oversubscription;
    WeakSpots weak;
    DependencyCycle cycle;
  };

  int run_nccl(const Fabric& fabric, Diagnostics& diagnostics, Io& io) const {
    const NcclAnswer answer = find_nccl_channels(fabric, nccl_, diagnostics);
    io.err << diagnostics.text();
    if (!graph_file_.empty()) write_file(graph_file_, nccl_graph_xml(fabric, answer));
    if (!json_) {
      io.out += nccl_text(fabric, answer, io.colour);
      return kOk;
    }
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("fabric", fabric.spec().name);
    out.set("nccl", nccl_json(fabric, answer));
    io.out += to_text(out) + "\n";
    return kOk;
  }

  template <class Id>
  static std::vector<std::string> names_of(const Fabric& fabric, const std::vector<Id>& ids) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < std::min(ids.size(), kMostListed); ++i)
      out.push_back(fabric.name(ids[i]));
    return out;
  }

  static Json list(const std::vector<std::string>& names) {
    Json out = Json::array();
    for (const std::string& name : names) out.push(name);
    return out;
  }

  Json to_json(const Fabric& fabric, const Facts& facts) const {
    const Counts& counts = facts.counts;
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("fabric", fabric.spec().name);
    out.set("servers", std::uint64_t{counts.servers});
    out.set("gpus", std::uint64_t{counts.gpus});
    out.set("nics", std::uint64_t{counts.nics});
    Json& switches = out.set("switches", Json::object());
    switches.set("leaf", std::uint64_t{counts.switches[0]});
    switches.set("spine", std::uint64_t{counts.switches[1]});
    switches.set("core", std::uint64_t{counts.switches[2]});
    out.set("nodes", std::uint64_t{counts.nodes});
    out.set("links", std::uint64_t{counts.links});
    Json by_tier = Json::object(), classes = Json::array();
    for (const LinkGroup& group : counts.groups) {
      const Json* sofar = by_tier.find(write_config(group.tier).text);
      const std::uint64_t before =
          sofar != nullptr ? static_cast<std::uint64_t>(sofar->integer) : 0;
      by_tier.set(write_config(group.tier).text, before + group.links);
      Json row = Json::object();
      row.set("tier", write_config(group.tier).text);
      row.set("class", write_config(group.link_class).text);
      row.set("links", std::uint64_t{group.links});
      row.set("cables", std::uint64_t{group.cables});
      row.set("raw_gbs", group.raw.gbytes_per_s());
      classes.push(std::move(row));
    }
    out.set("links_by_tier", std::move(by_tier));
    out.set("link_groups", std::move(classes));
    const Bisection& bisection = facts.bisection;
    out.set("bisection_gbs", bisection.flow ? Json(bisection.flow->gbytes_per_s()) : Json{});
    out.set("bisection_formula_gbs", bisection.formula.gbytes_per_s());
    Json& cut = out.set("bisection_cut_gbs", Json::object());
    for (const auto& crossing : bisection.crossings)
      cut.set(write_config(crossing.tier).text, crossing.raw.gbytes_per_s());
    out.set("oversubscription",
            facts.oversubscription.most ? Json(*facts.oversubscription.most) : Json{});
    out.set("cut_vertices", list(names_of(fabric, facts.weak.nodes)));
    out.set("cut_vertex_count", std::uint64_t{facts.weak.nodes.size()});
    out.set("bridges", list(names_of(fabric, facts.weak.links)));
    out.set("bridge_count", std::uint64_t{facts.weak.links.size()});
    out.set("dependency_cycle",
            facts.cycle.searched ? list(names_of(fabric, facts.cycle.links)) : Json{});
    const ServerType& type = fabric.types().front();
    if (prints_matrix(type)) {
      const AffinityMatrix matrix = affinity_matrix(type);
      Json& labels = out.set("matrix_names", Json::array());
      for (const std::uint32_t local : matrix.locals) labels.push(type.node_names[local]);
      Json& rows = out.set("matrix", Json::array());
      for (const auto& cells : matrix.cells) rows.push(list(cells));
    }
    if (!names_.empty()) out.set("names", list(matching_names(fabric, names_)));
    return out;
  }

  bool prints_matrix(const ServerType& type) const {
    return matrix_ || type.gpus.size() <= kMatrixByDefault;
  }

  void print(const Fabric& fabric, const Facts& facts, Io& io) const {
    const Counts& counts = facts.counts;
    const auto heading = [&](std::string_view text) {
      io.out += "\n" + paint(text, Colour::bold, io.colour) + "\n";
    };
    io.out += fmt::format("{}  {}\n", paint(fabric.spec().name, Colour::bold, io.colour),
                          fabric.spec().summary);
    Table summary({"", ""});
    summary.row({"servers", fmt::format("{}", counts.servers)});
    summary.row({"GPUs", fmt::format("{}", counts.gpus)});
    summary.row({"NICs", fmt::format("{}", counts.nics)});
    if (counts.switches[0] + counts.switches[1] + counts.switches[2] > 0) {
      summary.row({"switches", fmt::format("{} leaf, {} spine, {} core", counts.switches[0],
                                           counts.switches[1], counts.switches[2])});
      summary.row({"routing", write_config(fabric.routing()).text});
    }
    summary.row({"nodes", fmt::format("{}", counts.nodes)});
    summary.row({"links", fmt::format("{}", counts.links)});
    if (const Bandwidth each = nvlink_rate(fabric); each.bps > 0)
      summary.row({"NVLink", fmt::format("{} GB/s of a GPU, {} GB/s both directions", gbytes(each),
                                         gbytes({2 * each.bps}))});
    io.out += summary.text("  ");

    heading("Links (rates of one direction, all together)");
    Table links({"tier", "class", "links", "cables", "raw GB/s"});
    for (const LinkGroup& group : counts.groups) {
      links.row({write_config(group.tier).text, write_config(group.link_class).text,
                 fmt::format("{}", group.links), fmt::format("{}", group.cables),
                 gbytes(group.raw)});
    }
    io.out += links.text("  ");

    heading("Bisection");
    print_bisection(fabric, facts, io);
    heading("Weak spots");
    print_weak_spots(fabric, facts, io);
    if (prints_matrix(fabric.types().front())) print_matrix(fabric, io);
  }

  static void print_bisection(const Fabric& fabric, const Facts& facts, Io& io) {
    const Bisection& bisection = facts.bisection;
    const std::string_view halves = fabric.server_count() == 1 ? "GPUs" : "servers";
    if (bisection.flow) {
      std::string cut;
      for (const auto& crossing : bisection.crossings) {
        cut += fmt::format("{}{} {}", cut.empty() ? "" : " + ", write_config(crossing.tier).text,
                           gbytes(crossing.raw));
      }
      io.out += fmt::format("  {} GB/s between the halves of the {}, one direction (cut: {})\n",
                            gbytes(*bisection.flow), halves, cut.empty() ? "none" : cut);
    } else {
      io.out += fmt::format("  not computed: {}\n",
                            facts.counts.gpus < 2 ? "one GPU has no halves" : "too many links");
    }
    io.out += fmt::format("  {} GB/s is what one half can send\n", gbytes(bisection.formula));
    const Oversubscription& over = facts.oversubscription;
    if (over.most) {
      io.out += fmt::format(
          "  oversubscription {:.3g} : 1 at {}{}\n", *over.most, fabric.name(over.worst),
          *over.least < *over.most ? fmt::format(", {:.3g} : 1 at best", *over.least) : "");
    }
  }

  static void print_weak_spots(const Fabric& fabric, const Facts& facts, Io& io) {
    const auto listed = [&](std::string_view what, const std::vector<std::string>& names,
                            std::size_t count) {
      if (count == 0) return;
      io.out += fmt::format(
          "  {} {}: {}{}\n", count, what, join(names, ", "),
          count > names.size() ? fmt::format(" and {} more", count - names.size()) : "");
    };
    constexpr std::size_t kShort = 8;
    auto nodes = names_of(fabric, facts.weak.nodes), links = names_of(fabric, facts.weak.links);
    if (nodes.size() > kShort) nodes.resize(kShort);
    if (links.size() > kShort) links.resize(kShort);
    if (nodes.empty() && links.empty()) io.out += "  no single node or cable separates GPUs\n";
    listed("nodes whose loss separates GPUs", nodes, facts.weak.nodes.size());
    listed("cables whose loss separates GPUs", links, facts.weak.links.size());
    if (fabric.switches().empty()) return;
    if (!facts.cycle.searched) {
      io.out += "  dependency cycles: not searched, the network is too large\n";
    } else if (facts.cycle.links.empty()) {
      io.out += "  no dependency cycle among the links of the network\n";
    } else {
      io.out += "  dependency cycle (lossless traffic can deadlock): " +
                join(names_of(fabric, facts.cycle.links), " -> ") + "\n";
    }
  }

  static void print_matrix(const Fabric& fabric, Io& io) {
    const ServerType& type = fabric.types().front();
    const AffinityMatrix matrix = affinity_matrix(type);
    io.out += "\n" + paint(type.spec.name, Colour::bold, io.colour) + "\n";
    // As nvidia-smi writes it: GPU0, NIC0.
    const auto label = [&](std::uint32_t local) {
      std::string name = type.node_names[local];
      std::ranges::transform(name, name.begin(),
                             [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      return name;
    };
    std::vector<std::string> header{""};
    for (const std::uint32_t local : matrix.locals) header.push_back(label(local));
    Table table(header);
    for (std::size_t i = 0; i < matrix.locals.size(); ++i) {
      std::vector<std::string> row{label(matrix.locals[i])};
      row.insert(row.end(), matrix.cells[i].begin(), matrix.cells[i].end());
      table.row(std::move(row));
    }
    io.out += table.text("  ");
    io.out +=
        "\n  NV#  joined by # NVLinks, directly or through NVSwitches (XGMI#, HCCS#, UAL#, LINK#: "
        "other classes)\n"
        "  PIX  at most one PCIe switch      PXB  several PCIe switches\n"
        "  PHB  through one socket           SYS  across sockets           X  itself\n";
  }

  std::string fabric_, names_, graph_file_;
  Settings sets_;
  NcclQuestion nccl_;
  CLI::Option* nccl_option_ = nullptr;
  bool json_ = false, matrix_ = false;
};

}  // namespace

extern const Verb kTopo;
const Verb kTopo{"topo", "nodes, links, tiers, bisection and weak spots of a fabric",
                 make_command<Topo>};

}  // namespace weft
