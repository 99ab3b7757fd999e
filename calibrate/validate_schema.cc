// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_case.hpp"
#include "sim/core/config_defaults.hpp"

namespace weft {
namespace {

Json described(Json schema, std::string_view text) {
  schema.set("description", text);
  return schema;
}

Json array_of(Json items) {
  Json out = config_detail::schema_type("array");
  out.set("items", std::move(items));
  return out;
}

Json fixed(std::string_view word) {
  Json out = Json::object();
  out.set("const", word);
  return out;
}

Json any_of(std::initializer_list<Json> choices) {
  Json list = Json::array();
  for (const Json& choice : choices) list.push(choice);
  Json out = Json::object();
  out.set("anyOf", std::move(list));
  return out;
}

template <class Case>
Json case_schema(std::string_view kind) {
  Json out = schema_with_defaults<Case>();
  Json& properties = *out.find("properties");
  properties.set("kind", fixed(kind));
  properties.set("set", described(config_detail::schema_type("object"),
                                  properties.find("set")->find("description")->text));
  return out;
}

Json p2p_schema() {
  Json out = case_schema<P2pCase>("p2p");
  Json& properties = *out.find("properties");
  const auto refine = [&](const char* key, Json schema) {
    properties.set(key,
                   described(std::move(schema), properties.find(key)->find("description")->text));
  };
  refine("via", any_of({schema_of<Via>(), array_of(schema_of<Via>())}));
  const Json end =
      any_of({config_detail::schema_type("string"), config_detail::schema_type("integer")});
  refine("pairs", any_of({fixed("all"), array_of(array_of(end))}));
  return out;
}

Json train_schema() {
  Json out = case_schema<TrainCase>("train");
  Json& properties = *out.find("properties");
  const std::string text = properties.find("model")->find("description")->text;
  properties.set("model", described(any_of({config_detail::schema_type("string"),
                                            config_detail::schema_type("object")}),
                                    text));
  return out;
}

Json roce_schema() {
  Json out = case_schema<RoceCase>("roce");
  Json& properties = *out.find("properties");
  const std::string text = properties.find("scenario")->find("description")->text;
  properties.set("scenario", described(any_of({config_detail::schema_type("string"),
                                               config_detail::schema_type("object")}),
                                       text));
  return out;
}

Json record_schema() {
  const Json text = config_detail::schema_type("string"),
             flag = config_detail::schema_type("boolean"),
             list = config_detail::schema_type("array");
  Json properties = Json::object();
  properties.set("id", described(text, "names the record; rows are id@row"));
  properties.set("set", described(text, "the set whose figures it counts in"));
  properties.set("weft", described(any_of({case_schema<NcclCase>("nccl"), p2p_schema(),
                                           train_schema(), roce_schema()}),
                                   "how to ask weft for the same"));
  properties.set("degraded", described(flag, "a set-up with a fault: shown, no target"));
  properties.set("held_out", described(flag, "its machine took no part in fitting"));
  properties.set("reason", described(text, "why weft is off, as far as is known"));
  properties.set("columns", described(array_of(text), "names of the columns, with their units"));
  properties.set("rows", described(array_of(list), "one array per row"));
  properties.set("matrix_row_src_col_dst",
                 described(array_of(list), "GB/s or us of pairs of GPUs"));
  properties.set("value", described(config_detail::schema_type("number"), "where there is one"));
  properties.set("unit", described(text, "of `value` and of columns that do not tell theirs"));
  Json out = config_detail::schema_type("object");
  out.set("properties", std::move(properties));
  Json needed = Json::array();
  for (const char* key : {"id", "weft"}) needed.push(key);
  out.set("required", std::move(needed));
  return out;
}

}  // namespace

Json validation_schema() {
  const Json text = config_detail::schema_type("string");
  Json properties = Json::object();
  properties.set("weft", described(schema_of<SchemaVersion>(), "the file format"));
  properties.set("kind", fixed("validation"));
  for (const char* key : {"file", "area", "name", "summary", "note"})
    properties.set(key, described(text, "for people"));
  properties.set("n_records", described(config_detail::schema_type("integer"), "for people"));
  properties.set("sets", described(array_of(schema_of<SetSpec>()), "what each set must reach"));
  properties.set("published", described(array_of(schema_of<PublishedError>()),
                                        "errors of other simulators, to be compared with"));
  properties.set("ratios", described(array_of(schema_of<RatioSpec>()),
                                     "throughputs of training runs beside each other"));
  properties.set("out_of_reach",
                 described(array_of(schema_of<OutOfReach>()), "what weft cannot replay, and why"));
  properties.set("records", described(array_of(record_schema()), "what was measured"));
  Json out = config_detail::schema_type("object");
  out.set("properties", std::move(properties));
  out.set("additionalProperties", false);
  return out;
}

}  // namespace weft
