// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_rows.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "calibrate/validate_table.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

constexpr double kCoarsest = 0.05;  // relative half-width of a printed value
constexpr std::size_t kMostRows = 100'000;

// What a column or unit says: its quantity where its name tells, and the factor to us or GB/s.
struct Meaning {
  std::optional<Quantity> quantity;
  bool is_time = false;
  double factor = 1;
};

std::optional<Meaning> meaning_of(std::string_view name) {
  const auto has = [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  };
  Meaning out;
  if (has("busbw")) {
    out.quantity = Quantity::busbw;
  } else if (has("algbw")) {
    out.quantity = Quantity::algbw;
  } else if (has("_us") || name == "us") {
    out.is_time = true;
  } else if (has("_ms") || name == "ms") {
    out.is_time = true;
    out.factor = 1e3;
  } else if (name == "s") {
    out.is_time = true;
    out.factor = 1e6;
  } else if (has("Gbps") || has("Gb/s")) {
    out.factor = 1.0 / 8;
  } else if (has("MiB/s") || has("MiB_per_s")) {
    out.factor = 1.048576e-3;
  } else if (!has("GBps") && !has("GB/s")) {
    return std::nullopt;
  }
  return out;
}

// Digits after the point, as the shortest text of the number has them.
int decimals(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr;
  const std::string_view written(text, static_cast<std::size_t>(end - text));
  const auto point = written.find('.');
  return point == std::string_view::npos ? 0 : static_cast<int>(written.size() - point - 1);
}

std::string gpu_name(const Json& json) {
  if (json.kind == Json::Kind::integer && json.integer >= 0)
    return fmt::format("gpu{}", json.integer);
  return json.is_string() ? json.text : std::string{};
}

// Half a unit of the last digit that the finest of the cells has.
double half_of_last_digit(const std::vector<const Json*>& cells) {
  int most = 0;
  for (const Json* cell : cells) {
    if (cell->is_number()) most = std::max(most, decimals(cell->number));
  }
  return 0.5 * std::pow(10.0, -most);
}

class RowReader {
 public:
  RowReader(const Json& json, const std::string& pointer, ValidationRecord& record,
            Diagnostics& out)
      : json_(json), pointer_(pointer), record_(record), out_(out) {}

  bool read() {
    const std::size_t before = out_.error_count();
    if (const Json* matrix = json_.find("matrix_row_src_col_dst"); matrix && !matrix->items.empty())
      read_matrix(*matrix);
    else if (json_.find("rows") != nullptr)
      read_table();
    else
      read_value();
    const bool sized =
        std::ranges::all_of(record_.rows, [](const CaseRow& row) { return row.bytes.count > 0; });
    if (record_.kind == CaseKind::nccl && !sized) {
      out_.error(json_.place, pointer_, "the size of the messages is not known",
                 R"(a column "bytes", or "size" in the weft object)");
    }
    return out_.error_count() == before;
  }

 private:
  std::string at(std::string_view key) const { return config_detail::child(pointer_, key); }

  // What `name` (a column or a unit) means for this case; nullopt after an error.
  std::optional<Meaning> meaning(const Json& where, const std::string& pointer,
                                 std::string_view name) {
    auto found = meaning_of(name);
    if (!found) {
      const Json* unit = json_.find("unit");
      if (unit != nullptr && unit->is_string()) found = meaning_of(unit->text);
    }
    if (!found) {
      out_.error(where.place, pointer, fmt::format("\"{}\" does not tell its unit", name),
                 "name the unit in the column (time_us, GB/s, Gbps) or in \"unit\"");
      return std::nullopt;
    }
    if (record_.kind == CaseKind::p2p) {
      const bool wants_time = record_.p2p.quantity == Quantity::latency;
      if (wants_time != found->is_time || found->quantity) {
        out_.error(where.place, pointer,
                   fmt::format("\"{}\" is not a {}", name, write_config(record_.p2p.quantity).text),
                   "name the column that the case predicts");
        return std::nullopt;
      }
      found->quantity = record_.p2p.quantity;
      return found;
    }
    if (record_.nccl.quantity) found->quantity = record_.nccl.quantity;
    if (found->is_time) found->quantity = Quantity::time;
    if (!found->quantity) {
      out_.error(where.place, pointer, fmt::format("\"{}\" does not tell which bandwidth", name),
                 R"(add "quantity": "busbw" or "algbw" to the weft object)");
      return std::nullopt;
    }
    return found;
  }

  void read_table() {
    const auto table = read_record_table(json_, pointer_, kMostRows, out_);
    if (!table) return;
    const std::vector<std::string>& names = table->names;
    const bool nccl = record_.kind == CaseKind::nccl;
    const std::string& wanted = nccl ? record_.nccl.column : record_.p2p.column;
    const auto column =
        !wanted.empty() ? find_column(names, {wanted})
                        : find_column(names, {"time_us_out_of_place", "time_us_oop", "time_us",
                                              "busbw_GBps_oop", "busbw_GBps", "time_us_in_place",
                                              "time_us_ip", "busbw_GBps_ip", "GB/s"});
    if (!column) return lacks_column(*table, pointer_, wanted, "which column is predicted?", out_);
    const auto says = meaning(*table->columns, at("columns"), names[*column]);
    if (!says) return;
    record_.quantity = *says->quantity;
    const auto bytes = find_column(names, {"bytes", "message_bytes"});
    const auto gpus = find_column(names, {"n_gpus"}), nodes = find_column(names, {"n_nodes"});
    std::vector<const Json*> cells;
    for (const Json& row : table->rows->items) {
      if (row.is_array() && *column < row.items.size()) cells.push_back(&row.items[*column]);
    }
    half_digit_ = half_of_last_digit(cells);
    each_row(*table, pointer_, out_, [&](const Json& row, const std::string& here, std::size_t) {
      CaseRow out = plain_row();
      if (bytes && !count(row.items[*bytes], here, out.bytes.count)) return;
      if (bytes) out.label = fmt::format("{}", out.bytes.count);
      if (bytes && given_size()) out.bytes = *given_size();
      if (nodes) {
        if (!count(row.items[*nodes], here, out.nodes)) return;
        out.label = fmt::format("{}{} nodes", out.label.empty() ? "" : out.label + ",", out.nodes);
      }
      if (gpus && !split_ranks(row.items[*gpus], here, out)) return;
      const Json& cell = row.items[*column];
      if (cell.kind == Json::Kind::null) {
        ++record_.missing;
      } else if (!cell.is_number()) {
        config_detail::wrong_kind(cell, here, "a number or null", out_);
      } else if (cell.number < 0) {
        out_.error(cell.place, here, "a measurement below 0", "null stands for a missing one");
      } else {
        const std::int64_t size =
            bytes ? row.items[*bytes].integer : static_cast<std::int64_t>(out.bytes.count);
        out.measured = cell.number * says->factor;
        add_for_pairs(out, size, cell.number);
      }
    });
  }

  std::optional<Bytes> given_size() const {
    return record_.kind == CaseKind::nccl ? record_.nccl.size : record_.p2p.size;
  }

  CaseRow plain_row() const {
    CaseRow row;
    row.nodes = record_.nccl.nodes.value_or(1);
    row.gpus_per_node = record_.nccl.gpus_per_node;
    if (const auto size = given_size()) {
      row.bytes = *size;
    } else if (const Json* bytes = json_.find("message_bytes");
               bytes != nullptr && bytes->kind == Json::Kind::integer && bytes->integer > 0) {
      row.bytes = Bytes{bytes->integer};
    } else if (record_.kind == CaseKind::p2p && record_.p2p.quantity == Quantity::bandwidth) {
      row.bytes = 256_MiB;
    }
    return row;
  }

  bool count(const Json& cell, const std::string& here, std::int64_t& out) {
    if (cell.kind == Json::Kind::integer && cell.integer > 0 && cell.integer <= kMostData.count) {
      out = cell.integer;
      return true;
    }
    out_.error(cell.place, here, "a size or count is a whole number above 0");
    return false;
  }

  // A number of ranks: over the nodes of the case, or over servers of the case's GPUs.
  bool split_ranks(const Json& cell, const std::string& here, CaseRow& row) {
    std::int64_t ranks = 0;
    if (!count(cell, here, ranks)) return false;
    const std::int64_t per = record_.nccl.gpus_per_node.value_or(0);
    const std::int64_t divisor = per > 0 ? per : row.nodes;
    if (ranks % divisor != 0) {
      out_.error(cell.place, here,
                 fmt::format("{} GPUs do not spread evenly over {}", ranks,
                             per > 0 ? "servers of gpus_per_node" : "the nodes"));
      return false;
    }
    if (per > 0)
      row.nodes = ranks / per;
    else
      row.gpus_per_node = ranks / divisor;
    row.label = fmt::format("{}{} gpus", row.label.empty() ? "" : row.label + ",", ranks);
    return true;
  }

  // A row of a table, once for each pair of a p2p case that lists them.
  void add_for_pairs(const CaseRow& row, std::int64_t size, double printed) {
    bool listed = false;
    for_each_pair([&](const std::string& src, const std::string& dst) {
      CaseRow one = row;
      one.src = src;
      one.dst = dst;
      const bool single = record_.p2p.pairs.items.size() == 1;
      if (!single) one.label += fmt::format("{}{}-{}", one.label.empty() ? "" : ",", src, dst);
      add(std::move(one), size, printed);
      listed = true;
    });
    if (!listed) add(row, size, printed);
  }

  void add(CaseRow row, std::int64_t size, double printed) {
    const auto from = record_.kind == CaseKind::nccl ? record_.nccl.from : record_.p2p.from;
    if (from && size < from->count) {
      ++record_.outside;
    } else if (!(printed > 0) || half_digit_ > kCoarsest * printed) {
      ++record_.too_coarse;
    } else {
      record_.rows.push_back(std::move(row));
    }
  }

  // A value given once: for a table's only number, or for each of the pairs.
  void read_value() {
    const Json* value = json_.find("value");
    if (value == nullptr) {
      out_.error(json_.place, pointer_, "nothing to compare with",
                 "give columns and rows, matrix_row_src_col_dst, or value and unit");
      return;
    }
    if (!value->is_number() || !(value->number > 0))
      return out_.error(value->place, at("value"), "not a number above 0");
    const Json* unit = json_.find("unit");
    const auto says =
        meaning(*value, at("value"), unit != nullptr && unit->is_string() ? unit->text : "value");
    if (!says) return;
    record_.quantity = *says->quantity;
    CaseRow row = plain_row();
    row.measured = value->number * says->factor;
    for_each_pair([&](const std::string& src, const std::string& dst) {
      CaseRow one = row;
      one.src = src;
      one.dst = dst;
      if (!src.empty()) one.label = src + "-" + dst;
      record_.rows.push_back(std::move(one));
    });
    if (record_.every_pair || record_.kind == CaseKind::nccl) record_.rows.push_back(row);
  }

  // The pairs that the case lists; with "all" the record is marked instead.
  template <class F>
  void for_each_pair(F&& f) {
    if (record_.kind == CaseKind::nccl) return;
    const Json& pairs = record_.p2p.pairs;
    if (pairs.is_string() && pairs.text == "all") {
      record_.every_pair = true;
      return;
    }
    const std::string here = at("weft") + "/pairs";
    if (!pairs.is_array() || pairs.items.empty()) {
      out_.error(pairs.kind == Json::Kind::null ? json_.find("weft")->place : pairs.place, here,
                 "which pairs of GPUs?", R"("all", or an array such as [[0, 1], [2, 3]])");
      return;
    }
    for (const Json& pair : pairs.items) {
      const bool two = pair.is_array() && pair.items.size() == 2;
      const std::string src = two ? gpu_name(pair.items[0]) : std::string{},
                        dst = two ? gpu_name(pair.items[1]) : std::string{};
      if (src.empty() || dst.empty()) {
        out_.error(pair.place, here, "a pair is [source, destination]",
                   R"(names ("server0/gpu1") or positions of GPUs)");
      } else if (src == dst) {
        out_.error(pair.place, here, fmt::format("{} is paired with itself", src),
                   "memory inside a GPU is no path of the fabric");
      } else {
        f(src, dst);
      }
    }
  }

  void read_matrix(const Json& matrix) {
    if (record_.kind != CaseKind::p2p)
      return out_.error(matrix.place, at("matrix_row_src_col_dst"), "a matrix is for kind p2p");
    const auto says = meaning(matrix, at("matrix_row_src_col_dst"), "matrix");
    if (!says) return;
    record_.quantity = *says->quantity;
    std::vector<const Json*> cells;
    const std::size_t n = matrix.items.size();
    for (const Json& row : matrix.items) {
      if (!row.is_array() || row.items.size() != n)
        return out_.error(row.place, at("matrix_row_src_col_dst"), "the matrix is not square");
      for (const Json& cell : row.items) cells.push_back(&cell);
    }
    half_digit_ = half_of_last_digit(cells);
    const auto cell_of = [&](std::size_t i, std::size_t j) {
      const Json& cell = matrix.items[i].items[j];
      if (!cell.is_number()) {
        ++record_.missing;
        return;
      }
      CaseRow row = plain_row();
      row.src = fmt::format("gpu{}", i);
      row.dst = fmt::format("gpu{}", j);
      row.label = row.src + "-" + row.dst;
      row.measured = cell.number * says->factor;
      const std::int64_t size = row.bytes.count;
      add(std::move(row), size, cell.number);
    };
    bool all = true;
    for_each_pair([&](const std::string& src, const std::string& dst) {
      all = false;
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
          if (src == fmt::format("gpu{}", i) && dst == fmt::format("gpu{}", j)) cell_of(i, j);
        }
      }
    });
    if (!std::exchange(record_.every_pair, false) || !all) return;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (i != j) cell_of(i, j);
      }
    }
  }

  const Json& json_;
  const std::string& pointer_;
  ValidationRecord& record_;
  Diagnostics& out_;
  double half_digit_ = 0;
};

}  // namespace

bool read_rows(const Json& json, const std::string& pointer, ValidationRecord& record,
               Diagnostics& diagnostics) {
  return RowReader(json, pointer, record, diagnostics).read();
}

}  // namespace weft
