// SPDX-License-Identifier: Apache-2.0
// A config.json while its family reads it: counts, flags and texts with their places, and which keys were asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/core/diagnostics.hpp"
#include "sim/core/json.hpp"

namespace weft {

class HfConfig {
 public:
  using Keys = std::initializer_list<std::string_view>;
  using Names = std::set<std::string, std::less<>>;

  // `read` gathers the keys that are asked for.
  HfConfig(const Json& json, std::string pointer, Names& read, Diagnostics& out)
      : json_(json), pointer_(std::move(pointer)), read_(read), out_(out) {}

  // The first of `keys` that is there; null counts as absent.
  std::optional<std::int64_t> find(Keys keys) const {
    for (const std::string_view key : keys) read_.emplace(key);
    for (const std::string_view key : keys) {
      const Json* value = find_json(key);
      if (value == nullptr || value->kind == Json::Kind::null) continue;
      if (value->kind == Json::Kind::integer && value->integer >= 0 && value->integer <= kMost)
        return value->integer;
      out_.error(value->place, at(key), fmt::format("{} is no count from 0 to {}", key, kMost),
                 "write a whole number");
      return std::nullopt;
    }
    return std::nullopt;
  }
  std::int64_t count(Keys keys) const { return find(keys).value_or(0); }
  std::int64_t required(Keys keys) const {
    const std::size_t before = out_.error_count();
    const auto value = find(keys);
    if (value && *value > 0) return *value;
    if (out_.error_count() == before)
      out_.error(
          json_.place, pointer_, fmt::format("the key \"{}\" is missing or 0", *keys.begin()),
          fmt::format("add \"{}\", if this is the config.json of a language model", *keys.begin()));
    return 1;
  }
  bool flag(std::string_view key, bool otherwise = false) const {
    const Json* value = find_json(key);
    if (value == nullptr || value->kind == Json::Kind::null) return otherwise;
    if (value->kind != Json::Kind::boolean)
      out_.error(value->place, at(key), fmt::format("{} is neither true nor false", key),
                 "write true or false");
    return value->boolean;
  }
  std::string text(std::string_view key) const {
    const Json* value = find_json(key);
    if (value == nullptr || value->kind == Json::Kind::null) return {};
    if (!value->is_string())
      out_.error(value->place, at(key), fmt::format("{} is no text", key), "write it in quotes");
    return value->text;
  }
  std::string required_text(std::string_view key) const {
    const std::size_t before = out_.error_count();
    std::string value = text(key);
    if (value.empty() && out_.error_count() == before)
      out_.error(json_.place, pointer_, fmt::format("the key \"{}\" is missing", key),
                 fmt::format("add \"{}\"", key));
    return value;
  }
  const Json* find_json(std::string_view key) const {
    read_.emplace(key);
    return json_.find(key);
  }
  HfConfig inner(std::string_view key) const {
    static const Json kNone = Json::object();
    const Json* value = find_json(key);
    return {value != nullptr ? *value : kNone, at(key), read_, out_};
  }
  std::string at(std::string_view key) const { return pointer_ + "/" + std::string(key); }
  void error(std::string_view key, std::string fact, std::string cure) const {
    const Json* value = json_.find(key);
    out_.error(value != nullptr ? value->place : json_.place, value != nullptr ? at(key) : pointer_,
               std::move(fact), std::move(cure));
  }

 private:
  // Of any count in the file: products of three stay below 2^80.
  static constexpr std::int64_t kMost = 100'000'000;

  const Json& json_;
  std::string pointer_;
  Names& read_;
  Diagnostics& out_;
};

}  // namespace weft
