// SPDX-License-Identifier: Apache-2.0
// The table of a sweep: one row per finished point, in the order of the points, whoever computed them and when. It depends on the
// sweep alone, so two tables of one sweep are equal byte by byte; how long a point took is kept beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/sweep/store.hpp"

namespace weft {

struct Row {
  std::size_t point = 0;
  const Manifest::Point* asked = nullptr;
  const Record* found = nullptr;
};

// Lives no longer than what it was made of.
std::vector<Row> rows_of(const Manifest& manifest, const StoreContents& contents);

// RFC 4180: columns point, axes, status, outputs, error.
std::string to_csv(const Manifest& manifest, const std::vector<Row>& rows);

// What the page reads: axes with their values once, and points as [number, [index of each axis' value], outputs or the error].
Json to_json(const Manifest& manifest, const std::vector<Row>& rows);

// A file of SQLite with the tables points (as the CSV, and the key), effort (key, wall_s) and sweep (name, value). Replaces what
// is there. Throws Missing when weft was built without SQLite.
void write_sqlite(const std::string& path, const Manifest& manifest, const std::vector<Row>& rows);

}  // namespace weft
