// SPDX-License-Identifier: Apache-2.0
#include "models/link/facts.hpp"

#include <fmt/format.h>

namespace weft {
namespace {

// The place of a fact: its own when the link's pointer leads there, else the link's.
std::string at(const LinkSpec& spec, std::string_view key) {
  return fmt::format("{}/{}", spec.pointer, key);
}

}  // namespace

void report_missing(const LinkSpec& spec, std::string_view key, std::string_view cure,
                    Diagnostics& out) {
  out.error(spec.place, spec.pointer, fmt::format("the link's \"{}\" is missing", key),
            fmt::format("write {}", cure));
}

void report_impossible(const LinkSpec& spec, std::string_view key, std::string_view fact,
                       std::string_view cure, Diagnostics& out) {
  out.error(spec.place, at(spec, key), std::string(fact), std::string(cure));
}

}  // namespace weft
