// SPDX-License-Identifier: Apache-2.0
// Random machines, as the text a person would write. Small on purpose: shapes matter, not sizes.
#pragma once

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "sim/core/diagnostics.hpp"
#include "sim/fabric/fabric.hpp"

namespace weft::properties {

// One of the listed.
template <class T>
T any_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}
// low .. high, both included.
inline int between(int low, int high) { return *rc::gen::inRange(low, high + 1); }
inline bool chance(int percent) { return between(0, 99) < percent; }

// Members of a fabric file's `network` with random numbers; many ask for what cannot be built.
std::string random_network();

// A server as mini-text (see tests/support/tiny.hpp): GPUs on a random tree of switches and sockets, perhaps NVLinks, NICs.
std::string random_server(bool with_nics);

struct Built {
  std::string text;
  Fabric fabric;
  bool ok = false;
  Diagnostics problems;
};

// A cluster of random servers over a random network, or one random server.
Built random_fabric();

// The same, asked for until it can be built.
Built random_valid_fabric();

}  // namespace weft::properties
