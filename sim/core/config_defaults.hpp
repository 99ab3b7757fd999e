// SPDX-License-Identifier: Apache-2.0
// The JSON Schema of a parameter set with the default of every key, as the struct has it:
//
//   schema_with_defaults<DcqcnParams>()    ... "gain": {"type": "number", ..., "default": 0.00390625}
//
// A key has no default when it is required, when absence means something of its own (std::optional, lists, maps) and when its
// struct's value is one that a file may not say (a generation of 0), which stands for "not given".
// Apart from config.hpp because only what writes schemas needs it.
#pragma once

#include "sim/core/config.hpp"

namespace weft {

template <class T>
void add_defaults(Json& schema);

namespace config_detail {

// As people write it ("55 us", not "55000000 ps"), where that is exact.
template <class T>
Json default_text(const T& value) {
  if constexpr (requires { scalar_of(&value); }) {
    const Json text(to_text(value));
    T back{};
    Diagnostics trial;
    if (read(text, {}, back, trial) && back == value) return text;
  }
  return write_config(value);
}

class DefaultsWriter {
 public:
  explicit DefaultsWriter(Json& schema) : properties_(schema.find("properties")) {}

  template <class T, class... Constraints>
  void operator()(std::string_view name, T& field, std::string_view, Constraints... constraints) {
    Json* property = properties_ != nullptr ? properties_->find(name) : nullptr;
    if (property == nullptr) return;
    // Where a component of the catalogue may stand, the last choice is the object itself.
    Json* choices = property->find("anyOf");
    Json& own = choices != nullptr ? choices->items.back() : *property;
    if constexpr (Visitable<T>) {
      DefaultsWriter below(own);
      field.visit(below);
    } else if constexpr (IsOptional<T>::value || IsVector<T>::value || IsMap<T>::value) {
      add_defaults<T>(own);
    } else if constexpr (!std::is_same_v<T, Json> &&
                         !(std::is_same_v<Constraints, Required> || ...)) {
      bool said = (obeys(field, constraints) && ...);
      if constexpr (std::is_same_v<T, std::string>) said = said && !field.empty();
      if (said) property->set("default", default_text(field));
    }
  }

 private:
  Json* properties_;
};

}  // namespace config_detail

template <class T>
void add_defaults(Json& schema) {
  using namespace config_detail;
  if constexpr (IsOptional<T>::value) {
    add_defaults<typename T::value_type>(schema);
  } else if constexpr (IsVector<T>::value) {
    if (Json* items = schema.find("items")) add_defaults<typename T::value_type>(*items);
  } else if constexpr (IsMap<T>::value) {
    if (Json* values = schema.find("additionalProperties"))
      add_defaults<typename T::mapped_type>(*values);
  } else if constexpr (Visitable<T>) {
    T value{};
    DefaultsWriter writer(schema);
    value.visit(writer);
  }
}

template <class T>
Json schema_with_defaults() {
  Json schema = schema_of<T>();
  add_defaults<T>(schema);
  return schema;
}

}  // namespace weft
