// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/parameters.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "models/catalog.hpp"
#include "models/nccl/communicator.hpp"
#include "sim/core/config.hpp"
#include "sim/core/seconds.hpp"
#include "sim/core/text.hpp"
#include "sim/fabric/link_law.hpp"

namespace weft {
namespace {

// Standard deviations of the logarithm. The first of a row is for what was measured, the other for what is assumed. Chosen from
// the spread of the catalogue's own values over GPU generations and networks (software, proxies), and from how well the laws
// of links agree with measured copies (docs/validation.md: 2 % over NVLink).
struct PriorWidth {
  double measured, assumed;
};
constexpr PriorWidth kSoftware{0.3, 0.5}, kProxy{0.4, 0.5}, kEfficiency{0.07, 0.1},
    kChannel{0.15, 0.25}, kReduction{0.1, 0.2}, kNvlinkShare{0.05, 0.05}, kPcieShare{0.06, 0.08},
    kWireShare{0.05, 0.05}, kStaging{0.5, 0.7}, kCopyCall{0.5, 0.7}, kDelay{0.4, 0.5},
    kDuplex{0.1, 0.15}, kPlatform{0.2, 0.3};

constexpr double kTimeRange = 20, kRateRange = 10;  // a value stays within this factor of its prior
constexpr double kLeastShare = 0.01, kLeastDuplex = 0.5;  // as the configuration reads them

double seconds(const Json& value) {
  const auto time = value.is_string() ? parse_time(value.text) : std::nullopt;
  return time ? time->seconds() : 0;
}

double bits(const Json& value) {
  const auto rate = value.is_string() ? parse_bandwidth(value.text) : std::nullopt;
  return rate ? static_cast<double>(rate->bps) : 0;
}

class Finder {
 public:
  Finder(const Json& document, const ParameterQuestion& question)
      : document_(document), question_(question) {}

  std::vector<Parameter> run() {
    const Json* server = document_.find("server");
    if (server == nullptr) {
      visit_server(document_, "");
    } else if (server->is_array()) {
      for (std::size_t i = 0; i < server->items.size(); ++i) {
        if (const Json* one = server->items[i].find("server"))
          visit_server(*one, fmt::format("/server/{}/server", i));
      }
    } else {
      visit_server(*server, "/server");
    }
    return std::move(out_);
  }

 private:
  static std::string name_of(const Json& component) {
    const Json* name = component.find("name");
    return name != nullptr && name->is_string() ? name->text : "part";
  }

  static std::uint8_t reach_of(const std::string& pointer) {
    const auto under = [&](std::string_view key) { return pointer.find(key) != std::string::npos; };
    if (under("/kernels/") || under("/proxy/") || under("/reduction/")) return 1;
    if (under("/copy/")) return 2;
    if (under("/computing/")) return 4;
    return 3;
  }

  // Joins the parameter of that name, or starts it. Nothing to calibrate where the prior is 0.
  void add(const std::string& name, const std::string& pointer, ParameterUnit unit, double prior,
           PriorWidth width, double least_share = kLeastShare) {
    if (!(prior > 0)) return;
    const auto same = std::ranges::find(out_, name, &Parameter::name);
    if (same != out_.end()) {
      same->pointers.push_back(pointer);
      return;
    }
    Parameter& added = out_.emplace_back();
    added.name = name;
    added.pointers = {pointer};
    added.unit = unit;
    added.prior = prior;
    added.evidence = source_of(document_, pointer);
    added.prior_sd = added.evidence.starts_with("assumed") ? width.assumed : width.measured;
    const double range = unit == ParameterUnit::time ? kTimeRange : kRateRange;
    added.lower = prior / range;
    added.upper = prior * range;
    added.reach = reach_of(pointer);
    if (unit == ParameterUnit::share) {
      added.lower = std::max(least_share, added.lower);
      added.upper = 1;
    }
  }

  void time(const Json& part, const std::string& pointer, const char* key, const std::string& of,
            PriorWidth width) {
    if (const Json* value = part.find(key))
      add(fmt::format("{} of {}", key, of), pointer + "/" + key, ParameterUnit::time,
          seconds(*value), width);
  }

  void rate(const Json& part, const std::string& pointer, const char* key, const std::string& of,
            PriorWidth width) {
    if (const Json* value = part.find(key))
      add(fmt::format("{} of {}", key, of), pointer + "/" + key, ParameterUnit::bandwidth,
          bits(*value), width);
  }

  void share(const Json& part, const std::string& pointer, const char* key, const std::string& of,
             PriorWidth width) {
    const Json* value = part.find(key);
    if (value != nullptr && value->is_number())
      add(fmt::format("{} of {}", key, of), pointer + "/" + key, ParameterUnit::share,
          value->number, width);
  }

  void visit_kernels(const Json& kernels, const std::string& pointer, const std::string& of) {
    const NcclHarnessCosts host = nccl_harness_costs(question_.harness);
    const auto absent = [&](const char* key, Time otherwise) {
      const Json* value = kernels.find(key);
      add(fmt::format("{} of {}", key, of), pointer + "/" + key, ParameterUnit::time,
          value != nullptr ? seconds(*value) : otherwise.seconds(), kSoftware);
    };
    absent("start", KernelsSpec{}.start);
    absent("issue", host.issue);
    absent("issue_block", host.per_channel);
    time(kernels, pointer, "ll_step", of, kSoftware);
    time(kernels, pointer, "ll128_step", of, kSoftware);
    time(kernels, pointer, "simple_step", of, kSoftware);
    share(kernels, pointer, "efficiency", of, kEfficiency);
    rate(kernels, pointer, "channel_rate", of, kChannel);
    time(kernels, pointer, "nvls_round", of, kSoftware);
  }

  void visit_node(const Json& node, const std::string& pointer) {
    const Json* model = node.find("model");
    if (model == nullptr || !model->is_object()) {
      time(node, pointer, "latency", id_of(node), kPlatform);
      return;
    }
    const std::string at = pointer + "/model", of = name_of(*model);
    if (const Json* kernels = model->find("kernels"); kernels != nullptr && question_.collectives)
      visit_kernels(*kernels, at + "/kernels", "kernels of " + of);
    if (const Json* computing = model->find("computing");
        computing != nullptr && question_.kernels) {
      const std::string here = at + "/computing", what = "computing of " + of;
      share(*computing, here, "gemm_share", what, kEfficiency);
      share(*computing, here, "fp8_share", what, kEfficiency);
      share(*computing, here, "memory_share", what, kEfficiency);
      time(*computing, here, "wave_start", what, kSoftware);
      time(*computing, here, "kernel_start", what, kSoftware);
    }
    if (const Json* reduction = model->find("reduction");
        reduction != nullptr && question_.collectives)
      rate(*reduction, at + "/reduction", "rate", "reduction of " + of, kReduction);
    if (const Json* proxy = model->find("proxy"); proxy != nullptr && question_.collectives) {
      const std::string here = at + "/proxy", what = "proxy of " + of;
      time(*proxy, here, "ll_step", what, kProxy);
      time(*proxy, here, "bulk_step", what, kProxy);
      share(*proxy, here, "efficiency", what, kEfficiency);
      time(*proxy, here, "chunk_time", what, kProxy);
    }
    if (const Json* kind = node.find("kind"); kind != nullptr && kind->text == "nic")
      if (const Json* link = model->find("link")) visit_link(*link, at + "/link");
    time(*model, at, "latency", of, kPlatform);
  }

  static std::string id_of(const Json& node) {
    const Json* id = node.find("id");
    return id != nullptr && id->is_string() ? id->text : "node";
  }

  void visit_link(const Json& link, const std::string& pointer) {
    if (!link.is_object()) return;
    Diagnostics quiet;
    LinkSpec spec;
    read_config(link, pointer, spec, quiet);
    if (!quiet.ok()) return;
    const LinkLaw law = link_law(spec, link_classes(), quiet);
    if (!quiet.ok()) return;
    const PriorWidth width = spec.link_class == LinkClass::nvlink ? kNvlinkShare
                             : spec.link_class == LinkClass::pcie ? kPcieShare
                                                                  : kWireShare;
    const std::string of = "link " + name_of(link);
    add("efficiency of " + of, pointer + "/efficiency", ParameterUnit::share, law.efficiency(),
        width);
    if (question_.copies && law.duplex_factor < 1)
      add("duplex_factor of " + of, pointer + "/duplex_factor", ParameterUnit::share,
          law.duplex_factor, kDuplex, kLeastDuplex);
    time(link, pointer, "delay", of, kDelay);
  }

  void visit_server(const Json& server, const std::string& prefix) {
    if (const Json* nodes = server.find("nodes")) {
      for (std::size_t i = 0; i < nodes->items.size(); ++i)
        visit_node(nodes->items[i], fmt::format("{}/nodes/{}", prefix, i));
    }
    if (const Json* links = server.find("links")) {
      for (std::size_t i = 0; i < links->items.size(); ++i) {
        if (const Json* link = links->items[i].find("link"))
          visit_link(*link, fmt::format("{}/links/{}/link", prefix, i));
      }
    }
    if (const Json* staging = server.find("staging")) {
      rate(*staging, prefix + "/staging", "rate", "staging", kStaging);
      time(*staging, prefix + "/staging", "latency", "staging", kStaging);
    }
    const Json* copy = server.find("copy");
    if (copy != nullptr && question_.copies)
      time(*copy, prefix + "/copy", "latency", "copy", kCopyCall);
  }

  const Json& document_;
  const ParameterQuestion& question_;
  std::vector<Parameter> out_;
};

const Json* step_into(const Json* at, const std::string& key) {
  if (!at->is_array()) return at->find(key);
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error != std::errc{} || end != key.data() + key.size() || index >= at->items.size())
    return nullptr;
  return &at->items[index];
}

}  // namespace

double Parameter::nudged(double value, double step) const {
  for (const double other : {value * std::exp(step), value * std::exp(-step)}) {
    if (other >= lower && other <= upper) return other;
  }
  return upper / value > value / lower ? upper : lower;
}

std::vector<Parameter> find_parameters(const Json& document, const ParameterQuestion& question) {
  return Finder(document, question).run();
}

Json parameter_value(ParameterUnit unit, double value) {
  switch (unit) {
    case ParameterUnit::time:
      return Json(to_exact_text(time_from_seconds(value)));
    case ParameterUnit::bandwidth:
      return Json(to_exact_text(Bandwidth{std::llround(value)}));
    case ParameterUnit::share:
      return Json(value);
  }
  return {};
}

std::string parameter_text(ParameterUnit unit, double value) {
  switch (unit) {
    case ParameterUnit::time:
      return fmt::format("{:.4g} us", value * 1e6);
    case ParameterUnit::bandwidth:
      return fmt::format("{:.4g} GB/s", value / 8e9);
    case ParameterUnit::share:
      return fmt::format("{:.4g}", value);
  }
  return {};
}

Json parameter_short(ParameterUnit unit, double value) {
  switch (unit) {
    case ParameterUnit::time:
      return Json(fmt::format("{:.6g} us", value * 1e6));
    case ParameterUnit::bandwidth:
      return Json(fmt::format("{:.6g} GB/s", value / 8e9));
    case ParameterUnit::share:
      return Json(value);
  }
  return {};
}

double parameter_number(ParameterUnit unit, const Json& value) {
  switch (unit) {
    case ParameterUnit::time:
      return seconds(value);
    case ParameterUnit::bandwidth:
      return bits(value);
    case ParameterUnit::share:
      return value.is_number() ? value.number : 0;
  }
  return 0;
}

bool set_value(Json& document, const std::string& pointer, Json value) {
  const auto path = parse_pointer(pointer);
  if (!path || path->empty()) return false;
  Json* at = &document;
  for (std::size_t i = 0; i + 1 < path->size(); ++i) {
    at = const_cast<Json*>(step_into(at, (*path)[i]));
    if (at == nullptr) return false;
  }
  if (at->is_object()) {
    at->set(path->back(), std::move(value));
    return true;
  }
  Json* item = at->is_array() ? const_cast<Json*>(step_into(at, path->back())) : nullptr;
  if (item == nullptr) return false;
  *item = std::move(value);
  return true;
}

const Json* find_value(const Json& document, const std::string& pointer) {
  const auto path = parse_pointer(pointer);
  if (!path) return nullptr;
  const Json* at = &document;
  for (const std::string& key : *path) {
    at = step_into(at, key);
    if (at == nullptr) return nullptr;
  }
  return at;
}

std::optional<Place> nearest_place(const Json& document, const std::string& pointer) {
  for (std::string some = pointer;; some = some.substr(0, some.rfind('/'))) {
    if (const Json* value = find_value(document, some); value != nullptr && value->place.line > 0)
      return value->place;
    if (some.empty()) return std::nullopt;
  }
}

std::string source_of(const Json& document, const std::string& pointer) {
  const auto path = parse_pointer(pointer);
  if (!path) return {};
  std::string out;
  const Json* at = &document;
  for (std::size_t i = 0; i < path->size() && at != nullptr; ++i) {
    if (const Json* sources = at->find("sources"); sources != nullptr && sources->is_object()) {
      std::string rest;
      for (std::size_t k = i; k < path->size(); ++k) rest += "/" + json_pointer_escape((*path)[k]);
      const JsonMember* best = nullptr;
      for (const JsonMember& member : sources->members) {
        const bool covers = rest.starts_with(member.key) &&
                            (rest.size() == member.key.size() || rest[member.key.size()] == '/');
        if (covers && (best == nullptr || member.key.size() > best->key.size())) best = &member;
      }
      if (best != nullptr) out = best->value.text;
      if (best != nullptr && best->key == rest) return out;  // said of this very value
    }
    at = step_into(at, (*path)[i]);
  }
  return out;
}

}  // namespace weft
