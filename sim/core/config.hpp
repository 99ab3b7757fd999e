// SPDX-License-Identifier: Apache-2.0
// A parameter set is a struct with defaults that names its fields once; reading, writing, the JSON Schema and the reference
// pages all come from that one function:
//
//   struct DcqcnParams {
//     Bandwidth additive_step = 40_Mbps;
//     double gain = 1.0 / 256;
//     template <class V> void visit(V&& v) {
//       v("additive_step", additive_step, "rate added per recovery round", positive);
//       v("gain", gain, "weight of a fresh mark in the estimate", between(0, 1));
//     }
//   };
//
// A field may be Time, Bytes, Bandwidth, FlopRate, Power, Frequency, Rate (text with a unit), double or an integer (a bare
// count or ratio), bool, std::string, Json (kept as it is), an enum with `enum_names`, a struct with visit, and
// std::optional, std::vector or std::map<std::string, ...> of those. An absent key leaves the default; an unknown key is an
// error with the nearest name; every problem is reported before the reader gives up.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/core/json.hpp"
#include "sim/core/units.hpp"

namespace weft {

// ---- constraints, written after the doc text of a field

struct Required {};  // the key must be present
struct Positive {};  // > 0
struct NotEmpty {};  // a string, array or map with something in it
struct Range {
  double low, high;
};  // low <= value <= high
template <class T>
struct AtMost {
  T most;
};  // a quantity that is still plausible and adds up without overflow
struct NotYet {
  std::string_view what;
};  // the key is part of the format but its feature does not exist yet

inline constexpr Required required{};
inline constexpr Positive positive{};
inline constexpr NotEmpty not_empty{};
constexpr Range between(double low, double high) { return {low, high}; }
template <class T>
constexpr AtMost<T> at_most(T most) {
  return {most};
}

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

namespace config_detail {
struct AnyVisitor {
  template <class... Args>
  void operator()(Args&&...) {}
};
}  // namespace config_detail

template <class T>
concept Visitable = requires(T& t, config_detail::AnyVisitor& v) {
  t.visit(v);
};

namespace config_detail {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

// What a scalar is called in messages and in the schema.
struct Scalar {
  std::string_view what;  // "a bandwidth"
  std::string_view cure;  // how to write it
  std::string pattern;    // regular expression of the text, for the schema; empty for numbers
};
const Scalar& scalar_of(const Time*);
const Scalar& scalar_of(const Bytes*);
const Scalar& scalar_of(const Bandwidth*);
const Scalar& scalar_of(const FlopRate*);
const Scalar& scalar_of(const Power*);
const Scalar& scalar_of(const Frequency*);
const Scalar& scalar_of(const Rate*);

std::string child(const std::string& pointer, std::string_view key);
std::string child(const std::string& pointer, std::size_t index);

// Parse one scalar; on failure report and return false.
bool read(const Json&, const std::string& pointer, Time&, Diagnostics&);
bool read(const Json&, const std::string& pointer, Bytes&, Diagnostics&);
bool read(const Json&, const std::string& pointer, Bandwidth&, Diagnostics&);
bool read(const Json&, const std::string& pointer, FlopRate&, Diagnostics&);
bool read(const Json&, const std::string& pointer, Power&, Diagnostics&);
bool read(const Json&, const std::string& pointer, Frequency&, Diagnostics&);
bool read(const Json&, const std::string& pointer, Rate&, Diagnostics&);
bool read(const Json&, const std::string& pointer, double&, Diagnostics&);
bool read(const Json&, const std::string& pointer, std::int64_t&, Diagnostics&);
bool read(const Json&, const std::string& pointer, bool&, Diagnostics&);
bool read(const Json&, const std::string& pointer, std::string&, Diagnostics&);
bool read(const Json&, const std::string& pointer, Json&, Diagnostics&);

void wrong_kind(const Json&, const std::string& pointer, std::string_view wanted, Diagnostics&);
void bad_choice(const Json&, const std::string& pointer, const std::vector<std::string>& names,
                Diagnostics&);
void unknown_keys(const Json& object, const std::string& pointer,
                  const std::vector<std::string>& known, Diagnostics&);
void missing_key(const Json& object, const std::string& pointer, std::string_view key,
                 std::string_view doc, Diagnostics&);
void not_yet(const JsonMember& member, const std::string& pointer, std::string_view what,
             Diagnostics&);

// Checks of one value against the constraints, on its numeric size in base units.
void check_positive(const Json&, const std::string& pointer, double value, Diagnostics&);
void check_range(const Json&, const std::string& pointer, double value, Range range, Diagnostics&);
void check_not_empty(const Json&, const std::string& pointer, std::size_t size, Diagnostics&);
void report_too_much(const Json&, const std::string& pointer, std::string_view most, Diagnostics&);

inline double size_of(Time v) { return static_cast<double>(v.ps); }
inline double size_of(Bytes v) { return v.value(); }
inline double size_of(Bandwidth v) { return static_cast<double>(v.bps); }
inline double size_of(FlopRate v) { return v.per_s; }
inline double size_of(Power v) { return v.watts; }
inline double size_of(Frequency v) { return v.hz; }
inline double size_of(Rate v) { return v.per_s; }
inline double size_of(double v) { return v; }
template <class I>
requires std::is_integral_v<I>
double size_of(I v) { return static_cast<double>(v); }
template <class T>
double size_of(const std::optional<T>& v) {
  return v ? size_of(*v) : 1.0;
}

Json write(Time);
Json write(Bytes);
Json write(Bandwidth);
Json write(FlopRate);
Json write(Power);
Json write(Frequency);
Json write(Rate);
inline Json write(const Json& v) { return v; }
inline Json write(const std::string& v) { return v; }
inline Json write(bool v) { return v; }
inline Json write(double v) { return v; }

}  // namespace config_detail

// ---- reading

// Reads `json` into `out`; `pointer` is the place of `json` in the whole document, for messages.
template <class T>
void read_config(const Json& json, const std::string& pointer, T& out, Diagnostics& diagnostics);

namespace config_detail {

class ObjectReader {
 public:
  ObjectReader(const Json& object, const std::string& pointer, Diagnostics& out)
      : object_(object), pointer_(pointer), out_(out) {}

  template <class T, class... Constraints>
  void operator()(std::string_view name, T& field, std::string_view doc,
                  Constraints... constraints) {
    known_.emplace_back(name);
    const Json* value = object_.find(name);
    if (value == nullptr) {
      if constexpr ((std::is_same_v<Constraints, Required> || ...))
        missing_key(object_, pointer_, name, doc, out_);
      return;
    }
    if constexpr ((std::is_same_v<Constraints, NotYet> || ...)) {
      for (const JsonMember& member : object_.members) {
        if (member.key == name) (refuse(member, constraints), ...);
      }
      return;
    }
    const std::string here = child(pointer_, name);
    const std::size_t before = out_.error_count();
    read_config(*value, here, field, out_);
    if (out_.error_count() == before) (check(*value, here, field, constraints), ...);
  }

  void finish() { unknown_keys(object_, pointer_, known_, out_); }

 private:
  template <class T>
  void check(const Json&, const std::string&, const T&, Required) {}
  template <class T>
  void check(const Json&, const std::string&, const T&, NotYet) {}
  template <class T>
  void check(const Json& j, const std::string& p, const T& v, Positive) {
    check_positive(j, p, size_of(v), out_);
  }
  template <class T>
  void check(const Json& j, const std::string& p, const T& v, Range r) {
    check_range(j, p, size_of(v), r, out_);
  }
  template <class T>
  void check(const Json& j, const std::string& p, const T& v, NotEmpty) {
    check_not_empty(j, p, v.size(), out_);
  }
  template <class T, class U>
  void check(const Json& j, const std::string& p, const T& v, AtMost<U> c) {
    if (size_of(v) > size_of(c.most)) report_too_much(j, p, to_text(c.most), out_);
  }
  template <class C>
  void refuse(const JsonMember&, C) {}
  void refuse(const JsonMember& member, NotYet c) {
    not_yet(member, child(pointer_, member.key), c.what, out_);
  }

  const Json& object_;
  const std::string& pointer_;
  Diagnostics& out_;
  std::vector<std::string> known_;
};

}  // namespace config_detail

template <class T>
void read_config(const Json& json, const std::string& pointer, T& out, Diagnostics& diagnostics) {
  using namespace config_detail;
  if constexpr (IsOptional<T>::value) {
    out.emplace();
    read_config(json, pointer, *out, diagnostics);
  } else if constexpr (IsVector<T>::value) {
    if (!json.is_array()) return wrong_kind(json, pointer, "an array", diagnostics);
    out.clear();
    out.reserve(json.items.size());
    for (std::size_t i = 0; i < json.items.size(); ++i) {
      out.emplace_back();
      read_config(json.items[i], child(pointer, i), out.back(), diagnostics);
    }
  } else if constexpr (IsMap<T>::value) {
    if (!json.is_object()) return wrong_kind(json, pointer, "an object", diagnostics);
    out.clear();
    for (const JsonMember& member : json.members) {
      read_config(member.value, child(pointer, member.key), out[member.key], diagnostics);
    }
  } else if constexpr (std::is_enum_v<T>) {
    const auto names = enum_names(T{});
    for (const auto& entry : names) {
      if (json.is_string() && json.text == entry.name) {
        out = entry.value;
        return;
      }
    }
    std::vector<std::string> choices;
    for (const auto& entry : names) choices.emplace_back(entry.name);
    bad_choice(json, pointer, choices, diagnostics);
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    std::int64_t wide = 0;
    if (!read(json, pointer, wide, diagnostics)) return;
    if (!std::in_range<T>(wide)) {
      constexpr auto low = static_cast<double>(std::numeric_limits<T>::min()),
                     high = static_cast<double>(std::numeric_limits<T>::max());
      return check_range(json, pointer, json.number, {low, high}, diagnostics);
    }
    out = static_cast<T>(wide);
  } else if constexpr (Visitable<T>) {
    if (!json.is_object()) return wrong_kind(json, pointer, "an object", diagnostics);
    ObjectReader reader(json, pointer, diagnostics);
    out.visit(reader);
    if constexpr (requires { out.place = json.place; }) out.place = json.place;
    if constexpr (requires { out.pointer = pointer; }) out.pointer = pointer;
    reader.finish();
  } else {
    read(json, pointer, out, diagnostics);
  }
}

// ---- writing

template <class T>
Json write_config(const T& value);

namespace config_detail {
template <class T, class C>
bool obeys(const T&, C) {
  return true;
}
template <class T>
bool obeys(const T& v, Positive) {
  return size_of(v) > 0;
}
template <class T>
bool obeys(const T& v, Range r) {
  return size_of(v) >= r.low && size_of(v) <= r.high;
}
template <class T>
bool obeys(const T& v, NotEmpty) {
  return !v.empty();
}

// A default that its own constraints forbid stands for "not given" (a generation of 0) and is left out.
class ObjectWriter {
 public:
  template <class T, class... Constraints>
  void operator()(std::string_view name, T& field, std::string_view, Constraints... constraints) {
    if constexpr (IsOptional<T>::value) {
      if (field) object.set(name, write_config(*field));
    } else if constexpr (!(std::is_same_v<Constraints, NotYet> || ...)) {
      if ((obeys(field, constraints) && ...)) object.set(name, write_config(field));
    }
  }
  Json object = Json::object();
};
}  // namespace config_detail

// The effective value, defaults included, in the form that read_config reads back to the same.
template <class T>
Json write_config(const T& value) {
  using namespace config_detail;
  if constexpr (IsVector<T>::value) {
    Json out = Json::array();
    for (const auto& item : value) out.push(write_config(item));
    return out;
  } else if constexpr (IsMap<T>::value) {
    Json out = Json::object();
    for (const auto& [key, item] : value) out.set(key, write_config(item));
    return out;
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& entry : enum_names(T{})) {
      if (entry.value == value) return Json(entry.name);
    }
    return {};
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return Json(static_cast<std::int64_t>(value));
  } else if constexpr (Visitable<T>) {
    ObjectWriter writer;
    const_cast<T&>(value).visit(writer);  // visit only hands out the fields
    return std::move(writer.object);
  } else {
    return write(value);
  }
}

// ---- JSON Schema (draft 2020-12)

template <class T>
Json schema_of();

namespace config_detail {
Json schema_scalar(const Scalar&);
Json schema_type(std::string_view type);
Json schema_choice(const std::vector<std::string>& names);
void schema_constraint(Json& property, Positive);
void schema_constraint(Json& property, Range);
void schema_constraint(Json& property, NotEmpty);
inline void schema_constraint(Json&, Required) {}
inline void schema_constraint(Json&, NotYet) {}
template <class T>
void schema_constraint(Json&, AtMost<T>) {}
// A field under this name may also be the name of a component of the catalogue, or {"use", "set"}.
Json or_component(std::string_view field, Json schema);

class SchemaWriter {
 public:
  template <class T, class... Constraints>
  void operator()(std::string_view name, T&, std::string_view doc, Constraints... constraints) {
    if constexpr ((std::is_same_v<Constraints, NotYet> || ...)) return;
    Json property = schema_of<T>();
    (schema_constraint(property, constraints), ...);
    property = or_component(name, std::move(property));
    property.set("description", doc);
    properties.set(name, std::move(property));
    if constexpr ((std::is_same_v<Constraints, Required> || ...)) required_keys.push(name);
  }
  Json properties = Json::object();
  Json required_keys = Json::array();
};
}  // namespace config_detail

template <class T>
Json schema_of() {
  using namespace config_detail;
  if constexpr (IsOptional<T>::value) {
    return schema_of<typename T::value_type>();
  } else if constexpr (IsVector<T>::value) {
    Json out = schema_type("array");
    out.set("items", schema_of<typename T::value_type>());
    return out;
  } else if constexpr (IsMap<T>::value) {
    Json out = schema_type("object");
    out.set("additionalProperties", schema_of<typename T::mapped_type>());
    return out;
  } else if constexpr (std::is_enum_v<T>) {
    std::vector<std::string> names;
    for (const auto& entry : enum_names(T{})) names.emplace_back(entry.name);
    return schema_choice(names);
  } else if constexpr (std::is_same_v<T, bool>) {
    return schema_type("boolean");
  } else if constexpr (std::is_integral_v<T>) {
    return schema_type("integer");
  } else if constexpr (std::is_same_v<T, double>) {
    return schema_type("number");
  } else if constexpr (std::is_same_v<T, std::string>) {
    return schema_type("string");
  } else if constexpr (std::is_same_v<T, Json>) {
    return Json::object();
  } else if constexpr (Visitable<T>) {
    T value{};
    SchemaWriter writer;
    value.visit(writer);
    Json out = schema_type("object");
    out.set("properties", std::move(writer.properties));
    if (!writer.required_keys.items.empty()) out.set("required", std::move(writer.required_keys));
    out.set("additionalProperties", false);
    return out;
  } else {
    return schema_scalar(scalar_of(static_cast<const T*>(nullptr)));
  }
}

}  // namespace weft
