// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/nccl_xml.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "calibrate/import/machine_parts.hpp"
#include "calibrate/import/xml.hpp"
#include "models/link/pcie.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;

constexpr std::int64_t kMostLinks = 64;                 // of one element
constexpr std::int64_t kMostC2cMegabytes = 10'000'000;  // per second and link
constexpr std::int64_t kMostNetMegabits = 100'000'000;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

class Reader {
 public:
  Reader(const XmlDocument& document, Imported& out, Diagnostics& diagnostics)
      : document_(document), out_(out), diagnostics_(diagnostics) {}

  Machine read() {
    const XmlElement& root = document_.elements.front();
    if (root.name != "system") return refuse_root(root), std::move(machine_);
    for (const std::size_t child : root.children) {
      const XmlElement& element = document_.elements[child];
      if (element.name == "cpu") {
        read_cpu(element);
      } else {
        ignore(element);
      }
    }
    if (machine_.gpus.empty() && diagnostics_.ok())
      error(root, "the file holds no GPU, neither as <gpu> nor by PCI class 0x03",
            "dump it on a machine with GPUs");
    if (!diagnostics_.ok()) return std::move(machine_);
    join_nvlinks();
    settle();
    note_ignored();
    return std::move(machine_);
  }

  const std::vector<XmlLink>& links() const { return links_; }

 private:
  void error(const XmlElement& element, std::string fact, std::string cure = {}) {
    diagnostics_.error(element.place, {}, std::move(fact), std::move(cure));
  }
  void warn(const XmlElement& element, std::string text) {
    out_.note(Kind::warning, std::move(text), element.place);
  }
  void ignore(const XmlElement& element) { ++ignored_[element.name]; }

  void refuse_root(const XmlElement& root) {
    if (root.name == "graphs") {
      error(root, "this is a channel graph, not a machine: it lists which way rings and trees go",
            "read it with `weft import nccl-graph`; the machine is in the file of "
            "NCCL_TOPO_DUMP_FILE");
    } else {
      error(root,
            fmt::format("the root element is <{}>, a topology begins with <system>", root.name),
            "the file of NCCL_TOPO_DUMP_FILE is needed");
    }
  }

  // Absent or empty: nullopt without a word; anything else that is no number is reported.
  std::optional<std::int64_t> number(const XmlElement& element, std::string_view key,
                                     std::int64_t most) {
    const std::string& text = element.attribute(key);
    if (text.empty()) return std::nullopt;
    const auto value = parse_integer(text);
    if (!value || *value < -1 || *value > most) {
      warn(element, fmt::format("{}=\"{}\" is not a sensible number and not used", key, text));
      return std::nullopt;
    }
    return value;
  }

  void read_cpu(const XmlElement& element) {
    MachinePart socket{.kind = NodeKind::cpu};
    socket.name = fmt::format("cpu{}", machine_.sockets.size());
    socket.host = element.attribute("host_hash");
    socket.numa = element.attribute("numaid");
    socket.cpus = element.attribute("affinity");
    socket.place = element.place;
    host_ = socket.host;
    const std::size_t at = machine_.add(std::move(socket));
    if (machine_.sockets.size() > kMostMachineDevices)
      return error(element, "more CPUs than any machine has");
    for (const std::size_t child : element.children) {
      const XmlElement& part = document_.elements[child];
      if (part.name == "pci") {
        read_pci(part, at);
      } else if (part.name == "nic") {
        MachinePart nic{.kind = NodeKind::nic};
        nic.parent = at;
        read_nets(part, nic);
        add_device(part, std::move(nic));
      } else {
        ignore(part);
      }
    }
  }

  const XmlElement* child(const XmlElement& element, std::string_view name) const {
    for (const std::size_t index : element.children) {
      if (document_.elements[index].name == name) return &document_.elements[index];
    }
    return nullptr;
  }

  enum class PciKind { bridge, gpu, nic, nvswitch, other };
  PciKind classify(const XmlElement& element) const {
    const std::string code = lower(element.attribute("class"));
    if (child(element, "gpu") != nullptr) return PciKind::gpu;
    if (child(element, "nic") != nullptr) return PciKind::nic;
    if (code.starts_with("0x0604") || child(element, "pci") != nullptr) return PciKind::bridge;
    if (code.starts_with("0x03")) return PciKind::gpu;
    if (code.starts_with("0x02")) return PciKind::nic;
    return code.starts_with("0x0680") ? PciKind::nvswitch : PciKind::other;
  }

  void read_pci(const XmlElement& element, std::size_t above) {
    MachinePart part;
    part.parent = above;
    part.device = lower(element.attribute("busid"));
    const PciKind kind = classify(element);
    if (kind == PciKind::nvswitch || kind == PciKind::other) {
      ++ignored_[kind == PciKind::nvswitch
                     ? "pci of an NVSwitch"
                     : fmt::format("pci of class \"{}\"", element.attribute("class"))];
      return;
    }
    if (part.device.empty()) warn(element, "this device has no busid");
    if (!part.device.empty() && !buses_.insert(host_ + "|" + part.device).second)
      return error(element, fmt::format("busid \"{}\" stands here a second time", part.device),
                   "each device has one address");
    read_link(element, part);
    const std::string vendor = lower(element.attribute("vendor")),
                      device = lower(element.attribute("device"));
    const std::string code = lower(element.attribute("class"));
    if (kind == PciKind::bridge) {
      part.kind = NodeKind::pcie_switch;
      const std::size_t bridge = add_device(element, std::move(part));
      for (const std::size_t index : element.children) {
        const XmlElement& below = document_.elements[index];
        if (below.name == "pci") {
          read_pci(below, bridge);
        } else {
          ignore(below);
        }
      }
    } else if (kind == PciKind::gpu) {
      part.kind = NodeKind::gpu;
      part.model = gpu_of_pci_id(vendor, device);
      if (part.model.empty() && !device.empty())
        out_.note(Kind::unknown, fmt::format("model of PCI device {}:{}", vendor, device),
                  element.place);
      const XmlElement* gpu = child(element, "gpu");
      if (gpu != nullptr) read_gpu(*gpu, part);
      leaves_ += gpu != nullptr ? 1 : 0;
      const std::size_t at = add_device(element, std::move(part));
      if (gpu != nullptr) read_nvlinks(*gpu, at);
    } else {
      part.kind = NodeKind::nic;
      part.model = nic_of_pci_id(vendor, device, code.starts_with("0x0207"));
      if (const XmlElement* nic = child(element, "nic")) read_nets(*nic, part);
      add_device(element, std::move(part));
    }
  }

  std::size_t add_device(const XmlElement& element, MachinePart part) {
    const MachinePart& above = machine_.parts[part.parent];
    part.host = host_;
    part.numa = above.numa;
    part.cpus = above.cpus;
    part.place = element.place;
    if (part.name.empty())
      part.name = part.device.empty() ? fmt::format("line{}", element.place.line) : part.device;
    if (machine_.parts.size() == 4 * kMostMachineDevices)
      error(element, "more devices than any machine has");
    return machine_.add(std::move(part));
  }

  void read_link(const XmlElement& element, MachinePart& part) {
    const std::string& speed = element.attribute("link_speed");
    const std::string& width = element.attribute("link_width");
    links_.push_back({part.device, speed, width, element.place});
    part.gts = parse_link_speed(speed);
    if (!part.gts && !speed.empty())
      warn(element,
           fmt::format("link_speed \"{}\" is the speed of no PCIe generation: it counts as unknown",
                       speed));
    const auto lanes = number(element, "link_width", 32);
    if (lanes && *lanes > 0) part.width = static_cast<int>(*lanes);
  }

  void read_gpu(const XmlElement& element, MachinePart& part) {
    if (const auto dev = number(element, "dev", 100'000)) part.name = fmt::format("GPU{}", *dev);
    if (const auto sm = number(element, "sm", 1000)) part.sm = static_cast<int>(*sm);
    if (const auto gdr = number(element, "gdr", 1)) part.gdr = *gdr > 0;
    const XmlElement* c2c = child(element, "c2c");
    if (c2c == nullptr) return;
    const auto bw = number(*c2c, "bw", kMostC2cMegabytes),
               count = number(*c2c, "count", kMostLinks);
    if (!bw || !count || *bw < 1 || *count < 1)
      return warn(*c2c, "a C2C link without bw and count is not used");
    part.c2c = Bandwidth{*bw * *count * 8'000'000};
    part.c2c_links = static_cast<int>(*count);
    machine_.coherent = true;
  }

  void read_nets(const XmlElement& element, MachinePart& part) {
    part.ports = 0;
    for (const std::size_t index : element.children) {
      const XmlElement& net = document_.elements[index];
      if (net.name != "net") {
        ignore(net);
        continue;
      }
      if (part.ports++ == 0) part.name = net.attribute("name");
      const auto speed = number(net, "speed", kMostNetMegabits);
      if (speed && *speed > 0) {
        part.speed = Bandwidth{*speed * 1'000'000};
      } else {
        warn(net, fmt::format("no speed of {}: NCCL takes 10 Gb/s, it counts as unknown",
                              net.attribute("name")));
      }
      if (const auto gdr = number(net, "gdr", 1)) part.gdr = part.gdr.value_or(false) || *gdr > 0;
    }
    part.ports = std::clamp(part.ports, 1, 64);
  }

  struct RawNvlink {
    std::size_t part;
    std::string target, target_class;
    int count;
    const XmlElement* element;
  };

  void read_nvlinks(const XmlElement& gpu, std::size_t part) {
    for (const std::size_t index : gpu.children) {
      const XmlElement& element = document_.elements[index];
      if (element.name == "c2c") continue;
      if (element.name != "nvlink") {
        ignore(element);
        continue;
      }
      const auto count = parse_integer(element.attribute("count"));
      if (!count || *count < 1 || *count > kMostLinks) {
        error(element,
              fmt::format("count=\"{}\" is no number of NVLinks", element.attribute("count")),
              "dump the file again");
        continue;
      }
      raw_.push_back({part, lower(element.attribute("target")), lower(element.attribute("tclass")),
                      static_cast<int>(*count), &element});
    }
  }

  void join_nvlinks() {
    std::map<std::string, std::size_t> gpu_at;
    std::map<std::size_t, std::size_t> position;
    for (std::size_t g = 0; g < machine_.gpus.size(); ++g) {
      gpu_at[machine_.gpu(g).host + "|" + machine_.gpu(g).device] = g;
      position[machine_.gpus[g]] = g;
    }
    std::map<std::pair<std::size_t, std::size_t>, int> seen;
    int to_cpu = 0;
    for (const RawNvlink& link : raw_) {
      const std::size_t gpu = position[link.part];
      const auto peer = gpu_at.find(machine_.gpu(gpu).host + "|" + link.target);
      if (link.target_class.starts_with("0x068001")) {
        to_cpu += link.count;
      } else if (link.target_class.starts_with("0x0680") || is_hidden_switch(link.target)) {
        machine_.switch_ends.push_back({gpu, link.target, link.count});
      } else if (peer == gpu_at.end()) {
        machine_.hidden_ends.push_back({gpu, link.target, link.count});
      } else if (peer->second == gpu) {
        warn(*link.element, "an NVLink from a GPU to itself is not used");
      } else {
        seen[{gpu, peer->second}] += link.count;
      }
    }
    for (const auto& [ends, count] : seen) {
      const auto back = seen.find({ends.second, ends.first});
      const bool both = back != seen.end();
      if (both && ends.first > ends.second) continue;
      const int fewest = both ? std::min(count, back->second) : count;
      if (!both || back->second != count) {
        out_.note(Kind::warning,
                  fmt::format("{} counts {} NVLinks to {}, which counts {} back: {} are used",
                              machine_.gpu(ends.first).name, count, machine_.gpu(ends.second).name,
                              both ? back->second : 0, fewest));
      }
      machine_.pairs.push_back(
          {std::min(ends.first, ends.second), std::max(ends.first, ends.second), fewest});
    }
    if (to_cpu > 0) out_.note(Kind::ignored, fmt::format("{} NVLinks to CPUs", to_cpu));
  }

  void settle() {
    machine_.nvlink_unknown = leaves_ == 0;
    const bool no_numa = std::ranges::any_of(
        machine_.sockets, [&](std::size_t s) { return machine_.parts[s].numa == "-1"; });
    machine_.tree_unknown = no_numa && machine_.bridges.empty();
    if (machine_.host_count() < 2) return;
    for (MachinePart& part : machine_.parts) part.name = part.host + "/" + part.name;
  }

  void note_ignored() {
    for (const auto& [name, count] : ignored_)
      out_.note(Kind::ignored, fmt::format("{} x {}", count, name));
    if (document_.comments > 0)
      out_.note(Kind::ignored, fmt::format("{} comments", document_.comments));
    if (document_.texts > 0)
      out_.note(Kind::ignored, fmt::format("{} pieces of text between elements", document_.texts));
  }

  const XmlDocument& document_;
  Imported& out_;
  Diagnostics& diagnostics_;
  Machine machine_;
  std::string host_;
  std::vector<XmlLink> links_;
  std::vector<RawNvlink> raw_;
  std::set<std::string> buses_;
  std::map<std::string, std::size_t> ignored_;
  std::size_t leaves_ = 0;
};

void note_links(const Machine& machine, const ImportOptions& options, Imported& out) {
  std::vector<std::string> unknown, slow, narrow;
  std::string what;
  for (const MachinePart& part : machine.parts) {
    if (part.kind == NodeKind::cpu) continue;
    const int generation = part.gts ? pcie_generation(*part.gts) : 0;
    if (generation == 0 && !(part.kind == NodeKind::nic && part.device.empty()))
      unknown.push_back(part.name);
    if (generation == 0) continue;
    if (part.kind == NodeKind::gpu && !part.c2c && !part.model.empty() &&
        options.catalogue != nullptr) {
      const auto spec = catalogue_gpu(*options.catalogue, part.model);
      if (spec && spec->pcie && spec->pcie->generation > generation) {
        slow.push_back(part.name);
        what = fmt::format("{:g} GT/s where {} has PCIe {}", *part.gts, part.model,
                           spec->pcie->generation);
      }
    }
    const Bandwidth host = pcie_rate(generation, part.width.value_or(16));
    if (part.kind == NodeKind::nic && part.speed && part.speed->bps * part.ports > host.bps)
      narrow.push_back(fmt::format("{} ({:.2f} GB/s for {} Gb/s)", part.name, host.gbytes_per_s(),
                                   part.speed->bps * part.ports / 1'000'000'000));
  }
  if (!unknown.empty())
    out.note(Kind::unknown,
             fmt::format("how fast is PCIe at {}? The file does not say, --pcie LINK does",
                         join(unknown, ", ")));
  if (!slow.empty())
    out.note(
        Kind::warning,
        fmt::format("{}: {}; a virtual machine shows a made-up link, or the link trained slower",
                    join(slow, ", "), what));
  if (!narrow.empty())
    out.note(Kind::warning, "PCIe is slower than the ports of " + join(narrow, ", "));
  if (machine.tree_unknown)
    out.note(Kind::unknown,
             "which NIC is near which GPU: the tree is flat and has no NUMA node, as in a virtual "
             "machine");
  const bool direct = std::ranges::any_of(
      machine.gpus, [&](std::size_t g) { return machine.parts[g].gdr.value_or(true); });
  if (!direct)
    out.note(Kind::read, "no GPU allows GPUDirect RDMA: network traffic is staged in host memory");
}

Imported read_nccl_xml(std::string_view text, const std::string& file, const ImportOptions& options,
                       Diagnostics& diagnostics) {
  Imported out;
  out.kind = "nccl-xml";
  const auto document = read_xml(text, file, diagnostics);
  if (!document) return out;
  Reader reader(*document, out, diagnostics);
  Machine machine = reader.read();
  if (!diagnostics.ok()) return out;
  find_distances(machine);
  find_wiring(machine, 0, out);
  find_rails(machine);
  add_machine_notes(machine, out);
  note_links(machine, options, out);
  add_nccl_beliefs(machine, reader.links(), out);
  out.facts = machine_facts(machine);
  add_server(machine, options, "NCCL topology", out);
  return out;
}

}  // namespace

const Importer kNcclXmlImporter{.name = "nccl-xml",
                                .summary = "topology of NCCL_TOPO_DUMP_FILE",
                                .reference = "NVIDIA/nccl src/graph/xml.cc and topo.cc",
                                .answers = "gpu nic pcie nvlink",
                                .read = read_nccl_xml};

}  // namespace weft
