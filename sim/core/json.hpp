// SPDX-License-Identifier: Apache-2.0
// JSON that remembers where each value was written, and keeps the order of keys. Used for reading files and for building the
// documents that weft writes.
//
// Refused while reading, each with its place: duplicate keys, NaN and other non-JSON, trailing text, nesting deeper than
// kMostDepth, numbers outside the range of double. Strings must be UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostics.hpp"

namespace weft {

struct JsonMember;

struct Json {
  enum class Kind { null, boolean, integer, number, string, array, object };
  static constexpr int kMostDepth = 64;

  Kind kind = Kind::null;
  bool boolean = false;
  std::int64_t integer = 0;  // valid for Kind::integer
  double number = 0;         // valid for Kind::integer and Kind::number
  std::string text;
  std::vector<Json> items;
  std::vector<JsonMember> members;
  Place place;

  Json();
  Json(bool v);
  Json(double v);
  Json(int v);
  Json(std::int64_t v);
  Json(std::uint32_t v);
  Json(std::uint64_t v);
  Json(std::string v);
  Json(std::string_view v);
  Json(const char* v);
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();
  static Json array();
  static Json object();

  bool is_object() const { return kind == Kind::object; }
  bool is_array() const { return kind == Kind::array; }
  bool is_string() const { return kind == Kind::string; }
  bool is_number() const { return kind == Kind::integer || kind == Kind::number; }

  const Json* find(std::string_view key) const;  // nullptr when absent or not an object
  Json* find(std::string_view key);
  Json& set(std::string_view key, Json value);  // replaces or appends; returns the stored value
  void push(Json value);

  // A word for messages: "a string", "an object" ...
  std::string_view kind_name() const;
};

struct JsonMember {
  std::string key;
  Place place;  // of the key
  Json value;
};

// Parses one document; on a problem reports it to `out` and returns what was understood so far (check out.ok()).
Json parse_json(std::string_view text, std::string file_name, Diagnostics& out);

// Text of a document: two-space indent, short arrays and objects on one line when `indent` > 0, no newlines when 0. Doubles
// print with the fewest digits that read back to the same value; non-finite ones as null.
std::string to_text(const Json& json, int indent = 2);

}  // namespace weft
