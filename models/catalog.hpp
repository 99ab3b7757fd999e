// SPDX-License-Identifier: Apache-2.0
// Every extension that weft ships, by kind. This is the only file that knows them all: a new one gains one line in catalog.cc
// (collective algorithms: in models/collectives/catalog.cc).
#pragma once

#include <memory>
#include <span>

#include "sim/fabric/link_law.hpp"
#include "sim/run/network_model.hpp"
#include "sim/run/scenario.hpp"
#include "sim/workload/schedule.hpp"

namespace weft {

LinkClasses link_classes();
std::span<const AlgorithmEntry* const> collective_algorithms();
std::unique_ptr<NetworkModel> make_network(Fidelity fidelity, std::span<const Bandwidth> capacities,
                                           NetworkOptions options);

}  // namespace weft
