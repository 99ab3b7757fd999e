// SPDX-License-Identifier: Apache-2.0
// The columns right of the matrix: which CPUs and NUMA nodes are near a GPU. Cells are lists such as 0-31,64-95 or
// 0,3-9,11-17, single numbers, N/A, or empty; a paste may have eaten their first characters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/import/topo_lines.hpp"
#include "calibrate/import/topo_m.hpp"

namespace weft {

struct AffinityColumn {
  enum Kind { cpus, numa, memory_numa };
  Kind kind = cpus;
  std::uint32_t shown_at = 0;
};

struct AffinityCell {
  std::string text;  // empty: none, or not to be trusted
  Place place{};
};
struct Affinity {
  AffinityCell cpus, numa, memory_numa;
};

// Digits, commas and dashes, or N/A: what may stand in such a cell, sound or not.
bool is_affinity(std::string_view text);

// The cells after the last code of a row; `tabs` are those before that code. Fewer cells than columns are placed by tabs,
// else by where they stand below the header.
Affinity read_affinity(const std::vector<TopoWord>& cells,
                       const std::vector<AffinityColumn>& columns, std::uint32_t tabs, bool wrapped,
                       std::uint32_t file, Imported& out);

// Drops damaged cells with a warning each, and moves the rest into the devices.
void settle_affinities(TopoMatrix& matrix, std::vector<Affinity>& affinities, Imported& out);

}  // namespace weft
