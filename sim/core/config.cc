// SPDX-License-Identifier: Apache-2.0
#include "sim/core/config.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "sim/core/loader.hpp"
#include "sim/core/text.hpp"

namespace weft::config_detail {
namespace {

constexpr const char* kNumber = R"(^[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)? ?)";

template <class T, class Parse>
bool read_scalar(const Json& json, const std::string& pointer, T& out, Diagnostics& diagnostics,
                 Parse parse) {
  const Scalar& scalar = scalar_of(static_cast<const T*>(nullptr));
  if (json.is_string()) {
    if (const auto value = parse(json.text)) {
      out = *value;
      return true;
    }
    diagnostics.error(json.place, pointer, fmt::format("\"{}\" is not {}", json.text, scalar.what),
                      std::string(scalar.cure));
  } else if (json.is_number()) {
    diagnostics.error(json.place, pointer,
                      fmt::format("{} has no unit, {} is needed", json.number, scalar.what),
                      std::string(scalar.cure));
  } else {
    diagnostics.error(json.place, pointer,
                      fmt::format("{} where {} is needed", json.kind_name(), scalar.what),
                      std::string(scalar.cure));
  }
  return false;
}

// How a value of this kind is written.
std::string example_of(std::string_view wanted) {
  constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
      {"a number", "write it without quotes, e.g. 0.5"},
      {"a whole number", "write it without quotes and fraction, e.g. 8"},
      {"true or false", "write true or false, without quotes"},
      {"a string", "write text in double quotes"},
      {"an array", "write [...]"},
      {"an object", "write {...}"},
  };
  for (const auto& [name, example] : kExamples) {
    if (name == wanted) return std::string(example);
  }
  return {};
}

std::string pattern(const char* units) { return fmt::format("{}({})$", kNumber, units); }

}  // namespace

const Scalar& scalar_of(const Time*) {
  static const Scalar s{"a time", "write a number and a unit, e.g. \"500 ns\" or \"1.5 ms\"",
                        pattern("ps|ns|us|ms|s|min|h")};
  return s;
}
const Scalar& scalar_of(const Bytes*) {
  static const Scalar s{
      "a size", "write a number and a unit, e.g. \"4 MiB\" (2^20 bytes) or \"4 MB\" (10^6 bytes)",
      pattern("[KMGTP]?B|[KMGTP]iB")};
  return s;
}
const Scalar& scalar_of(const Bandwidth*) {
  static const Scalar s{
      "a bandwidth",
      "write a number and a unit, e.g. \"400 Gb/s\" (bits) or \"50 GB/s\" (bytes), per direction",
      pattern("([KMGT]i?)?[bB]/s")};
  return s;
}
const Scalar& scalar_of(const FlopRate*) {
  static const Scalar s{"a compute rate", "write e.g. \"312 TFLOP/s\" (dense)",
                        pattern("[KMGTPE]?FLOP/s")};
  return s;
}
const Scalar& scalar_of(const Power*) {
  static const Scalar s{"a power", "write e.g. \"700 W\"", pattern("[kM]?W")};
  return s;
}
const Scalar& scalar_of(const Frequency*) {
  static const Scalar s{"a frequency", "write e.g. \"1410 MHz\"", pattern("[kMG]?Hz")};
  return s;
}
const Scalar& scalar_of(const Rate*) {
  static const Scalar s{"a rate", "write e.g. \"5 /s\" or \"200 M/s\"", pattern("[KMG]?/s")};
  return s;
}

std::string child(const std::string& pointer, std::string_view key) {
  return pointer + "/" + json_pointer_escape(key);
}
std::string child(const std::string& pointer, std::size_t index) {
  return fmt::format("{}/{}", pointer, index);
}

bool read(const Json& j, const std::string& p, Time& out, Diagnostics& d) {
  return read_scalar(j, p, out, d, parse_time);
}
bool read(const Json& j, const std::string& p, Bytes& out, Diagnostics& d) {
  return read_scalar(j, p, out, d, parse_bytes);
}
bool read(const Json& j, const std::string& p, Bandwidth& out, Diagnostics& d) {
  return read_scalar(j, p, out, d, parse_bandwidth);
}
bool read(const Json& j, const std::string& p, FlopRate& out, Diagnostics& d) {
  return read_scalar(j, p, out, d, parse_flop_rate);
}
bool read(const Json& j, const std::string& p, Power& out, Diagnostics& d) {
  return read_scalar(j, p, out, d, parse_power);
}
bool read(const Json& j, const std::string& p, Frequency& out, Diagnostics& d) {
  return read_scalar(j, p, out, d, parse_frequency);
}
bool read(const Json& j, const std::string& p, Rate& out, Diagnostics& d) {
  return read_scalar(j, p, out, d, parse_rate);
}

bool read(const Json& json, const std::string& pointer, double& out, Diagnostics& d) {
  if (!json.is_number() || !std::isfinite(json.number)) {
    wrong_kind(json, pointer, "a number", d);
    return false;
  }
  out = json.number;
  return true;
}

bool read(const Json& json, const std::string& pointer, std::int64_t& out, Diagnostics& d) {
  constexpr double kExact =
      9007199254740992.0;  // 2^53: doubles above it are not all whole numbers of their own
  if (json.kind == Json::Kind::number && std::abs(json.number) > kExact) {
    d.error(json.place, pointer, fmt::format("{} is too large for a whole number", json.number),
            fmt::format("at most {}", std::numeric_limits<std::int64_t>::max()));
    return false;
  }
  if (json.kind == Json::Kind::integer) {
    out = json.integer;
    return true;
  }
  if (json.kind == Json::Kind::number && std::floor(json.number) == json.number &&
      std::abs(json.number) <= kExact) {
    out = static_cast<std::int64_t>(json.number);
    return true;
  }
  wrong_kind(json, pointer, "a whole number", d);
  return false;
}

bool read(const Json& json, const std::string& pointer, bool& out, Diagnostics& d) {
  if (json.kind != Json::Kind::boolean) {
    wrong_kind(json, pointer, "true or false", d);
    return false;
  }
  out = json.boolean;
  return true;
}

bool read(const Json& json, const std::string& pointer, std::string& out, Diagnostics& d) {
  if (!json.is_string()) {
    wrong_kind(json, pointer, "a string", d);
    return false;
  }
  out = json.text;
  return true;
}

bool read(const Json& json, const std::string&, Json& out, Diagnostics&) {
  out = json;
  return true;
}

void wrong_kind(const Json& json, const std::string& pointer, std::string_view wanted,
                Diagnostics& d) {
  std::string shown{json.kind_name()};
  if (json.is_number()) shown = fmt::format("{}", json.number);
  if (json.is_string()) shown = fmt::format("\"{}\"", json.text.substr(0, 80));
  d.error(json.place, pointer, fmt::format("{} where {} is needed", shown, wanted),
          example_of(wanted));
}

void bad_choice(const Json& json, const std::string& pointer, const std::vector<std::string>& names,
                Diagnostics& d) {
  if (!json.is_string()) {
    const std::string shown =
        json.is_number() ? fmt::format("{}", json.number) : std::string(json.kind_name());
    d.error(json.place, pointer, fmt::format("{} where a word is needed", shown),
            "one of " + join(names, ", "));
    return;
  }
  d.error(json.place, pointer,
          fmt::format("\"{}\" is not known here{}", json.text, did_you_mean(json.text, names)),
          "one of " + join(names, ", "));
}

void unknown_keys(const Json& object, const std::string& pointer,
                  const std::vector<std::string>& known, Diagnostics& d) {
  for (const JsonMember& member : object.members) {
    if (std::ranges::find(known, member.key) != known.end()) continue;
    const auto nearest = nearest_name(member.key, known);
    d.error(member.place, child(pointer, member.key),
            nearest ? fmt::format("unknown key, did you mean \"{}\"?", *nearest) : "unknown key",
            nearest ? std::string{} : "known keys: " + join(known, ", "));
  }
}

void missing_key(const Json& object, const std::string& pointer, std::string_view key,
                 std::string_view doc, Diagnostics& d) {
  d.error(object.place, pointer, fmt::format("the key \"{}\" is missing", key), std::string(doc));
}

void not_yet(const JsonMember& member, const std::string& pointer, std::string_view what,
             Diagnostics& d) {
  d.error(member.place, pointer, fmt::format("not yet: {}", what),
          "remove the key; this version cannot honour it");
}

void check_positive(const Json& json, const std::string& pointer, double value, Diagnostics& d) {
  if (value > 0) return;
  d.error(json.place, pointer, "must be greater than zero",
          "leave the key out where there is none");
}

void check_range(const Json& json, const std::string& pointer, double value, Range range,
                 Diagnostics& d) {
  if (value >= range.low && value <= range.high) return;
  d.error(json.place, pointer, fmt::format("{} is outside {} to {}", value, range.low, range.high),
          fmt::format("write a number from {} to {}", range.low, range.high));
}

void check_not_empty(const Json& json, const std::string& pointer, std::size_t size,
                     Diagnostics& d) {
  if (size > 0) return;
  d.error(json.place, pointer, "must not be empty", "write at least one, or leave the key out");
}

void report_too_much(const Json& json, const std::string& pointer, std::string_view most,
                     Diagnostics& d) {
  d.error(json.place, pointer, fmt::format("\"{}\" is more than {}", json.text, most),
          "check the unit");
}

Json write(Time v) { return to_exact_text(v); }
Json write(Bytes v) { return to_exact_text(v); }
Json write(Bandwidth v) { return to_exact_text(v); }
Json write(FlopRate v) { return fmt::format("{} FLOP/s", v.per_s); }
Json write(Power v) { return fmt::format("{} W", v.watts); }
Json write(Frequency v) { return fmt::format("{} Hz", v.hz); }
Json write(Rate v) { return fmt::format("{} /s", v.per_s); }

Json schema_type(std::string_view type) {
  Json out = Json::object();
  out.set("type", type);
  return out;
}

Json schema_scalar(const Scalar& scalar) {
  Json out = schema_type("string");
  out.set("pattern", scalar.pattern);
  return out;
}

Json schema_choice(const std::vector<std::string>& names) {
  Json out = Json::object();
  Json& choices = out.set("enum", Json::array());
  for (const std::string& name : names) choices.push(name);
  return out;
}

void schema_constraint(Json& property, Positive) {
  const Json* type = property.find("type");
  if (type != nullptr && (type->text == "integer" || type->text == "number"))
    property.set("exclusiveMinimum", 0);
}

void schema_constraint(Json& property, Range range) {
  property.set("minimum", range.low);
  property.set("maximum", range.high);
}

void schema_constraint(Json& property, NotEmpty) {
  const Json* type = property.find("type");
  if (type == nullptr) return;
  const std::string name = type->text;  // set() moves what `type` points to
  if (name == "array") property.set("minItems", 1);
  if (name == "string") property.set("minLength", 1);
  if (name == "object") property.set("minProperties", 1);
}

Json or_component(std::string_view field, Json schema) {
  if (component_kinds(field).empty()) return schema;
  Json use = schema_type("object");
  Json& properties = use.set("properties", Json::object());
  properties.set("use", schema_type("string"));
  properties.set("set", schema_type("object"));
  Json& needed = use.set("required", Json::array());
  needed.push("use");
  use.set("additionalProperties", false);
  Json out = Json::object();
  Json& choices = out.set("anyOf", Json::array());
  choices.push(schema_type("string"));
  choices.push(std::move(use));
  choices.push(std::move(schema));
  return out;
}

}  // namespace weft::config_detail
