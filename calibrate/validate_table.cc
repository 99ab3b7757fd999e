// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/config.hpp"
#include "sim/core/text.hpp"

namespace weft {

std::optional<std::size_t> find_column(const std::vector<std::string>& names,
                                       std::initializer_list<std::string_view> wanted) {
  for (const std::string_view name : wanted) {
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  return std::nullopt;
}

std::optional<RecordTable> read_record_table(const Json& record, const std::string& pointer,
                                             std::size_t most_rows, Diagnostics& out) {
  const auto at = [&](std::string_view key) { return config_detail::child(pointer, key); };
  RecordTable table;
  table.columns = record.find("columns");
  table.rows = record.find("rows");
  if (table.columns == nullptr) {
    config_detail::missing_key(record, pointer, "columns", "names the columns of rows", out);
    return std::nullopt;
  }
  read_config(*table.columns, at("columns"), table.names, out);
  if (!table.rows->is_array()) {
    config_detail::wrong_kind(*table.rows, at("rows"), "an array", out);
    return std::nullopt;
  }
  if (table.rows->items.size() > most_rows) {
    out.error(table.rows->place, at("rows"), fmt::format("more than {} rows", most_rows));
    return std::nullopt;
  }
  return table;
}

void lacks_column(const RecordTable& table, const std::string& pointer, const std::string& wanted,
                  const std::string& which, Diagnostics& out) {
  out.error(table.columns->place, config_detail::child(pointer, "columns"),
            wanted.empty() ? which
                           : fmt::format("there is no column \"{}\"{}", wanted,
                                         did_you_mean(wanted, table.names)),
            R"(add "column" to the weft object: one of )" + join(table.names, ", "));
}

void each_row(
    const RecordTable& table, const std::string& pointer, Diagnostics& out,
    const std::function<void(const Json& row, const std::string& here, std::size_t at)>& take) {
  const std::string rows = config_detail::child(pointer, "rows");
  for (std::size_t i = 0; i < table.rows->items.size(); ++i) {
    const Json& row = table.rows->items[i];
    const std::string here = config_detail::child(rows, i);
    if (row.is_array() && row.items.size() == table.names.size())
      take(row, here, i);
    else
      out.error(row.place, here, fmt::format("a row has {} cells", table.names.size()));
  }
}

}  // namespace weft
