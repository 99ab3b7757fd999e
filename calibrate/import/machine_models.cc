// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/machine_models.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/catalog.hpp"

namespace weft {
namespace {

// NVLink of GA102 cards: 14.0625 GB/s, where `nvidia-smi nvlink -s` shows 14.062. Half the lanes of an A100's link.
constexpr std::string_view kGa102Capability = "8.6";
constexpr std::string_view kGa102Rate = "14062.5 MB/s";

// Where no twin has NICs, sockets or switches: what is common at a PCIe generation, and the switches of an NVLink generation.
constexpr std::string_view kNicOfPcie[] = {"cx3-fdr", "cx3-fdr", "cx3-fdr", "cx5-edr",
                                           "cx6-hdr", "cx7-ndr", "cx8-xdr"};
constexpr std::string_view kSocketOfPcie[] = {"qpi-9.6", "qpi-9.6", "qpi-9.6", "upi-10.4",
                                              "xgmi-18", "upi-16",  "upi-16"};
constexpr std::string_view kSwitchOfNvlink[] = {"nvswitch1", "nvswitch1", "nvswitch1",
                                                "nvswitch2", "nvswitch3", "nvswitch4"};
constexpr int kPcieByDefault = 4;

template <std::size_t N>
std::string at_most(const std::string_view (&table)[N], int index) {
  return std::string(table[std::min(static_cast<std::size_t>(std::max(0, index)), N - 1)]);
}

bool is_null(const Json& json) { return json.kind == Json::Kind::null; }

Json used(const std::string& name, Json set) {
  Json out = Json::object();
  out.set("use", name);
  out.set("set", std::move(set));
  return out;
}

// Line codes make a NIC's raw rate differ by a few percent from its nominal speed.
bool is_speed(const NicSpec& spec, Bandwidth speed) {
  Diagnostics quiet;
  const auto raw = static_cast<double>(link_law(spec.link, link_classes(), quiet).raw.bps);
  const auto nominal = static_cast<double>(speed.bps);
  return quiet.ok() && raw > 0.9 * nominal && raw < 1.1 * nominal;
}

}  // namespace

std::string link_name(const Json& link) {
  if (link.is_string()) return link.text;
  const Json* use = link.find("use");
  return use != nullptr ? use->text : "its own";
}

PartModels::PartModels(const Machine& machine, const ImportOptions& options, GpuChoice gpu,
                       Twin twin)
    : machine_(machine),
      options_(options),
      gpu_(std::move(gpu)),
      twin_(std::move(twin)),
      as_twin_(fmt::format("assumed: as {} in the catalogue", twin_.name)) {}

std::string PartModels::answer(const std::string& key) const {
  const auto at = options_.answers.find(key);
  return at != options_.answers.end() ? at->second : std::string{};
}

int PartModels::pcie_generation_of_gpu() const {
  return gpu_.spec.pcie ? gpu_.spec.pcie->generation : kPcieByDefault;
}

Json PartModels::pcie_link(int generation, int width) const {
  const std::string name = fmt::format("pcie{}-x{}", generation, width);
  if (options_.catalogue->find("link", name)) return name;
  Json set = Json::object();
  set.set("/width", width);
  return used(fmt::format("pcie{}-x16", generation), std::move(set));
}

Sourced PartModels::above_link(std::size_t index) const {
  const MachinePart& part = machine_.parts[index];
  if (part.c2c) {
    Json set = Json::object();
    set.set("/rate", fmt::format("{} MB/s", part.c2c->bps / 8'000'000));
    return {used("nvlink-c2c", std::move(set)), "measured: c2c bw x count in the capture"};
  }
  const int generation = part.gts ? pcie_generation(*part.gts) : 0;
  if (generation > 0) return {pcie_link(generation, part.width.value_or(16)), {}};
  if (const std::string given = answer("pcie"); !given.empty()) return {given, "assumed: --pcie"};
  const bool at_socket = machine_.parts[part.parent].kind == NodeKind::cpu;
  if (part.kind == NodeKind::gpu && machine_.coherent && at_socket && !is_null(twin_.gpu_to_cpu))
    return {twin_.gpu_to_cpu, as_twin_};
  if (part.kind == NodeKind::nic) {
    const auto nic =
        static_cast<std::size_t>(std::ranges::find(machine_.nics, index) - machine_.nics.begin());
    const auto spec = catalogue_nic(*options_.catalogue, nic_name(nic));
    if (spec && spec->pcie)
      return {pcie_link(spec->pcie->generation, spec->pcie->width), "assumed: as its model"};
  }
  const Json& shown = part.kind == NodeKind::pcie_switch ? twin_.switch_above : twin_.gpu_above;
  if (twin_.same_gpu && link_name(shown).starts_with("pcie")) return {shown, as_twin_};
  return {pcie_link(pcie_generation_of_gpu(), gpu_.spec.pcie ? gpu_.spec.pcie->width : 16),
          fmt::format("assumed: as {} has it", gpu_.name)};
}

Sourced PartModels::socket_link() const {
  if (!is_null(twin_.socket)) return {twin_.socket, as_twin_};
  return {at_most(kSocketOfPcie, pcie_generation_of_gpu()),
          "assumed: common at this PCIe generation"};
}

Sourced PartModels::nvlink() const {
  const std::string name = fmt::format("nvlink{}", gpu_.spec.nvlink->generation);
  if (gpu_.spec.compute_capability != kGa102Capability) return {name, {}};
  Json set = Json::object();
  set.set("/rate", kGa102Rate);
  return {used(name, std::move(set)),
          "measured: nvidia-smi nvlink -s shows 14.062 GB/s a link on GA102 cards"};
}

Sourced PartModels::bridge_latency() const {
  if (!is_null(twin_.switch_latency)) return {twin_.switch_latency, as_twin_};
  return {"150 ns", "assumed: cut-through of a large PCIe switch, 100 to 160 ns"};
}

std::string PartModels::nvswitch() const {
  return twin_.nvswitch.empty() ? at_most(kSwitchOfNvlink, gpu_.spec.nvlink->generation)
                                : twin_.nvswitch;
}

Sourced PartModels::named_nic(std::size_t n) const {
  const MachinePart& nic = machine_.nic(n);
  if (const std::string given = answer("nic"); !given.empty()) return {given, "assumed: --nic"};
  if (!nic.model.empty()) return {nic.model, "measured: PCI device id in the capture"};
  if (twin_.same_gpu) {
    const std::string name =
        !nic.compute && !twin_.storage_nic.empty() ? twin_.storage_nic : twin_.nic;
    // What a cloud builds in has names of its own; a NIC that is shown as mlx5_0 or NIC0 is none of those.
    const auto spec = catalogue_nic(*options_.catalogue, name);
    if (spec && (spec->transport == "infiniband" || spec->transport == "roce"))
      return {name, as_twin_};
  }
  return {at_most(kNicOfPcie, pcie_generation_of_gpu()), "assumed: common at this PCIe generation"};
}

std::string PartModels::nic_name(std::size_t nic) const { return named_nic(nic).value.text; }

Sourced PartModels::nic(std::size_t n) const {
  Sourced out = named_nic(n);
  const MachinePart& nic = machine_.nic(n);
  const auto spec = catalogue_nic(*options_.catalogue, out.value.text);
  Json set = Json::object();
  if (spec && nic.ports != spec->ports) set.set("/ports", nic.ports);
  if (spec && nic.speed && !is_speed(*spec, *nic.speed))
    set.set("/link/rate", fmt::format("{} Mb/s", nic.speed->bps / 1'000'000));
  if (!set.members.empty()) out.value = used(out.value.text, std::move(set));
  return out;
}

}  // namespace weft
