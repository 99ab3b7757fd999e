// SPDX-License-Identifier: Apache-2.0
// From a recognised machine to a file of kind "server". Each value is either from the capture, an answer, or assumed as in the
// twin, and is tagged so.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "calibrate/import/machine_models.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

constexpr std::size_t kSwitchesByDefault = 4;
constexpr std::size_t kMostSwitches = 64;

bool is_null(const Json& json) { return json.kind == Json::Kind::null; }

std::string numbered(std::string_view stem, std::size_t first, std::size_t last) {
  return first == last ? fmt::format("{}{}", stem, first)
                       : fmt::format("{}[{}-{}]", stem, first, last);
}

// An array of the file with the source of each entry. The source that most entries have is written once, for all of them.
class Entries {
 public:
  void add(Json entry, std::string source) {
    entries_.push(std::move(entry));
    sources_.push_back(std::move(source));
  }
  Json take(const std::string& pointer, std::map<std::string, std::string>& into) {
    std::map<std::string_view, std::size_t> times;
    for (const std::string& source : sources_) ++times[source];
    const auto common =
        std::ranges::max_element(times, {}, [](const auto& entry) { return entry.second; });
    if (common != times.end()) into[pointer] = common->first;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i] != common->first) into[fmt::format("{}/{}", pointer, i)] = sources_[i];
    }
    return std::move(entries_);
  }

 private:
  Json entries_ = Json::array();
  std::vector<std::string> sources_;
};

// Nodes whose ids count up and whose facts are the same become one entry with a range.
class NodeRuns {
 public:
  explicit NodeRuns(Entries& out) : out_(out) {}
  void add(std::string_view stem, std::size_t index, const Json& facts, const std::string& source) {
    const std::string key = to_text(facts, 0) + source;
    if (stem != stem_ || index != last_ + 1 || key != key_) {
      flush();
      stem_ = stem;
      first_ = index;
      key_ = key;
      facts_ = facts;
      source_ = source;
    }
    last_ = index;
  }
  void flush() {
    if (stem_.empty()) return;
    Json entry = Json::object();
    entry.set("id", numbered(stem_, first_, last_));
    for (JsonMember& member : facts_.members) entry.set(member.key, std::move(member.value));
    out_.add(std::move(entry), source_);
    stem_.clear();
  }

 private:
  Entries& out_;
  std::string stem_, key_, source_;
  std::size_t first_ = 0, last_ = 0;
  Json facts_;
};

class ServerWriter {
 public:
  ServerWriter(const Machine& machine, const ImportOptions& options, const PartModels& models,
               const std::string& format, Imported& out)
      : machine_(machine),
        options_(options),
        models_(models),
        captured_("measured: " + format),
        out_(out) {}

  void write() {
    say_assumptions();
    add_nodes();
    add_links();
    finish();
  }

 private:
  void unknown(std::string text) { out_.note(ImportNote::Kind::unknown, std::move(text)); }

  void say_assumptions() {
    const GpuChoice& gpu = models_.gpu();
    if (gpu.assumed) {
      unknown(fmt::format("GPU model: {}, so {} is assumed{}; --gpu says otherwise", gpu.reason,
                          gpu.name, gpu.others.empty() ? "" : "; it could be " + gpu.others));
    }
    const bool pcie_told = std::ranges::all_of(machine_.gpus, [&](std::size_t g) {
      return machine_.parts[g].gts.has_value() || machine_.parts[g].c2c.has_value();
    });
    if (!pcie_told && models_.answer("pcie").empty()) {
      unknown(
          fmt::format("speed of the PCIe links: {} is assumed at the GPUs; --pcie says otherwise",
                      link_name(models_.above_link(machine_.gpus.front()).value)));
    }
    std::set<std::string> assumed;
    for (std::size_t n = 0; n < machine_.nics.size(); ++n) {
      if (machine_.nic(n).model.empty()) assumed.insert(models_.nic_name(n));
    }
    if (!assumed.empty() && models_.answer("nic").empty()) {
      unknown(fmt::format("model of the NICs: {} assumed; --nic says otherwise",
                          join({assumed.begin(), assumed.end()}, " and ")));
    }
    unknown(fmt::format("memory, sockets, copies through host memory and latencies: as {}",
                        models_.twin().name));
  }

  // ---- nodes

  static Json node(std::string_view kind, const Json& model = {}) {
    Json out = Json::object();
    out.set("kind", kind);
    if (!is_null(model)) out.set("model", model);
    return out;
  }

  void add_nodes() {
    const Twin& twin = models_.twin();
    for (std::size_t g = 0; g < machine_.gpus.size(); ++g)
      runs_.add("gpu", g, node("gpu", models_.gpu().name), models_.gpu().source);
    Json cpu = node("cpu");
    if (!is_null(twin.cpu_latency)) cpu.set("latency", twin.cpu_latency);
    for (std::size_t s = 0; s < machine_.sockets.size(); ++s)
      runs_.add("cpu", s, cpu, models_.as_twin());
    for (std::size_t s = 0; s < machine_.sockets.size() && !is_null(twin.dram); ++s)
      runs_.add("dram", s, node("dram"), models_.as_twin());
    const Sourced latency = models_.bridge_latency();
    Json bridge = node("pcie_switch");
    bridge.set("latency", latency.value);
    for (std::size_t b = 0; b < machine_.bridges.size(); ++b)
      runs_.add("plx", b, bridge, latency.source);
    for (std::size_t n = 0; n < machine_.nics.size(); ++n) {
      const Sourced model = models_.nic(n);
      Json nic = node("nic", model.value);
      if (!machine_.nic(n).compute) nic.set("role", "storage");
      runs_.add("nic", n, nic, model.source);
    }
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

  // ---- links

  void link(std::string a, std::string b, const Sourced& joint, int count = 1) {
    Json entry = Json::object();
    const bool range = a.ends_with(']');
    entry.set("a", std::move(a));
    entry.set("b", std::move(b));
    if (range) entry.set("pair", "all");
    entry.set("link", joint.value);
    if (count > 1) entry.set("count", count);
    links_.add(std::move(entry), joint.source.empty() ? captured_ : joint.source);
  }

  void add_links() {
    for (const auto* list : {&machine_.gpus, &machine_.bridges, &machine_.nics}) {
      for (const std::size_t part : *list)
        link(id_of(part), id_of(machine_.parts[part].parent), models_.above_link(part));
    }
    const std::size_t sockets = machine_.sockets.size();
    const Json& dram = models_.twin().dram;
    for (std::size_t s = 0; s < sockets && !is_null(dram); ++s)
      link(fmt::format("dram{}", s), fmt::format("cpu{}", s), {dram, models_.as_twin()});
    for (std::size_t a = 0; a < sockets; ++a) {
      for (std::size_t b = a + 1; b < sockets; ++b) {
        if (machine_.parts[machine_.sockets[a]].host == machine_.parts[machine_.sockets[b]].host)
          link(fmt::format("cpu{}", a), fmt::format("cpu{}", b), models_.socket_link());
      }
    }
    add_nvlinks();
  }

  void add_nvlinks() {
    std::vector<bool> direct(machine_.gpus.size(), false);
    for (const Island& island : machine_.islands) {
      for (const std::size_t g : island.gpus) direct[g] = island.wiring != Wiring::switched;
      if (island.wiring == Wiring::switched) add_switches(island.gpus, machine_.links);
    }
    for (const NvlinkPair& pair : machine_.pairs) {
      if (direct[pair.a])
        link(fmt::format("gpu{}", pair.a), fmt::format("gpu{}", pair.b), models_.nvlink(),
             pair.count);
    }
    if (machine_.nvlink_unknown && models_.answer("nvlink") == "switched") {
      std::vector<std::size_t> all(machine_.gpus.size());
      for (std::size_t g = 0; g < all.size(); ++g) all[g] = g;
      add_switches(all, std::vector<int>(all.size(), models_.gpu().spec.nvlink->links));
    }
  }

  // Switches that the capture names keep their links; otherwise the links spread evenly over as many as the twin has.
  void add_switches(const std::vector<std::size_t>& gpus, const std::vector<int>& links) {
    std::map<std::string, std::map<std::size_t, int>> named;
    for (const NvlinkEnd& end : machine_.switch_ends) {
      if (std::ranges::find(gpus, end.gpu) != gpus.end() && !is_hidden_switch(end.target))
        named[end.target][end.gpu] += end.count;
    }
    for (const auto& [target, ends] : named) add_switch(ends, {});
    if (!named.empty()) return;
    const std::size_t in_twin = models_.twin().nvswitches;
    const std::size_t wanted = std::min(in_twin > 0 ? in_twin : kSwitchesByDefault, kMostSwitches);
    int most = 0;
    for (const std::size_t g : gpus) most = std::max(most, links[g]);
    const int switches = std::min(static_cast<int>(wanted), most);
    unknown(fmt::format(
        "number of NVSwitches: {} assumed; what a GPU can send does not depend on it", switches));
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
    runs_.add("nvswitch", switches_, node("nvswitch", models_.nvswitch()), models_.as_twin());
    const std::string id = fmt::format("nvswitch{}", switches_++);
    Sourced joint = models_.nvlink();
    if (joint.source.empty()) joint.source = source;
    for (auto at = ends.begin(); at != ends.end();) {
      const auto first = at;
      std::size_t last = at->first;
      for (++at; at != ends.end() && at->first == last + 1 && at->second == first->second; ++at)
        last = at->first;
      link(numbered("gpu", first->first, last), id, joint, first->second);
    }
  }

  // ---- the rest

  // All of these say that they do not let NICs reach GPU memory.
  bool forbids_gdr(const std::vector<std::size_t>& parts) const {
    return !parts.empty() && std::ranges::all_of(parts, [&](std::size_t p) {
      return machine_.parts[p].gdr == false;
    });
  }

  void finish() {
    runs_.flush();
    Json server = Json::object();
    Json& head = server.set("weft", Json::object());
    head.set("schema", 1);
    server.set("kind", "server");
    server.set("name", options_.name);
    server.set("summary",
               fmt::format("imported: {} x {}, NVLink {}, {} NICs", machine_.gpus.size(),
                           models_.gpu().name, word(machine_.wiring()), machine_.nics.size()));
    std::map<std::string, std::string> sources{{"", captured_}};
    server.set("nodes", nodes_.take("/nodes", sources));
    server.set("links", links_.take("/links", sources));
    const auto set = [&](const std::string& key, const Json& value, const std::string& source) {
      if (is_null(value)) return;
      server.set(key, value);
      sources["/" + key] = source;
    };
    const Twin& twin = models_.twin();
    set("peer_access", twin.peer_access, models_.as_twin());
    if (Json* peers = server.find("peer_access"); peers != nullptr)
      peers->set("nvlink", machine_.wiring() != Wiring::none);
    set("gpudirect_rdma", twin.gpudirect_rdma, models_.as_twin());
    if (forbids_gdr(machine_.gpus) || forbids_gdr(machine_.nics))
      set("gpudirect_rdma", "none", "measured: gdr=\"0\" in the capture");
    set("staging", twin.staging, models_.as_twin());
    set("copy", twin.copy, models_.as_twin());
    Json& listed = server.set("sources", Json::object());
    for (const auto& [pointer, source] : sources) listed.set(pointer, source);
    out_.server = std::move(server);
  }

  const Machine& machine_;
  const ImportOptions& options_;
  const PartModels& models_;
  std::string captured_;
  Imported& out_;
  Entries nodes_, links_;
  NodeRuns runs_{nodes_};
  std::size_t switches_ = 0;
};

// ---- what must be known before

void warn_of_missing_links(const Machine& machine, const GpuChoice& gpu, int of_part,
                           Imported& out) {
  for (std::size_t g = 0; g < machine.links.size(); ++g) {
    const int links = machine.links[g];
    if (links == 0 || links >= of_part) continue;
    out.note(ImportNote::Kind::warning,
             fmt::format("{} shows {} NVLinks, which is unusual: {} has {}; {} down, or a bridge "
                         "sits loosely; capacity is "
                         "counted pro rata",
                         machine.gpu(g).name, links, gpu.name, of_part, of_part - links));
  }
}

// Answers that do not fit the question, or that the capture had settled.
void check_answers(const Machine& machine, const ImportOptions& options, const GpuChoice& gpu,
                   Imported& out) {
  const auto pcie = options.answers.find("pcie");
  if (pcie != options.answers.end()) {
    const auto link = catalogue_link(*options.catalogue, pcie->second);
    if (!link || link->link_class != LinkClass::pcie)
      out.open_questions.push_back(fmt::format(
          "--pcie: \"{}\" is no PCIe link of the catalogue, see `weft list links`", pcie->second));
  }
  if (options.answers.contains("nvlink") && !machine.nvlink_unknown)
    out.note(ImportNote::Kind::ignored, "--nvlink: the capture shows the NVLinks itself");
  const std::string& shown = machine.gpu(0).model;
  if (!shown.empty() && shown != gpu.name)
    out.note(ImportNote::Kind::warning,
             fmt::format("the PCI device id says {}, --gpu says {}", shown, gpu.name));
}

void ask_about_nvlinks(const Machine& machine, const ImportOptions& options, const GpuChoice& gpu,
                       Imported& out) {
  const auto ask = [&](std::string question) { out.open_questions.push_back(std::move(question)); };
  const int of_part = gpu.spec.nvlink ? gpu.spec.nvlink->links : 0;
  const auto given = options.answers.find("nvlink");
  const std::string wired = given != options.answers.end() ? given->second : std::string{};
  if (machine.nvlink_unknown && of_part > 0 && wired != "switched" && wired != "none") {
    ask(fmt::format(
        "how are the {} NVLinks of each {} wired? add --nvlink switched or --nvlink none", of_part,
        gpu.name));
  }
  if (machine.nvlink_unknown && of_part == 0 && wired == "switched")
    ask(fmt::format("{} has no NVLinks that could be switched", gpu.name));
  const auto most = std::ranges::max_element(machine.links);
  if (most != machine.links.end() && *most > 0 && of_part == 0) {
    ask(fmt::format("{} has no NVLink, the capture shows {} a GPU: add --gpu with another model",
                    gpu.name, *most));
  }
  warn_of_missing_links(machine, gpu, of_part, out);
}

}  // namespace

void add_server(const Machine& machine, const ImportOptions& options, const std::string& format,
                Imported& out) {
  const auto ask = [&](std::string question) { out.open_questions.push_back(std::move(question)); };
  if (options.catalogue == nullptr)
    return ask("a server needs the hardware catalogue, which is not at hand");
  if (machine.gpus.empty()) return ask("the capture shows no GPU");
  const GpuChoice gpu = choose_gpu(machine, options);
  if (gpu.name.empty()) return ask("which GPU is it? add --gpu MODEL, see `weft list gpus`");
  check_answers(machine, options, gpu, out);
  ask_about_nvlinks(machine, options, gpu, out);
  const auto twin = find_twin(machine, gpu, *options.catalogue);
  if (!twin) ask("the catalogue has no server that the rest could be taken from");
  if (!out.open_questions.empty()) return;
  const PartModels models(machine, options, gpu, *twin);
  ServerWriter(machine, options, models, format, out).write();
}

}  // namespace weft
