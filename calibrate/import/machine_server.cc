// SPDX-License-Identifier: Apache-2.0
// From a recognised machine to a file of kind "server". Each value is either from the capture, an answer, or assumed as in the
// twin, and is tagged so.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "calibrate/import/machine_parts.hpp"
#include "models/catalog.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

// NVLink of GA102 cards, as `nvidia-smi nvlink -s` shows it: half the lanes of an A100's link, a little faster.
constexpr Bandwidth kGa102Link{112'500'000'000};

// Where no twin has NICs, sockets or switches: what is common at a PCIe generation, NVLink generation.
constexpr std::string_view kNicOfPcie[] = {"cx3-fdr", "cx3-fdr", "cx3-fdr", "cx5-edr",
                                           "cx6-hdr", "cx7-ndr", "cx8-xdr"};
constexpr std::string_view kSocketOfPcie[] = {"qpi-9.6", "qpi-9.6", "qpi-9.6", "upi-10.4",
                                              "xgmi-18", "upi-16",  "upi-16"};
constexpr std::string_view kSwitchOfNvlink[] = {"",          "nvswitch1", "nvswitch1",
                                                "nvswitch2", "nvswitch3", "nvswitch4"};
constexpr std::size_t kSwitchesByDefault = 4;

template <std::size_t N>
std::string_view at_most(const std::string_view (&table)[N], int index) {
  return table[std::min(static_cast<std::size_t>(std::max(0, index)), N - 1)];
}

bool is_null(const Json& json) { return json.kind == Json::Kind::null; }

// Nodes whose ids count up become one entry with a range.
class NodeList {
 public:
  void add(std::string_view stem, std::size_t index, Json facts, std::string source) {
    const std::string key = to_text(facts, 0);
    if (stem != stem_ || index != last_ + 1 || key != key_) {
      flush();
      stem_ = stem;
      first_ = index;
      key_ = key;
      facts_ = std::move(facts);
      source_ = std::move(source);
    }
    last_ = index;
  }
  Json take(std::map<std::string, std::string>& sources) {
    flush();
    for (std::size_t i = 0; i < entry_sources_.size(); ++i) {
      if (!entry_sources_[i].empty()) sources[fmt::format("/nodes/{}", i)] = entry_sources_[i];
    }
    return std::move(entries_);
  }

 private:
  void flush() {
    if (stem_.empty()) return;
    Json entry = Json::object();
    entry.set("id", first_ == last_ ? fmt::format("{}{}", stem_, first_)
                                    : fmt::format("{}[{}-{}]", stem_, first_, last_));
    for (JsonMember& member : facts_.members) entry.set(member.key, std::move(member.value));
    entries_.push(std::move(entry));
    entry_sources_.push_back(source_);
    stem_.clear();
  }

  std::string stem_, key_, source_;
  std::size_t first_ = 0, last_ = 0;
  Json facts_, entries_ = Json::array();
  std::vector<std::string> entry_sources_;
};

class ServerWriter {
 public:
  ServerWriter(const Machine& machine, const ImportOptions& options, const std::string& format,
               Imported& out)
      : machine_(machine),
        options_(options),
        format_(format),
        out_(out),
        gpu_(choose_gpu(machine, options)) {}

  void write() {
    if (!can_write()) return;
    twin_ = *find_twin(machine_, gpu_, *options_.catalogue);
    as_twin_ = "assumed: as " + twin_.name + " in the catalogue";
    say_assumptions();
    add_nodes();
    add_links();
    finish();
  }

 private:
  std::string answer(const std::string& key) const {
    const auto at = options_.answers.find(key);
    return at != options_.answers.end() ? at->second : std::string{};
  }
  void ask(std::string question) { out_.open_questions.push_back(std::move(question)); }
  void unknown(std::string text) { out_.note(ImportNote::Kind::unknown, std::move(text)); }

  bool can_write() {
    if (options_.catalogue == nullptr) {
      ask("a server needs the hardware catalogue, which is not at hand");
    } else if (machine_.gpus.empty()) {
      ask("the capture shows no GPU");
    } else if (gpu_.name.empty()) {
      ask("which GPU is it? add --gpu MODEL, see `weft list gpus`");
    } else {
      check_nvlinks();
      if (!find_twin(machine_, gpu_, *options_.catalogue))
        ask("the catalogue has no server that the rest could be taken from");
    }
    return out_.open_questions.empty();
  }

  void check_nvlinks() {
    const int of_part = gpu_.spec.nvlink ? gpu_.spec.nvlink->links : 0;
    const std::string wired = answer("nvlink");
    if (machine_.nvlink_unknown) {
      if (of_part > 0 && wired != "switched" && wired != "none") {
        ask(fmt::format(
            "how are the {} NVLinks of each {} wired? add --nvlink switched or --nvlink none",
            of_part, gpu_.name));
      } else if (of_part == 0 && wired == "switched") {
        ask(fmt::format("{} has no NVLinks that could be switched", gpu_.name));
      }
    }
    const auto most = std::ranges::max_element(machine_.links);
    if (most != machine_.links.end() && *most > 0 && of_part == 0)
      ask(fmt::format(
          "{} has no NVLink, the capture shows {} per GPU: add --gpu with another model", gpu_.name,
          *most));
    warn_of_missing_links(of_part);
  }

  void warn_of_missing_links(int of_part) {
    for (std::size_t g = 0; g < machine_.gpus.size(); ++g) {
      const int links = machine_.links.empty() ? 0 : machine_.links[g];
      if (links == 0 || links >= of_part) continue;
      out_.note(ImportNote::Kind::warning,
                fmt::format("{} shows {} NVLinks, which is unusual: {} has {}; {} are down or a "
                            "bridge sits loosely, "
                            "capacity is counted pro rata",
                            machine_.gpu(g).name, links, gpu_.name, of_part, of_part - links));
    }
  }

  int pcie_generation_of_gpu() const { return gpu_.spec.pcie ? gpu_.spec.pcie->generation : 4; }

  void say_assumptions() {
    if (gpu_.assumed) {
      unknown(fmt::format("GPU model: {}, so {} is assumed{}; --gpu says otherwise", gpu_.reason,
                          gpu_.name, gpu_.others.empty() ? "" : "; it could be " + gpu_.others));
    }
    const bool pcie_told = std::ranges::all_of(machine_.gpus, [&](std::size_t g) {
      return machine_.parts[g].gts.has_value() || machine_.parts[g].c2c.has_value();
    });
    if (!pcie_told && answer("pcie").empty()) {
      const std::size_t any = machine_.gpus.front();
      unknown(
          fmt::format("speed of the PCIe links: {} is assumed at the GPUs; --pcie says otherwise",
                      link_name(above_link(any).link)));
    }
    std::set<std::string> assumed;
    for (std::size_t n = 0; n < machine_.nics.size(); ++n) {
      if (machine_.nic(n).model.empty()) assumed.insert(nic_model(n).name);
    }
    if (!assumed.empty() && answer("nic").empty()) {
      unknown(fmt::format("model of the NICs: {} assumed; --nic says otherwise",
                          join({assumed.begin(), assumed.end()}, " and ")));
    }
    unknown(fmt::format("memory, sockets, copies through host memory and latencies: as {}",
                        twin_.name));
  }

  static std::string link_name(const Json& link) {
    if (link.is_string()) return link.text;
    const Json* use = link.find("use");
    return use != nullptr ? use->text : "its link";
  }

  struct Joint {
    Json link;
    std::string source;  // empty: the capture
  };

  bool has(std::string_view kind, const std::string& name) const {
    return options_.catalogue->find(kind, name).has_value();
  }
  Json pcie_link(int generation, int width) const {
    const std::string name = fmt::format("pcie{}-x{}", generation, width);
    if (has("link", name)) return name;
    Json set = Json::object();
    set.set("/width", width);
    return used(fmt::format("pcie{}-x16", generation), std::move(set));
  }
  static Json used(const std::string& name, Json set) {
    Json out = Json::object();
    out.set("use", name);
    out.set("set", std::move(set));
    return out;
  }

  // What joins a part to what is above it.
  Joint above_link(std::size_t index) const {
    const MachinePart& part = machine_.parts[index];
    const bool at_socket = machine_.parts[part.parent].kind == NodeKind::cpu;
    if (part.c2c) {
      Json set = Json::object();
      set.set("/rate", fmt::format("{} MB/s", part.c2c->bps / 8'000'000));
      return {used("nvlink-c2c", std::move(set)), "measured: c2c bw x count in the capture"};
    }
    const int generation = part.gts ? pcie_generation(*part.gts) : 0;
    if (generation > 0) return {pcie_link(generation, part.width.value_or(16)), {}};
    if (const std::string given = answer("pcie"); !given.empty()) return {given, "assumed: --pcie"};
    if (part.kind == NodeKind::gpu && machine_.coherent && at_socket && !is_null(twin_.gpu_to_cpu))
      return {twin_.gpu_to_cpu, as_twin_};
    if (part.kind == NodeKind::nic) {
      const auto spec =
          catalogue_nic(*options_.catalogue, nic_model(index_of(machine_.nics, index)).name);
      if (spec && spec->pcie)
        return {pcie_link(spec->pcie->generation, spec->pcie->width), "assumed: as its model"};
    }
    const Json& shown = part.kind == NodeKind::pcie_switch ? twin_.switch_above : twin_.gpu_above;
    if (twin_.same_gpu && link_name(shown).starts_with("pcie")) return {shown, as_twin_};
    return {pcie_link(pcie_generation_of_gpu(), gpu_.spec.pcie ? gpu_.spec.pcie->width : 16),
            fmt::format("assumed: as {} has it", gpu_.name)};
  }

  struct NicModel {
    std::string name;
    Json model;
    std::string source;
  };
  NicModel nic_model(std::size_t n) const {
    const MachinePart& nic = machine_.nic(n);
    NicModel out{answer("nic"), {}, "assumed: --nic"};
    if (out.name.empty() && !nic.model.empty()) {
      out.name = nic.model;
      out.source = "measured: PCI device id in the capture";
    }
    if (out.name.empty() && twin_.same_gpu) {
      out.name = !nic.compute && !twin_.storage_nic.empty() ? twin_.storage_nic : twin_.nic;
      out.source = as_twin_;
      // What a cloud builds in has names of its own; a NIC that is shown as mlx5_0 or NIC0 is none of those.
      const auto spec = catalogue_nic(*options_.catalogue, out.name);
      if (spec && spec->transport != "infiniband" && spec->transport != "roce") out.name.clear();
    }
    if (out.name.empty()) {
      out.name = at_most(kNicOfPcie, pcie_generation_of_gpu());
      out.source = "assumed: common at this PCIe generation";
    }
    Json set = Json::object();
    const auto spec = catalogue_nic(*options_.catalogue, out.name);
    if (spec && nic.ports != spec->ports) set.set("/ports", nic.ports);
    if (spec && nic.speed && !is_speed(*spec, *nic.speed))
      set.set("/link/rate", fmt::format("{} Mb/s", nic.speed->bps / 1'000'000));
    out.model = set.members.empty() ? Json(out.name) : used(out.name, std::move(set));
    return out;
  }
  // Line codes make a NIC's raw rate differ by a few percent from its nominal speed.
  static bool is_speed(const NicSpec& spec, Bandwidth speed) {
    Diagnostics quiet;
    const double raw = static_cast<double>(link_law(spec.link, link_classes(), quiet).raw.bps);
    const double nominal = static_cast<double>(speed.bps);
    return quiet.ok() && raw > 0.9 * nominal && raw < 1.1 * nominal;
  }

  static std::size_t index_of(const std::vector<std::size_t>& list, std::size_t part) {
    return static_cast<std::size_t>(std::ranges::find(list, part) - list.begin());
  }
  std::string id_of(std::size_t part) const {
    switch (machine_.parts[part].kind) {
      case NodeKind::gpu:
        return fmt::format("gpu{}", index_of(machine_.gpus, part));
      case NodeKind::nic:
        return fmt::format("nic{}", index_of(machine_.nics, part));
      case NodeKind::cpu:
        return fmt::format("cpu{}", index_of(machine_.sockets, part));
      default:
        return fmt::format("plx{}", index_of(machine_.bridges, part));
    }
  }

  static Json node(std::string_view kind) {
    Json out = Json::object();
    out.set("kind", kind);
    return out;
  }

  void add_nodes() {
    for (std::size_t g = 0; g < machine_.gpus.size(); ++g) {
      Json facts = node("gpu");
      facts.set("model", gpu_.name);
      nodes_.add("gpu", g, std::move(facts),
                 fmt::format("{}: {}", gpu_.assumed ? "assumed" : "measured", gpu_.reason));
    }
    for (std::size_t s = 0; s < machine_.sockets.size(); ++s) {
      Json facts = node("cpu");
      if (!is_null(twin_.cpu_latency)) facts.set("latency", twin_.cpu_latency);
      nodes_.add("cpu", s, std::move(facts), as_twin_);
    }
    if (!is_null(twin_.dram)) {
      for (std::size_t s = 0; s < machine_.sockets.size(); ++s)
        nodes_.add("dram", s, node("dram"), as_twin_);
    }
    for (std::size_t b = 0; b < machine_.bridges.size(); ++b) {
      Json facts = node("pcie_switch");
      facts.set("latency", is_null(twin_.switch_latency) ? Json("150 ns") : twin_.switch_latency);
      nodes_.add("plx", b, std::move(facts),
                 is_null(twin_.switch_latency)
                     ? "assumed: cut-through of a large PCIe switch, 100 to 160 ns"
                     : as_twin_);
    }
    for (std::size_t n = 0; n < machine_.nics.size(); ++n) {
      NicModel model = nic_model(n);
      Json facts = node("nic");
      facts.set("model", std::move(model.model));
      if (!machine_.nic(n).compute) facts.set("role", "storage");
      nodes_.add("nic", n, std::move(facts), model.source);
    }
  }

  void link(std::string a, std::string b, Joint joint, int count = 1) {
    Json entry = Json::object();
    entry.set("a", std::move(a));
    entry.set("b", std::move(b));
    if (entry.find("a")->text.ends_with(']')) entry.set("pair", "all");
    entry.set("link", std::move(joint.link));
    if (count > 1) entry.set("count", count);
    if (!joint.source.empty())
      sources_[fmt::format("/links/{}", links_.items.size())] = joint.source;
    links_.push(std::move(entry));
  }

  void add_links() {
    for (const auto* list : {&machine_.gpus, &machine_.bridges, &machine_.nics}) {
      for (const std::size_t part : *list)
        link(id_of(part), id_of(machine_.parts[part].parent), above_link(part));
    }
    for (std::size_t s = 0; s < machine_.sockets.size(); ++s) {
      if (!is_null(twin_.dram))
        link(fmt::format("dram{}", s), fmt::format("cpu{}", s), {twin_.dram, as_twin_});
    }
    const Json between = is_null(twin_.socket)
                             ? Json(at_most(kSocketOfPcie, pcie_generation_of_gpu()))
                             : twin_.socket;
    for (std::size_t a = 0; a < machine_.sockets.size(); ++a) {
      for (std::size_t b = a + 1; b < machine_.sockets.size(); ++b) {
        if (machine_.parts[machine_.sockets[a]].host != machine_.parts[machine_.sockets[b]].host)
          continue;
        link(fmt::format("cpu{}", a), fmt::format("cpu{}", b),
             {between,
              is_null(twin_.socket) ? "assumed: common at this PCIe generation" : as_twin_});
      }
    }
    add_nvlinks();
  }

  Joint nvlink() const {
    const std::string name = fmt::format("nvlink{}", gpu_.spec.nvlink->generation);
    if (gpu_.spec.compute_capability != "8.6") return {name, {}};
    Json set = Json::object();
    set.set("/rate", fmt::format("{} MB/s", kGa102Link.bps / 8'000'000.0));
    return {used(name, std::move(set)),
            "measured: nvidia-smi nvlink shows 14.062 GB/s per link of GA102 cards"};
  }

  void add_nvlinks() {
    std::vector<bool> direct(machine_.gpus.size(), false);
    for (const Island& island : machine_.islands) {
      for (const std::size_t g : island.gpus) direct[g] = island.wiring != Wiring::switched;
      if (island.wiring == Wiring::switched) add_switches(island.gpus, machine_.links);
    }
    for (const NvlinkPair& pair : machine_.pairs) {
      if (direct[pair.a])
        link(fmt::format("gpu{}", pair.a), fmt::format("gpu{}", pair.b), nvlink(), pair.count);
    }
    if (machine_.nvlink_unknown && answer("nvlink") == "switched") {
      std::vector<std::size_t> all(machine_.gpus.size());
      for (std::size_t g = 0; g < all.size(); ++g) all[g] = g;
      add_switches(all, std::vector<int>(all.size(), gpu_.spec.nvlink->links));
    }
  }

  // Switches that the capture names keep their links; otherwise the links spread evenly over as many as the twin has.
  void add_switches(const std::vector<std::size_t>& gpus, const std::vector<int>& links) {
    std::map<std::string, std::map<std::size_t, int>> named;
    for (const NvlinkEnd& end : machine_.switch_ends) {
      if (std::ranges::find(gpus, end.gpu) != gpus.end() && !is_hidden_switch(end.target))
        named[end.target][end.gpu] += end.count;
    }
    if (!named.empty()) {
      for (const auto& [target, ends] : named) add_switch(ends, {});
      return;
    }
    const std::size_t wanted = twin_.nvswitches > 0 ? twin_.nvswitches : kSwitchesByDefault;
    int most = 0;
    for (const std::size_t g : gpus) most = std::max(most, links[g]);
    const int switches = std::min(static_cast<int>(std::min<std::size_t>(wanted, 64)), most);
    unknown(fmt::format(
        "number of NVSwitches: {} are assumed; what a GPU can send does not depend on it",
        switches));
    for (int s = 0; s < switches; ++s) {
      std::map<std::size_t, int> ends;
      for (const std::size_t g : gpus) {
        const int share = links[g] / switches + (s < links[g] % switches ? 1 : 0);
        if (share > 0) ends[g] = share;
      }
      add_switch(ends, "assumed: links spread evenly over the NVSwitches");
    }
  }

  void add_switch(const std::map<std::size_t, int>& ends, const std::string& source) {
    Json facts = node("nvswitch");
    facts.set("model", twin_.nvswitch.empty()
                           ? std::string(at_most(kSwitchOfNvlink, gpu_.spec.nvlink->generation))
                           : twin_.nvswitch);
    nodes_.add("nvswitch", switches_, std::move(facts), as_twin_);
    const std::string id = fmt::format("nvswitch{}", switches_++);
    Joint joint = nvlink();
    if (joint.source.empty()) joint.source = source;
    for (auto at = ends.begin(); at != ends.end();) {
      const auto first = at;
      std::size_t last = at->first;
      for (++at; at != ends.end() && at->first == last + 1 && at->second == first->second; ++at)
        last = at->first;
      link(first->first == last ? fmt::format("gpu{}", last)
                                : fmt::format("gpu[{}-{}]", first->first, last),
           id, joint, first->second);
    }
  }

  void finish() {
    sources_[""] = fmt::format("measured: {}", format_);
    Json server = Json::object();
    Json& head = server.set("weft", Json::object());
    head.set("schema", 1);
    server.set("kind", "server");
    server.set("name", options_.name);
    server.set("summary",
               fmt::format("{} x {}, NVLinks: {}, {} NICs; imported", machine_.gpus.size(),
                           gpu_.name, word(machine_.wiring()), machine_.nics.size()));
    server.set("nodes", nodes_.take(sources_));
    server.set("links", std::move(links_));
    const auto from_twin = [&](const char* key, const Json& value) {
      if (is_null(value)) return;
      server.set(key, value);
      sources_[std::string("/") + key] = as_twin_;
    };
    from_twin("peer_access", twin_.peer_access);
    from_twin("gpudirect_rdma", twin_.gpudirect_rdma);
    from_twin("staging", twin_.staging);
    from_twin("copy", twin_.copy);
    const bool told = std::ranges::any_of(
        machine_.gpus, [&](std::size_t g) { return machine_.parts[g].gdr.has_value(); });
    const bool allowed = std::ranges::any_of(
        machine_.gpus, [&](std::size_t g) { return machine_.parts[g].gdr.value_or(false); });
    if (told && !allowed) {
      server.set("gpudirect_rdma", "none");
      sources_["/gpudirect_rdma"] = "measured: gdr=\"0\" at every GPU";
    }
    if (Json* peers = server.find("peer_access"); peers != nullptr)
      peers->set("nvlink", machine_.wiring() != Wiring::none);
    Json& sources = server.set("sources", Json::object());
    for (const auto& [pointer, source] : sources_) sources.set(pointer, source);
    out_.server = std::move(server);
  }

  const Machine& machine_;
  const ImportOptions& options_;
  const std::string& format_;
  Imported& out_;
  GpuChoice gpu_;
  Twin twin_;
  std::string as_twin_;
  NodeList nodes_;
  Json links_ = Json::array();
  std::map<std::string, std::string> sources_;
  std::size_t switches_ = 0;
};

}  // namespace

void add_server(const Machine& machine, const ImportOptions& options, const std::string& format,
                Imported& out) {
  ServerWriter(machine, options, format, out).write();
}

}  // namespace weft
