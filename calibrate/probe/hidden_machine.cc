// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/hidden_machine.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "models/catalog.hpp"
#include "sim/core/hash.hpp"
#include "sim/core/random.hpp"
#include "sim/core/text.hpp"
#include "sim/core/units.hpp"

namespace weft {
namespace {

std::string text_of(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value != nullptr && value->is_string() ? value->text : std::string{};
}

// ---- parameters

class Hider {
 public:
  explicit Hider(std::uint64_t seed) : seed_(seed) {}

  void walk(Json& value) {
    for (Json& item : value.items) walk(item);
    for (JsonMember& member : value.members) walk(member.value);
    if (!value.is_object()) return;
    if (value.find("class") != nullptr) link(value);
    if (value.find("nodes") != nullptr) server(value);
    if (const Json* kind = value.find("kind"); kind != nullptr && kind->is_string()) {
      const std::string name = text_of(value, "name");
      if (kind->text == "nic" || kind->text == "switch")
        time(value, "latency", kind->text + name, 0.75, 1.4);
      if (kind->text == "kernels") kernels(value);
      if (kind->text == "proxy") proxy(value);
      if (kind->text == "compute") computing(value);
      if (kind->text == "gpu") time(value, "kernel_launch", name, 0.8, 1.3);
    }
  }

 private:
  // The same for every occurrence of a part, whatever else the fabric holds.
  double factor(const std::string& part, std::string_view what, double low, double high) const {
    Random luck(seed_, what, stable_hash(part));
    return luck.uniform(low, high);
  }

  void time(Json& object, std::string_view key, const std::string& part, double low,
            double high) const {
    const auto value = parse_time(text_of(object, key));
    if (!value) return;
    const double ps = static_cast<double>(value->ps) * factor(part, key, low, high);
    object.set(key, to_text(Time{static_cast<std::int64_t>(ps)}));
  }
  void bandwidth(Json& object, std::string_view key, const std::string& part, double low,
                 double high) const {
    const auto value = parse_bandwidth(text_of(object, key));
    if (!value) return;
    const double bps = static_cast<double>(value->bps) * factor(part, key, low, high);
    object.set(key, to_text(Bandwidth{static_cast<std::int64_t>(bps)}));
  }
  void share(Json& object, std::string_view key, const std::string& part, double low,
             double high) const {
    const Json* value = object.find(key);
    if (value == nullptr || !value->is_number()) return;
    const double scaled = value->number * factor(part, key, low, high);
    object.set(key, std::min(scaled, 0.995));
  }

  void link(Json& object) const {
    Diagnostics unused;
    LinkSpec spec;
    read_config(object, {}, spec, unused);
    const LinkLaw law = link_law(spec, link_classes(), unused);
    if (!unused.ok()) return;
    const std::string part = spec.name.empty() ? text_of(object, "class") : spec.name;
    object.set("efficiency", spec.efficiency.value_or(law.efficiency()));
    share(object, "efficiency", part, 0.9, 1.03);
    time(object, "delay", part, 0.6, 1.6);
  }

  void server(Json& object) const {
    const std::string part = text_of(object, "name");
    if (Json* copy = object.find("copy")) time(*copy, "latency", part + " copy", 0.75, 1.4);
    if (Json* staging = object.find("staging")) {
      time(*staging, "latency", part + " staging", 0.75, 1.4);
      bandwidth(*staging, "rate", part + " staging", 0.85, 1.1);
    }
    for (Json& node : object.find("nodes")->items)
      time(node, "latency", part + text_of(node, "kind"), 0.8, 1.3);
  }

  void kernels(Json& object) const {
    const std::string part = text_of(object, "name");
    for (const char* key : {"ll_step", "ll128_step", "simple_step", "nvls_round"})
      time(object, key, part, 0.8, 1.25);
    share(object, "efficiency", part, 0.93, 1.03);
    share(object, "ll128_share", part, 0.95, 1.03);
    bandwidth(object, "channel_rate", part, 0.93, 1.07);
  }

  void proxy(Json& object) const {
    const std::string part = text_of(object, "name");
    for (const char* key : {"ll_step", "bulk_step", "chunk_time"})
      time(object, key, part, 0.8, 1.25);
    share(object, "efficiency", part, 0.93, 1.02);
  }

  void computing(Json& object) const {
    const std::string part = text_of(object, "name");
    for (const char* key : {"wave_start", "kernel_start", "host_launch"})
      time(object, key, part, 0.8, 1.25);
    for (const char* key : {"gemm_share", "fp8_share", "fp4_share", "memory_share"})
      share(object, key, part, 0.92, 1.05);
    const char* beside = "beside_collectives";
    if (object.find(beside) != nullptr) object.set(beside, factor(part, beside, 1.1, 1.4));
  }

  std::uint64_t seed_;
};

// ---- faults

// The server that has the fault: server 0 on its own.
Json* single_out(Json& document) {
  if (document.find("nodes") != nullptr) return &document;
  Json* server = document.find("server");
  if (server == nullptr) return nullptr;
  const auto group = [](std::int64_t count, Json of) {
    Json out = Json::object();
    out.set("count", count);
    out.set("server", std::move(of));
    return out;
  };
  Json groups = Json::array();
  if (server->is_array()) {
    if (server->items.empty()) return nullptr;
    for (std::size_t i = 0; i < server->items.size(); ++i) {
      const Json &entry = server->items[i], *count = entry.find("count");
      const std::int64_t many = count == nullptr ? 1 : count->integer;
      if (i == 0) groups.push(group(1, *entry.find("server")));
      if (const std::int64_t rest = i == 0 ? many - 1 : many; rest > 0)
        groups.push(group(rest, *entry.find("server")));
    }
  } else {
    const Json* servers = document.find("servers");
    const std::int64_t many = servers == nullptr ? 1 : servers->integer;
    groups.push(group(1, *server));
    if (many > 1) groups.push(group(many - 1, *server));
    std::erase_if(document.members, [](const JsonMember& m) { return m.key == "servers"; });
  }
  document.set("server", std::move(groups));
  return document.find("server")->items.front().find("server");
}

// Every pair of nodes that an entry joins, as the builder takes it.
std::vector<std::pair<std::string, std::string>> joined(const Json& entry) {
  const auto a = expand_range(text_of(entry, "a")), b = expand_range(text_of(entry, "b"));
  std::vector<std::pair<std::string, std::string>> out;
  if (!a || !b) return out;
  const std::string pair = text_of(entry, "pair");
  if (pair == "each") {
    for (std::size_t i = 0; i < std::min(a->size(), b->size()); ++i)
      out.emplace_back((*a)[i], (*b)[i]);
  } else if (pair == "block") {
    const std::size_t block = std::max<std::size_t>(1, a->size() / b->size());
    for (std::size_t i = 0; i < a->size(); ++i)
      out.emplace_back((*a)[i], (*b)[std::min(i / block, b->size() - 1)]);
  } else {
    for (std::size_t i = 0; i < a->size(); ++i) {
      for (std::size_t j = *a == *b ? i + 1 : 0; j < b->size(); ++j)
        out.emplace_back((*a)[i], (*b)[j]);
    }
  }
  return out;
}

// One entry per pair of nodes.
void expand_links(Json& server) {
  Json* links = server.find("links");
  if (links == nullptr) return;
  Json out = Json::array();
  for (const Json& entry : links->items) {
    for (const auto& [a, b] : joined(entry)) {
      Json one = entry;
      one.set("a", a);
      one.set("b", b);
      std::erase_if(one.members, [](const JsonMember& m) { return m.key == "pair"; });
      out.push(std::move(one));
    }
  }
  server.set("links", std::move(out));
}

class Saboteur {
 public:
  // `lone`: there is no other server, so that its NICs carry nothing.
  Saboteur(Json& server, bool lone, std::uint64_t seed)
      : server_(server), lone_(lone), luck_(seed, "fault") {
    expand_links(server);
  }

  std::string plant(ProbeFault fault) {
    switch (fault) {
      case ProbeFault::slow_link:
        return slow_link();
      case ProbeFault::half_width:
        return half_width();
      case ProbeFault::wrong_affinity:
        return wrong_affinity();
      case ProbeFault::none:
        break;
    }
    return {};
  }

 private:
  std::string kind_of(const std::string& node) const {
    const Json* nodes = server_.find("nodes");
    if (nodes == nullptr) return {};
    for (const Json& entry : nodes->items) {
      const auto names = expand_range(text_of(entry, "id"));
      if (names && std::ranges::find(*names, node) != names->end()) return text_of(entry, "kind");
    }
    return {};
  }

  std::vector<Json*> links_of(std::string_view kind, std::string_view link_class) {
    std::vector<Json*> out;
    Json* links = server_.find("links");
    if (links == nullptr) return out;
    for (Json& entry : links->items) {
      const Json* link = entry.find("link");
      if (link == nullptr || text_of(*link, "class") != link_class) continue;
      if (kind_of(text_of(entry, "a")) == kind || kind_of(text_of(entry, "b")) == kind)
        out.push_back(&entry);
    }
    return out;
  }

  static void slow(Json& entry, double factor) {
    Json* link = entry.find("link");
    const Json* efficiency = link->find("efficiency");
    if (efficiency != nullptr) link->set("efficiency", efficiency->number * factor);
  }
  static std::string name_of(const Json& entry) {
    return fmt::format("{}:{}", text_of(entry, "a"), text_of(entry, "b"));
  }
  Json& any(const std::vector<Json*>& entries) { return *entries[luck_.below(entries.size())]; }

  std::string slow_link() {
    constexpr double kFactor = 0.5;
    std::vector<Json*> links = links_of("gpu", "nvlink");
    if (links.empty()) links = links_of("gpu", "pcie");
    if (links.empty()) return {};
    Json& chosen = any(links);
    const std::string a = text_of(chosen, "a"), b = text_of(chosen, "b");
    const bool switched = kind_of(a) == "nvswitch" || kind_of(b) == "nvswitch";
    if (!switched) {
      slow(chosen, kFactor);
      return fmt::format("slow-link: {} runs at {} of its rate", name_of(chosen), kFactor);
    }
    const std::string gpu = kind_of(a) == "gpu" ? a : b;
    for (Json* entry : links) {
      if (text_of(*entry, "a") == gpu || text_of(*entry, "b") == gpu) slow(*entry, kFactor);
    }
    return fmt::format("slow-link: the NVLinks of {} run at {} of their rate", gpu, kFactor);
  }

  std::string half_width() {
    std::vector<Json*> links = links_of("gpu", "pcie");
    if (links.empty()) return {};
    Json& chosen = any(links);
    slow(chosen, 0.5);
    return fmt::format("half-width: {} runs with half of its lanes", name_of(chosen));
  }

  // The far end of an entry that hangs on a PCIe switch or socket, and the other ends there are for it.
  std::string wrong_affinity() {
    if (!lone_) {
      if (std::string said = move_one(links_of("nic", "pcie"), "nic"); !said.empty()) return said;
    }
    return swap_two(links_of("gpu", "pcie"));
  }

  std::string move_one(const std::vector<Json*>& entries, std::string_view kind) {
    if (entries.empty()) return {};
    Json& chosen = any(entries);
    const std::string own = text_of(chosen, "b"), what = text_of(chosen, "a");
    if (kind_of(what) != kind) return {};
    std::vector<std::string> others;
    for (const Json* entry : entries) {
      if (const std::string end = text_of(*entry, "b"); end != own) others.push_back(end);
    }
    if (others.empty()) return {};
    // The last in the list hangs on the other socket, as a rule.
    const std::string& other = own == others.back() ? others.front() : others.back();
    chosen.set("b", other);
    return fmt::format("wrong-affinity: {} is on {}, not on {}", what, other, own);
  }

  static std::string swap_two(const std::vector<Json*>& entries) {
    if (entries.size() < 2) return {};
    Json &first = *entries.front(), &last = *entries.back();
    const std::string one = text_of(first, "b"), other = text_of(last, "b");
    if (one == other) return {};
    first.set("b", other);
    last.set("b", one);
    return fmt::format("wrong-affinity: {} is on {} and {} on {}", text_of(first, "a"), other,
                       text_of(last, "a"), one);
  }

  Json& server_;
  bool lone_;
  Random luck_;
};

}  // namespace

HiddenMachine hide_machine(const Json& documented, std::uint64_t seed, ProbeFault fault,
                           Diagnostics& out) {
  HiddenMachine machine{documented, {}};
  Hider(seed).walk(machine.document);
  if (fault == ProbeFault::none) return machine;
  if (Json* server = single_out(machine.document)) {
    const Json* groups = machine.document.find("server");
    std::int64_t servers = 0;
    if (groups != nullptr) {
      for (const Json& group : groups->items) servers += group.find("count")->integer;
    }
    machine.fault = Saboteur(*server, servers < 2, seed).plant(fault);
  }
  if (machine.fault.empty()) {
    out.error(
        {}, "--fault", "this machine has no place for such a fault",
        "slow-link wants NVLink or PCIe, half-width PCIe, wrong-affinity two PCIe switches or "
        "sockets");
  }
  return machine;
}

}  // namespace weft
