// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/question.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/catalog.hpp"
#include "models/compute/kernels.hpp"
#include "models/llm/architecture.hpp"
#include "sim/core/loader.hpp"
#include "sim/core/text.hpp"
#include "sim/fabric/fabric.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {
namespace {

const std::string kTraining = "train";

template <class E>
Json names_of() {
  Json names = Json::array();
  for (const auto& entry : enum_names(E{})) names.push(entry.name);
  return names;
}

void add_rate(const Json* link, std::string pointer, FabricChoice& choice) {
  if (link == nullptr || !link->is_object()) return;
  Diagnostics trial;
  LinkSpec spec;
  read_config(*link, pointer, spec, trial);
  const Bandwidth rate = link_law(spec, link_classes(), trial).raw;
  if (trial.ok() && rate.bps > 0) choice.rates.push_back({pointer + "/rate", rate});
}

// Nothing when the page cannot ask about it: several kinds of servers, no network.
std::optional<FabricChoice> fabric_choice(const Json& document, Diagnostics& out) {
  const Json* server = document.find("server");
  const Json* network = document.find("network");
  if (server == nullptr || !server->is_object() || network == nullptr) return {};
  FabricSpec spec = read_fabric(document, {}, out);
  if (!out.ok() || !spec.network) return {};
  FabricChoice choice{spec.name, spec.summary, write_config(spec.network->generator).text};
  const std::int64_t servers = spec.servers;
  const Generator generator = spec.network->generator;
  choice.oversubscribes = generator == Generator::fat_tree || generator == Generator::leaf_spine ||
                          generator == Generator::rail_optimised;
  choice.oversubscription = spec.network->oversubscription;
  const Fabric fabric = build_fabric(std::move(spec), link_classes(), out);
  if (!out.ok()) return {};
  choice.gpus_per_server = std::ssize(fabric.gpus()) / servers;
  if (fabric.gpus().empty()) return {};
  const GpuSpec& gpu = fabric.gpu_spec(fabric.gpus().front());
  if (!gpu.compute) return {};
  if (!gpu.peak.contains("bf16")) choice.precision = Precision::fp16;
  if (!gpu.compute->attention.flash2) choice.attention = fastest_attention(gpu);
  const Json* nodes = server->find("nodes");
  for (std::size_t i = 0; nodes != nullptr && i < nodes->items.size(); ++i) {
    const Json* kind = nodes->items[i].find("kind");
    const Json* role = nodes->items[i].find("role");
    const Json* model = nodes->items[i].find("model");
    if (kind == nullptr || kind->text != "nic" || model == nullptr) continue;
    if (role != nullptr && role->text != "compute") continue;
    add_rate(model->find("link"), fmt::format("/server/nodes/{}/model/link", i), choice);
  }
  if (choice.gpus_per_server == 0 || choice.rates.empty()) return {};
  add_rate(network->find("link"), "/network/link", choice);
  add_rate(network->find("link_global"), "/network/link_global", choice);
  return choice;
}

template <class Choice>
const Choice* find_choice(const std::vector<Choice>& choices, const std::string& name,
                          const char* key, Diagnostics& out) {
  const auto found = std::ranges::find(choices, name, &Choice::name);
  if (found != choices.end()) return &*found;
  std::vector<std::string> names;
  for (const Choice& choice : choices) names.push_back(choice.name);
  out.error({}, fmt::format("/{}", key),
            fmt::format("the page has no {} \"{}\"{}", key, name, did_you_mean(name, names)));
  return nullptr;
}

// In whole Mb/s, so that a person can read it.
Bandwidth readable(Bandwidth rate, double factor) {
  constexpr double kStep = 1e6;
  const double steps = std::round(static_cast<double>(rate.bps) * factor / kStep);
  return Bandwidth{static_cast<std::int64_t>(std::max(1.0, steps) * kStep)};
}

Json fabric_of(const Question& question, const FabricChoice& choice, Diagnostics& out) {
  Json set = Json::object();
  set.set("/servers", (question.gpus + choice.gpus_per_server - 1) / choice.gpus_per_server);
  if (question.oversubscription && *question.oversubscription != choice.oversubscription) {
    if (!choice.oversubscribes)
      out.error({}, "/oversubscription",
                fmt::format("a network of kind {} has no leaves with uplinks", choice.generator),
                "leave it as it is");
    set.set("/network/oversubscription", *question.oversubscription);
  }
  if (question.bandwidth != 1) {
    for (const FabricChoice::Rate& rate : choice.rates)
      set.set(rate.pointer, to_text(readable(rate.value, question.bandwidth)));
  }
  Json fabric = Json::object();
  fabric.set("use", choice.name);
  fabric.set("set", std::move(set));
  return fabric;
}

Json plan_of(const Question& question) {
  Json plan = Json::object();
  plan.set("tp", question.tp);
  plan.set("pp", question.pp);
  plan.set("dp", question.dp);
  if (question.ep != 1) plan.set("ep", question.ep);
  if (question.vpp != 1) {
    plan.set("vpp", question.vpp);
    plan.set("schedule", "1f1b-interleaved");
  }
  plan.set("micro_batch", question.micro_batch);
  plan.set("zero", question.zero);
  if (question.tp > 1) plan.set("sp", true);
  plan.set("recompute", write_config(question.recompute));
  return plan;
}

bool is_control(std::string_view name) {
  bool found = false;
  Question{}.visit([&](std::string_view key, auto&&...) { found = found || key == name; });
  return found;
}

}  // namespace

std::string control_of(const std::string& pointer) {
  constexpr std::pair<std::string_view, std::string_view> kPlaces[] = {
      {"/fabric/*oversubscription", "oversubscription"},
      {"/fabric/*rate", "bandwidth"},
      {"/fabric/*servers", "gpus"},
      {"/fabric/*", "fabric"},
      {"/jobs/*/model/*", "model"},
      {"/jobs/*/plan/schedule", "vpp"},
      {"/jobs/*/plan/layout*", "pp"},
      {"/jobs/*/plan/sp", "tp"}};
  for (const auto& [place, control] : kPlaces) {
    if (glob_match(place, pointer)) return std::string(control);
  }
  const std::string last = pointer.substr(pointer.rfind('/') + 1);
  return is_control(last) ? last : std::string();
}

Choices::Choices() {
  Configs files(find_configs_root());
  for (const std::string& name : files.names("fabric")) {
    Diagnostics trial;
    const Json document = Loader(files, trial).load_component("fabric", name);
    std::optional<FabricChoice> choice;
    if (trial.ok()) choice = fabric_choice(document, trial);
    if (!trial.ok()) left_out_ += trial.text();
    if (!trial.ok() || !choice) continue;
    choice->name = name;
    fabrics_.push_back(std::move(*choice));
  }
  for (const std::string& name : files.names("llm")) {
    Diagnostics trial;
    const Json document = Loader(files, trial).load_component("model", name);
    LlmSpec spec;
    if (trial.ok()) spec = read_llm(document, {}, trial);
    if (!trial.ok()) {
      left_out_ += trial.text();
      continue;
    }
    const Architecture model(spec);
    models_.push_back(
        {name, spec.summary, model.total(), model.layers(), spec.experts.has_value()});
  }
}

Json Choices::scenario(const Question& question, Diagnostics& out) const {
  const FabricChoice* fabric = find_choice(fabrics_, question.fabric, "fabric", out);
  const ModelChoice* model = find_choice(models_, question.model, "model", out);
  Json scenario = Json::object();
  if (fabric == nullptr || model == nullptr) return scenario;
  Json head = Json::object();
  head.set("schema", 1);
  scenario.set("weft", std::move(head));
  scenario.set("name", "what-if");
  scenario.set("fidelity", write_config(question.fidelity));
  scenario.set("fabric", fabric_of(question, *fabric, out));
  Json use = Json::object();
  use.set("use", model->name);
  Json job = Json::object();
  job.set("name", kTraining);
  job.set("kind", "training");
  job.set("gpus", question.gpus);
  job.set("model", std::move(use));
  job.set("seq", question.seq);
  job.set("global_batch", question.global_batch);
  job.set("plan", plan_of(question));
  if (fabric->precision != Precision::bf16) {
    Json& dtype = job.set("dtype", Json::object());
    dtype.set("compute", write_config(fabric->precision));
    dtype.set("param", write_config(fabric->precision));
  }
  if (fabric->attention != AttentionKernel::flash2)
    job.set("attention", write_config(fabric->attention));
  Json jobs = Json::array();
  jobs.push(std::move(job));
  scenario.set("jobs", std::move(jobs));
  return scenario;
}

Json Choices::to_json() const {
  Json fabrics = Json::array(), models = Json::array();
  for (const FabricChoice& choice : fabrics_) {
    Json one = Json::object();
    one.set("name", choice.name);
    one.set("summary", choice.summary);
    one.set("gpus_per_server", choice.gpus_per_server);
    one.set("port_gbps", static_cast<double>(choice.rates.front().value.bps) / 1e9);
    one.set("oversubscribes", choice.oversubscribes);
    one.set("oversubscription", choice.oversubscription);
    fabrics.push(std::move(one));
  }
  for (const ModelChoice& choice : models_) {
    Json one = Json::object();
    one.set("name", choice.name);
    one.set("summary", choice.summary);
    one.set("parameters", choice.parameters);
    one.set("experts", choice.experts);
    models.push(std::move(one));
  }
  Json out = Json::object();
  out.set("fabrics", std::move(fabrics));
  out.set("models", std::move(models));
  out.set("levels", names_of<QuickLevel>());
  out.set("recomputes", names_of<Recompute>());
  out.set("start", write_config(Question{}));
  out.set("most_gpus", Question::kMostGpus);
  return out;
}

}  // namespace weft
