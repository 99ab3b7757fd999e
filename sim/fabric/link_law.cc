// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/link_law.hpp"

#include <fmt/format.h>

namespace weft {
namespace {

std::string_view class_name(LinkClass link_class) {
  for (const auto& entry : enum_names(LinkClass{})) {
    if (entry.value == link_class) return entry.name;
  }
  return "?";
}

}  // namespace

LinkLaw link_law(const LinkSpec& spec, LinkClasses classes, Diagnostics& out) {
  const LinkClassEntry* entry = nullptr;
  for (const LinkClassEntry* candidate : classes) {
    if (candidate->link_class == spec.link_class) entry = candidate;
  }
  if (entry == nullptr) {
    out.error(spec.place, spec.pointer,
              fmt::format("no law for links of class \"{}\"", class_name(spec.link_class)),
              "give the link another class");
    return {};
  }
  const std::size_t before = out.error_count();
  LinkLaw law = entry->evaluate(spec, out);
  if (spec.rate) law.raw = *spec.rate;
  if (spec.efficiency) {
    law.overhead = Bytes{0};
    law.busy = *spec.efficiency;
  }
  law.duplex_factor = spec.duplex_factor;
  if (law.raw.bps <= 0 && out.error_count() == before) {
    out.error(spec.place, spec.pointer,
              fmt::format("this {} link has no rate", class_name(spec.link_class)),
              R"(write "rate": "400 Gb/s", one direction after line coding)");
  }
  return law;
}

}  // namespace weft
