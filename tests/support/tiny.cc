// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiny.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "models/catalog.hpp"
#include "models/llm/train.hpp"
#include "models/nccl/library.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/file_source.hpp"

namespace weft::test {
namespace {

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\n") - first + 1));
}

std::vector<std::string> parts(std::string_view text, std::string_view separator) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(separator, at), text.size());
    out.push_back(trimmed(text.substr(at, end - at)));
    at = end + separator.size();
  }
  return out;
}

std::string link_json(std::string_view facts, std::string_view link_class = "c2c",
                      std::string_view more = {}) {
  const auto fields = parts(facts, ",");
  return fmt::format(
      R"({{"kind": "link", "class": "{}", "rate": "{}", "delay": "{}", "efficiency": 1{}}})",
      link_class, fields.at(0), fields.at(1), more);
}

class Server {
 public:
  Server(std::string_view text, const TinyOptions& options) : options_(options) {
    std::string lines(text);
    std::ranges::replace(lines, '\n', ';');
    for (const std::string& statement : parts(lines, ";")) {
      if (!statement.empty()) add(statement);
    }
  }

  std::string json() const {
    return fmt::format(R"({{"kind": "server", "name": "box", "nodes": [{}], "links": [{}]{}{}}})",
                       nodes_, links_, options_.server.empty() ? "" : ", ", options_.server);
  }

 private:
  void add(const std::string& statement) {
    const auto sides = parts(statement, "--");
    const std::string a = add_node(sides.at(0));
    if (sides.size() == 1) return;
    if (sides.size() != 3) throw std::invalid_argument("not NODE -- FACTS -- NODE: " + statement);
    const std::string b = add_node(sides[2]);
    const auto facts = parts(sides[1], ",");
    std::string link_class = "c2c", more, count = "1", pair = "all";
    for (std::size_t i = 2; i < facts.size(); ++i) {
      if (facts[i].starts_with("x")) {
        count = facts[i].substr(1);
      } else if (facts[i].starts_with("duplex ")) {
        link_class = "pcie";
        more = fmt::format(R"(, "generation": 3, "duplex_factor": {})", facts[i].substr(7));
      } else {
        pair = facts[i];
      }
    }
    links_ += fmt::format(R"({}{{"a": "{}", "b": "{}", "pair": "{}", "count": {}, "link": {}}})",
                          links_.empty() ? "" : ",\n", a, b, pair, count,
                          link_json(sides[1], link_class, more));
  }

  std::string add_node(const std::string& text) {
    const auto words = parts(text, " ");
    if (words.size() == 1) return words[0];
    std::string latency, model;
    if (words.size() > 2) latency = fmt::format(R"(, "latency": "{} {}")", words[2], words.at(3));
    if (words[0] == "gpu") model = R"(, "model": {})";
    if (words[0] == "nic")
      model = fmt::format(R"(, "model": {{"link": {}}})",
                          link_json(options_.nic, options_.network_class));
    nodes_ += fmt::format(R"({}{{"id": "{}", "kind": "{}"{}{}}})", nodes_.empty() ? "" : ", ",
                          words[1], words[0], latency, model);
    return words[1];
  }

  const TinyOptions& options_;
  std::string nodes_, links_;
};

std::string fabric_members(std::string_view reference) {
  if (reference.starts_with("{")) return std::string(reference);
  return fmt::format(R"({{"use": "{}"}})", reference);
}

class Spy final : public NetworkModel {
 public:
  Spy(std::unique_ptr<NetworkModel> inner, std::size_t resources, Traffic& seen)
      : inner_(std::move(inner)), seen_(seen) {
    seen_ = {};
    seen_.injected.assign(resources, 0);
    seen_.carried.assign(resources, 0);
    seen_.busy.assign(resources, {});
  }
  ~Spy() override {
    for (std::uint32_t r = 0; r < seen_.carried.size(); ++r) {
      seen_.carried[r] = inner_->carried_bytes(r);
      seen_.busy[r] = inner_->busy_time(r);
    }
  }
  FlowId start(const FlowRequest& request, Time now) override {
    seen_.messages.push_back(
        {{request.shares.begin(), request.shares.end()}, request.size, request.latency, now});
    for (const Share& share : request.shares)
      seen_.injected[share.resource] += share.weight * request.size.value();
    return inner_->start(request, now);
  }
  Time next_event() override { return inner_->next_event(); }
  void advance(Time until, std::vector<FlowDone>& done) override {
    const std::size_t before = done.size();
    inner_->advance(until, done);
    seen_.finished += done.size() - before;
  }
  void set_capacity(std::uint32_t resource, Bandwidth capacity, Time now) override {
    inner_->set_capacity(resource, capacity, now);
  }
  double carried_bytes(std::uint32_t resource) const override {
    return inner_->carried_bytes(resource);
  }
  Time busy_time(std::uint32_t resource) const override { return inner_->busy_time(resource); }
  const NetworkCounters& counters() const override { return inner_->counters(); }

 private:
  std::unique_ptr<NetworkModel> inner_;
  Traffic& seen_;
};

Configs& catalogue() {
  static Configs configs(WEFT_SOURCE_DIR "/configs");
  return configs;
}

}  // namespace

std::optional<std::string> Files::read(const std::string& path) {
  if (const auto found = in_memory_.find(path); found != in_memory_.end()) return found->second;
  return catalogue().read(path);
}

std::optional<std::string> Files::find(std::string_view kind, const std::string& name) {
  const std::string here = fmt::format("{}/{}", kind, name);
  if (in_memory_.contains(here)) return here;
  return catalogue().find(kind, name);
}

std::vector<std::string> Files::names(std::string_view kind) {
  std::vector<std::string> out = catalogue().names(kind);
  const std::string folder = fmt::format("{}/", kind);
  for (const auto& [path, text] : in_memory_) {
    if (path.starts_with(folder)) out.push_back(path.substr(folder.size()));
  }
  std::ranges::sort(out);
  return out;
}

std::string single_switch() { return R"("generator": "single-switch")"; }

std::string leaf_spine(int hosts_per_leaf, int spines, std::string_view routing) {
  return fmt::format(
      R"("generator": "leaf-spine", "hosts_per_leaf": {}, "spines": {}, "routing": "{}")",
      hosts_per_leaf, spines, routing);
}

std::string tiny_text(std::string_view text, const TinyOptions& options) {
  const std::string server = Server(text, options).json();
  if (options.network.empty() && options.servers == 1) return server;
  std::string network = options.network;
  if (!network.empty()) {
    if (network.find("\"switch\"") == std::string::npos) {
      network += fmt::format(R"(, "switch": {{"ports": 64, "link": {}}})",
                             link_json(options.nic, options.network_class));
    }
    if (options.network.find("\"link\"") == std::string::npos) {
      network += fmt::format(R"(, "link": {})", link_json(options.cable, options.network_class));
    }
    network = fmt::format(R"(, "network": {{{}}})", network);
  }
  return fmt::format(R"({{"kind": "fabric", "name": "tiny", "servers": {}, "server": {}{}}})",
                     options.servers, server, network);
}

namespace {
Fabric build(const Json& document, Diagnostics& out) {
  out.throw_if_errors();
  FabricSpec spec = read_fabric(document, {}, out);
  out.throw_if_errors();
  Fabric fabric = build_fabric(std::move(spec), link_classes(), out);
  out.throw_if_errors();
  return fabric;
}
}  // namespace

Fabric fabric_from(std::string_view text, const TinyOptions& options) {
  Diagnostics out;
  Files files({{"tiny.json", tiny_text(text, options)}});
  return build(Loader(files, out).load_file("tiny.json"), out);
}

Fabric catalogue_fabric(std::string_view reference) {
  Diagnostics out;
  Files files({{"catalogue.json", fmt::format(R"({{"fabric": {}}})", fabric_members(reference))}});
  const Json document = Loader(files, out).load_file("catalogue.json");
  out.throw_if_errors();
  return build(*document.find("fabric"), out);
}

Json document_from(std::string_view json) {
  Diagnostics out;
  Files files({{"scenario.json", std::string(json)}});
  Json document = Loader(files, out).load_file("scenario.json");
  out.throw_if_errors();
  return document;
}

Scenario scenario_from(std::string_view json, Diagnostics& out) {
  Files files({{"scenario.json", std::string(json)}});
  const Json document = Loader(files, out).load_file("scenario.json");
  out.throw_if_errors();
  Scenario scenario = read_scenario(document, out);
  out.throw_if_errors();
  return scenario;
}

Scenario scenario_on(const Fabric& fabric, std::string_view members, Diagnostics& out) {
  // The smallest machine stands in for the fabric while the scenario is read.
  static const std::string kStandIn = tiny_text("gpu a -- 1 Gb/s, 0 ns -- gpu b");
  Scenario scenario = scenario_from(fmt::format(R"({{"fabric": {}, {}}})", kStandIn, members), out);
  scenario.fabric = fabric.spec();
  return scenario;
}

RunContext context(Traffic* traffic) {
  RunContext out;
  out.link_classes = link_classes();
  out.algorithms = collective_algorithms();
  out.make_network = [traffic](Fidelity fidelity, std::span<const Bandwidth> capacities,
                               NetworkOptions options) {
    std::unique_ptr<NetworkModel> model = make_network(fidelity, capacities, options);
    if (traffic != nullptr)
      model = std::make_unique<Spy>(std::move(model), capacities.size(), *traffic);
    return model;
  };
  out.library = nccl_library();
  out.models = llm_jobs();
  out.version = "test";
  out.explain = false;
  return out;
}

Report run(std::string_view scenario_json, Traffic* traffic) {
  Diagnostics out;
  return run_scenario(scenario_from(scenario_json, out), context(traffic), out);
}

Report run(const Fabric& fabric, std::string_view members, Traffic* traffic) {
  Diagnostics out;
  return run_on(fabric, scenario_on(fabric, members, out), context(traffic), out);
}

double number(const Report& report, std::string_view key, std::string_view inner) {
  const Json* value = report.jobs[0].details.find(key);
  if (value != nullptr && !inner.empty()) value = value->find(inner);
  if (value == nullptr) throw std::invalid_argument(fmt::format("no number {} {}", key, inner));
  return value->number;
}

Time time_of(const Report& report) { return {std::llround(report.time_s * 1e12)}; }

NodeId node(const Fabric& fabric, std::string_view name) {
  const auto found = fabric.find_node(name);
  if (!found) throw std::invalid_argument(fmt::format("no node {}", name));
  return *found;
}

LinkId link(const Fabric& fabric, std::string_view name) {
  const auto found = fabric.find_link(name);
  if (!found) throw std::invalid_argument(fmt::format("no link {}", name));
  return *found;
}

std::vector<NodeId> nodes(const Fabric& fabric, const std::vector<std::string>& names) {
  std::vector<NodeId> out;
  for (const std::string& name : names) out.push_back(node(fabric, name));
  return out;
}

}  // namespace weft::test
