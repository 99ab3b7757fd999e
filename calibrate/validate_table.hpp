// SPDX-License-Identifier: Apache-2.0
// The table of a record: `columns` with names, `rows` with as many cells each. What the cells mean is the reader's.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/core/json.hpp"

namespace weft {

// The first of the wanted names that there is.
std::optional<std::size_t> find_column(const std::vector<std::string>& names,
                                       std::initializer_list<std::string_view> wanted);

struct RecordTable {
  const Json* columns = nullptr;
  const Json* rows = nullptr;  // an array
  std::vector<std::string> names;
};

// Of a record that has rows; nothing after an error.
std::optional<RecordTable> read_record_table(const Json& record, const std::string& pointer,
                                             std::size_t most_rows, Diagnostics& out);
// That the column to predict is not there: `which` asks for it when the record names none.
void lacks_column(const RecordTable& table, const std::string& pointer, const std::string& wanted,
                  const std::string& which, Diagnostics& out);
// Rows that have a cell for each column, with their pointers and numbers from 0; the others are reported.
void each_row(
    const RecordTable& table, const std::string& pointer, Diagnostics& out,
    const std::function<void(const Json& row, const std::string& here, std::size_t at)>& take);

}  // namespace weft
