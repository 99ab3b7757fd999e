// SPDX-License-Identifier: Apache-2.0
// What the physics of a link class says: how fast the wire is and how much of it is payload. The laws live in models/link;
// the builder receives them as a table.
//
// Law: payload rate = raw * payload / (payload + overhead) * busy, each factor with its source in the class's file.
#pragma once

#include <span>
#include <string_view>

#include "sim/fabric/spec.hpp"

namespace weft {

struct LinkLaw {
  Bandwidth raw;      // one direction of one link, after line coding
  Bytes payload{0};   // of one packet
  Bytes overhead{0};  // headers, framing, trailer and gap that each packet adds on the wire
  double busy = 1;    // share of the wire that is not flow control and idle symbols
  double duplex_factor = 1;

  double efficiency() const {
    if (payload.count <= 0) return busy;
    return busy * payload.value() / (payload + overhead).value();
  }
};

struct LinkClassEntry {
  LinkClass link_class;
  std::string_view summary;
  std::string_view reference;
  // The law for these facts; a missing or impossible fact is reported at spec.place.
  LinkLaw (*evaluate)(const LinkSpec& spec, Diagnostics& out);
};
using LinkClasses = std::span<const LinkClassEntry* const>;

// The law of `spec`, with its own `rate` and `efficiency` put in place of what the class computes.
LinkLaw link_law(const LinkSpec& spec, LinkClasses classes, Diagnostics& out);

}  // namespace weft
