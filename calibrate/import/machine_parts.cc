// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/machine_parts.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace weft {
namespace {

// What the number and shape of NVLinks say about the GPU. Link counts: NVIDIA white papers of the generations; the catalogue
// repeats them in configs/gpus. A count between two entries is a part with links down.
struct Fingerprint {
  Wiring wiring;
  int links;
  bool coherent;
  std::string_view gpu, others;
};
constexpr Fingerprint kFingerprints[] = {
    {Wiring::switched, 6, false, "v100-sxm3", "v100-sxm2"},
    {Wiring::switched, 8, false, "h800-sxm5", "a800-sxm4 (as fast over NVLink, PCIe 4)"},
    {Wiring::switched, 12, false, "a100-sxm4-80gb", "a100-sxm4-40gb (differs in memory only)"},
    {Wiring::switched, 18, false, "h100-sxm5",
     "h200-sxm5 or h20-sxm5 (as fast over NVLink), b200-sxm6 or b300-sxm6 (twice as fast)"},
    {Wiring::switched, 18, true, "gb200", "gb300 (as fast over NVLink)"},
    {Wiring::mesh, 4, false, "p100-sxm2", ""},
    {Wiring::mesh, 6, false, "v100-sxm2", ""},
    {Wiring::mesh, 12, false, "a100-sxm4-80gb", "a100-sxm4-40gb (differs in memory only)"},
    {Wiring::mesh, 18, false, "h100-sxm5", "h200-sxm5 (as fast over NVLink)"},
    {Wiring::pairs, 1, false, "rtx-2080", "another Turing card with one link"},
    {Wiring::pairs, 2, false, "titan-rtx", "another Turing card with two links"},
    {Wiring::pairs, 4, false, "rtx-3090",
     "another GA102 card, e.g. RTX A6000 (as fast over NVLink)"},
    {Wiring::pairs, 12, false, "a100-pcie-80gb",
     "h100-pcie or h100-nvl (as fast over NVLink, PCIe 5)"},
};

// Device ids of vendor 0x10de as the PCI ID repository (pci-ids.ucw.cz) has them.
struct PciId {
  std::string_view device, gpu;
};
constexpr PciId kPciIds[] = {
    {"0x15f9", "p100-sxm2"},
    {"0x1db1", "v100-sxm2"},
    {"0x1db5", "v100-sxm2"},
    {"0x1db8", "v100-sxm3"},
    {"0x1eb8", "t4"},
    {"0x1e02", "titan-rtx"},
    {"0x20b0", "a100-sxm4-40gb"},
    {"0x20b2", "a100-sxm4-80gb"},
    {"0x20b5", "a100-pcie-80gb"},
    {"0x2204", "rtx-3090"},
    {"0x2684", "rtx-4090"},
    {"0x26b9", "l40s"},
    {"0x2321", "h100-nvl"},
    {"0x2330", "h100-sxm5"},
    {"0x2331", "h100-pcie"},
    {"0x2335", "h200-sxm5"},
    {"0x2324", "h800-sxm5"},
    {"0x2329", "h20-sxm5"},
    {"0x2901", "b200-sxm6"},
    {"0x3182", "b300-sxm6"},
    {"0x2941", "gb200"},
    {"0x31c2", "gb300"},
    {"0x2b85", "rtx-5090"},
};

// Of vendor 0x15b3.
struct NicId {
  std::string_view device, infiniband, ethernet;
};
constexpr NicId kNicIds[] = {
    {"0x1013", "cx4-edr", ""},
    {"0x1017", "cx5-edr", "cx5-roce-100g"},
    {"0x1019", "cx5-edr", "cx5-roce-100g"},
    {"0x101b", "cx6-hdr", "cx6-roce-200g"},
    {"0x1021", "cx7-ndr", "cx7-roce-400g"},
    {"0x1023", "cx8-xdr", "cx8-roce-800g"},
    {"0xa2dc", "", "bluefield3-400g"},
};

template <class Spec>
std::optional<Spec> read_component(FileSource& catalogue, std::string_view kind,
                                   const std::string& name) {
  const auto path = catalogue.find(kind, name);
  if (!path) return std::nullopt;
  Diagnostics quiet;
  Loader loader(catalogue, quiet);
  const Json document = loader.load_file(*path);
  Spec spec;
  if (quiet.ok()) read_config(document, {}, spec, quiet);
  if (!quiet.ok()) return std::nullopt;
  return spec;
}

std::string_view stem_of(std::string_view id) {
  const std::string_view before = id.substr(0, id.find('['));
  return before.substr(0, before.find_last_not_of("0123456789") + 1);
}

// A server file as it is written, before names are replaced by what they stand for.
struct ServerFile {
  std::string name, gpu;
  std::size_t gpus = 0;
  bool switched = false;
  Json document;
};

std::string text_at(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr && value->is_string() ? value->text : std::string{};
}

std::vector<ServerFile> server_files(FileSource& catalogue) {
  std::vector<ServerFile> out;
  for (const std::string& name : catalogue.names("server")) {
    const auto path = catalogue.find("server", name);
    const auto text = path ? catalogue.read(*path) : std::nullopt;
    if (!text) continue;
    Diagnostics quiet;
    ServerFile file{name, {}, 0, false, parse_json(*text, *path, quiet)};
    const Json* nodes = file.document.find("nodes");
    if (!quiet.ok() || nodes == nullptr) continue;
    for (const Json& node : nodes->items) {
      const auto ids = expand_range(text_at(node, "id"));
      const std::size_t count = ids ? ids->size() : 0;
      if (text_at(node, "kind") == "gpu") {
        file.gpu = text_at(node, "model");
        file.gpus += count;
      }
      if (text_at(node, "kind") == "nvswitch") file.switched = true;
    }
    if (!file.gpu.empty()) out.push_back(std::move(file));
  }
  return out;
}

Json copy_of(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr ? *value : Json{};
}

Twin read_twin(const ServerFile& file) {
  Twin twin;
  twin.name = file.name;
  std::map<std::string, std::string, std::less<>> kinds;  // by stem of the id
  const auto kind_of = [&](std::string_view id) {
    const auto at = kinds.find(stem_of(id));
    return at != kinds.end() ? at->second : std::string{};
  };
  for (const Json& node : file.document.find("nodes")->items) {
    const Json* id = node.find("id");
    if (id == nullptr) continue;
    const std::string kind = text_at(node, "kind");
    kinds.emplace(stem_of(id->text), kind);
    if (kind == "cpu") twin.cpu_latency = copy_of(node, "latency");
    if (kind == "pcie_switch") twin.switch_latency = copy_of(node, "latency");
    if (kind == "nic")
      (text_at(node, "role") == "storage" ? twin.storage_nic : twin.nic) = text_at(node, "model");
    if (kind == "nvswitch") {
      twin.nvswitch = text_at(node, "model");
      const auto ids = expand_range(id->text);
      twin.nvswitches += ids ? ids->size() : 0;
    }
  }
  const Json* links = file.document.find("links");
  for (const Json& link : links != nullptr ? links->items : std::vector<Json>{}) {
    const std::string a = text_at(link, "a"), b = text_at(link, "b");
    const std::string from = kind_of(a), to = kind_of(b);
    const Json joint = copy_of(link, "link");
    const auto take = [&](bool fits, Json& into) {
      if (fits && into.kind == Json::Kind::null) into = joint;
    };
    take(from == "gpu" && to == "cpu", twin.gpu_to_cpu);
    take(from == "gpu" && to == "pcie_switch", twin.gpu_above);
    take(from == "pcie_switch" && to == "cpu", twin.switch_above);
    take(from == "dram" && to == "cpu", twin.dram);
    take(from == "cpu" && to == "cpu", twin.socket);
  }
  if (twin.gpu_above.kind == Json::Kind::null) twin.gpu_above = twin.gpu_to_cpu;
  if (twin.switch_above.kind == Json::Kind::null) twin.switch_above = twin.gpu_above;
  twin.peer_access = copy_of(file.document, "peer_access");
  twin.gpudirect_rdma = copy_of(file.document, "gpudirect_rdma");
  twin.staging = copy_of(file.document, "staging");
  twin.copy = copy_of(file.document, "copy");
  return twin;
}

// "rtx" of "rtx-4090".
std::string_view family_of(std::string_view gpu) { return gpu.substr(0, gpu.find('-')); }

std::size_t apart(std::size_t a, std::size_t b) { return a > b ? a - b : b - a; }

const Fingerprint* find_fingerprint(const Machine& machine) {
  const auto largest = std::ranges::max_element(
      machine.islands, {}, [](const Island& island) { return island.gpus.size(); });
  if (machine.nvlink_unknown || largest == machine.islands.end()) return nullptr;
  int links = 0;
  for (const std::size_t g : largest->gpus) links = std::max(links, machine.links[g]);
  for (const Fingerprint& known : kFingerprints) {
    if (known.wiring == largest->wiring && known.links >= links &&
        known.coherent == (machine.coherent && known.wiring == Wiring::switched))
      return &known;
  }
  return nullptr;
}

}  // namespace

std::optional<GpuSpec> catalogue_gpu(FileSource& catalogue, const std::string& name) {
  return read_component<GpuSpec>(catalogue, "gpu", name);
}
std::optional<NicSpec> catalogue_nic(FileSource& catalogue, const std::string& name) {
  return read_component<NicSpec>(catalogue, "nic", name);
}
std::optional<LinkSpec> catalogue_link(FileSource& catalogue, const std::string& name) {
  return read_component<LinkSpec>(catalogue, "link", name);
}

std::string_view gpu_of_pci_id(std::string_view vendor, std::string_view device) {
  if (vendor != "0x10de") return {};
  for (const PciId& id : kPciIds) {
    if (id.device == device) return id.gpu;
  }
  return {};
}

std::string_view nic_of_pci_id(std::string_view vendor, std::string_view device, bool infiniband) {
  if (vendor != "0x15b3") return {};
  for (const NicId& id : kNicIds) {
    if (id.device == device) return infiniband ? id.infiniband : id.ethernet;
  }
  return {};
}

GpuChoice choose_gpu(const Machine& machine, const ImportOptions& options) {
  GpuChoice out;
  if (const auto answer = options.answers.find("gpu"); answer != options.answers.end()) {
    out.name = answer->second;
    out.source = "assumed: --gpu";
  } else if (!machine.gpus.empty() && !machine.gpu(0).model.empty()) {
    out.name = machine.gpu(0).model;
    out.source = "measured: PCI device id in the capture";
  } else if (const Fingerprint* known = find_fingerprint(machine)) {
    out.name = known->gpu;
    out.others = known->others;
    out.assumed = true;
    const int most = *std::ranges::max_element(machine.links);
    out.reason = fmt::format("{} NVLinks per GPU ({})", most, word(known->wiring));
    out.source = "assumed: " + out.reason;
  }
  if (out.name.empty() || options.catalogue == nullptr) return out;
  if (auto spec = catalogue_gpu(*options.catalogue, out.name)) {
    out.spec = std::move(*spec);
  } else {
    out.name.clear();
  }
  return out;
}

std::optional<Twin> find_twin(const Machine& machine, const GpuChoice& gpu, FileSource& catalogue) {
  const int generation = gpu.spec.pcie ? gpu.spec.pcie->generation : 0;
  const bool switched = machine.wiring() == Wiring::switched;
  const ServerFile* best = nullptr;
  using Rank = std::tuple<int, bool, bool, std::size_t, std::size_t, std::string_view>;
  std::optional<Rank> best_rank;
  const std::vector<ServerFile> files = server_files(catalogue);
  for (const ServerFile& file : files) {
    int strange = 0;
    if (file.gpu != gpu.name) {
      const auto spec = catalogue_gpu(catalogue, file.gpu);
      if (!spec || !spec->pcie) continue;
      strange = 1 + std::abs(spec->pcie->generation - generation) * 2 +
                (spec->vendor != gpu.spec.vendor ? 1 : 0);
    }
    const Rank rank{strange,
                    family_of(file.gpu) != family_of(gpu.name),
                    file.switched != switched,
                    strange > 0 ? 0 : apart(file.gpus, machine.gpus.size()),
                    file.name.size(),
                    file.name};
    if (best_rank && *best_rank <= rank) continue;
    best = &file;
    best_rank = rank;
  }
  if (best == nullptr) return std::nullopt;
  Twin twin = read_twin(*best);
  twin.same_gpu = best->gpu == gpu.name;
  return twin;
}

}  // namespace weft
