// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/schema.hpp"

#include <fmt/format.h>

#include "calibrate/measurement.hpp"
#include "calibrate/validate_case.hpp"
#include "sim/core/config_defaults.hpp"
#include "sim/fabric/spec.hpp"
#include "sim/run/llm_spec.hpp"
#include "sim/run/scenario.hpp"
#include "tools/sweep/sweep.hpp"

namespace weft {
namespace {

// The keys of a fabric file as read_fabric takes them; a test compares the two.
struct FabricKeys : ComponentHead {
  std::int64_t servers = 1;
  Json server;
  std::optional<NetworkSpec> network;
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("servers", servers, "number of servers", between(1, 1'000'000));
    v("server", server, "a server of the catalogue, or an array of {count, server}", required);
    v("network", network, "what joins the servers; none for one server");
  }
};

Json reference(std::string_view name) {
  Json out = Json::object();
  out.set("$ref", fmt::format("#/$defs/{}", name));
  return out;
}

// The schema of a whole file: `body` with the head's keys required and `kind` fixed.
std::string file_schema(std::string_view kind, Json body, Json definitions = {}) {
  Json out = Json::object();
  out.set("$schema", "https://json-schema.org/draft/2020-12/schema");
  out.set("$id", fmt::format("{}.schema.json", kind));
  out.set("title", fmt::format("weft {}", kind));
  out.set("type", "object");

  Json properties = *body.find("properties");
  Json fixed = Json::object();
  fixed.set("const", kind);
  properties.set("kind", std::move(fixed));
  properties.find("name")->set("pattern", "^[a-z0-9][a-z0-9.+-]*$");
  Json* sources = properties.find("sources");
  sources->find("additionalProperties")->set("pattern", "^(measured|datasheet|assumed): ");
  Json pointers = Json::object();
  pointers.set("pattern", "^(/|$)");
  sources->set("propertyNames", std::move(pointers));
  out.set("properties", std::move(properties));

  Json needed = Json::array();
  for (const char* key : {"weft", "kind", "name", "summary", "sources"}) needed.push(key);
  if (const Json* own = body.find("required")) {
    for (const Json& key : own->items) needed.push(key);
  }
  out.set("required", std::move(needed));
  out.set("additionalProperties", false);
  if (definitions.is_object()) out.set("$defs", std::move(definitions));
  return to_text(out) + "\n";
}

std::string fabric_schema() {
  Json group = schema_with_defaults<ServerGroup>();
  Json& server = *group.find("properties")->find("server");
  Json definitions = Json::object();
  definitions.set("server", std::move(server));
  server = reference("server");
  definitions.set("group", std::move(group));

  Json groups = Json::object();
  groups.set("type", "array");
  groups.set("minItems", 1);
  groups.set("items", reference("group"));
  Json choices = Json::array();
  choices.push(reference("server"));
  choices.push(std::move(groups));
  Json body = schema_with_defaults<FabricKeys>();
  Json& field = *body.find("properties")->find("server");
  const Json description = *field.find("description");
  field = Json::object();
  field.set("anyOf", std::move(choices));
  field.set("description", description);
  return file_schema("fabric", std::move(body), std::move(definitions));
}

// Scenarios and datasets of validation records have no kind: their keys tell. A sweep has its own way to say it.
std::string whole_schema(std::string_view name, std::string_view title, const Json& body) {
  Json out = Json::object();
  out.set("$schema", "https://json-schema.org/draft/2020-12/schema");
  out.set("$id", fmt::format("{}.schema.json", name));
  out.set("title", title);
  for (const JsonMember& member : body.members) out.set(member.key, member.value);
  return to_text(out) + "\n";
}

}  // namespace

std::map<std::string, std::string> schema_files() {
  return {
      {"gpu.schema.json", file_schema("gpu", schema_with_defaults<GpuSpec>())},
      {"kernels.schema.json", file_schema("kernels", schema_with_defaults<KernelsSpec>())},
      {"compute.schema.json", file_schema("compute", schema_with_defaults<ComputeSpec>())},
      {"proxy.schema.json", file_schema("proxy", schema_with_defaults<ProxySpec>())},
      {"nic.schema.json", file_schema("nic", schema_with_defaults<NicSpec>())},
      {"switch.schema.json", file_schema("switch", schema_with_defaults<SwitchSpec>())},
      {"link.schema.json", file_schema("link", schema_with_defaults<LinkSpec>())},
      {"server.schema.json", file_schema("server", schema_with_defaults<ServerSpec>())},
      {"fabric.schema.json", fabric_schema()},
      {"llm.schema.json", file_schema("llm", schema_with_defaults<LlmSpec>())},
      {"scenario.schema.json", whole_schema("scenario", "weft scenario", scenario_schema())},
      {"sweep.schema.json", whole_schema("sweep", "weft sweep", sweep_schema())},
      {"measurement.schema.json", file_schema("measurement", schema_with_defaults<Measurement>())},
      {"validation.schema.json",
       whole_schema("validation", "weft validation records", validation_schema())},
  };
}

}  // namespace weft
