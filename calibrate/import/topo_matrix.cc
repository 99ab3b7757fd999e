// SPDX-License-Identifier: Apache-2.0
// From text to the matrix. First the lines are sorted into header, rows and legend, then the rows become cells, then each pair
// of cells is compared.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "calibrate/import/topo_affinity.hpp"
#include "calibrate/import/topo_lines.hpp"
#include "calibrate/import/topo_m.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;
using Tokens = std::vector<TopoWord>;

constexpr int kMostLinksInCell = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// One code at the front of `text`; its length, 0 when there is none.
std::size_t take_code(std::string_view text, TopoMatrix::Cell& cell) {
  struct Code {
    std::string_view word;
    Distance distance;
  };
  constexpr Code kCodes[] = {{"X", Distance::self},    {"PIX", Distance::pix},
                             {"PXB", Distance::pxb},   {"PHB", Distance::phb},
                             {"NODE", Distance::node}, {"SYS", Distance::sys},
                             {"SOC", Distance::sys}};
  cell = {};
  for (const Code& code : kCodes) {
    if (!text.starts_with(code.word)) continue;
    cell.known = true;
    cell.distance = code.distance;
    return code.word.size();
  }
  if (!text.starts_with("NV")) return 0;
  const auto [end, error] =
      std::from_chars(text.data() + 2, text.data() + text.size(), cell.nvlinks);
  if (error != std::errc{} || cell.nvlinks < 1 || cell.nvlinks > kMostLinksInCell) return 0;
  cell.known = true;
  return static_cast<std::size_t>(end - text.data());
}

// The codes of one token: one as a rule, several when cells were glued together, none when it is something else.
std::vector<TopoMatrix::Cell> codes_in(std::string_view text) {
  std::vector<TopoMatrix::Cell> out;
  while (!text.empty()) {
    TopoMatrix::Cell cell;
    const std::size_t length = take_code(text, cell);
    if (length == 0) return {};
    out.push_back(cell);
    text.remove_prefix(length);
  }
  return out;
}

bool is_gpu_name(std::string_view text) {
  return text.size() > 3 && text.starts_with("GPU") &&
         std::ranges::all_of(text.substr(3), is_digit);
}
bool is_device_name(std::string_view text) {
  const char first = text.empty() ? '0' : text.front();
  const bool letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
  return letter && codes_in(text).empty() && std::ranges::all_of(text, [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                  c == '-' || c == '.';
         });
}

struct Row {
  Tokens tokens;  // without the label
  std::string label;
  Place place;
  bool wrapped = false;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file, Imported& out, Diagnostics& diagnostics)
      : lines_(topo_lines(text)),
        file_(diagnostics.add_file(file)),
        out_(out),
        diagnostics_(diagnostics) {}

  TopoMatrix read() {
    sort_lines();
    if (header_.empty()) {
      error({file_, 1, 1}, "there is no header line that begins with GPU0",
            "the output of `nvidia-smi topo -m` is needed as it is printed");
      return {};
    }
    if (rows_.empty()) {
      error(place(header_.front()), "no row follows the header",
            "capture it again, it was cut off");
    } else {
      name_devices();
    }
    if (!diagnostics_.ok()) return {};
    for (const Row& row : rows_) read_row(row);
    if (diagnostics_.ok()) compare_cells();
    if (diagnostics_.ok()) settle_affinities(matrix_, affinities_, out_);
    return std::move(matrix_);
  }

 private:
  Place place(const TopoWord& token) const { return {file_, token.line, token.column}; }
  void error(Place at, std::string fact, std::string cure = {}) {
    diagnostics_.error(at, {}, std::move(fact), std::move(cure));
  }
  void warn(Place at, std::string text) { out_.note(Kind::warning, std::move(text), at); }

  // ---- lines

  // Device names and words of the affinity columns, nothing else.
  static bool may_be_header(const Tokens& tokens) {
    return std::ranges::all_of(tokens, [](const TopoWord& t) { return is_device_name(t.text); });
  }
  bool starts_row(const Tokens& tokens) const {
    if (!is_device_name(tokens.front().text)) return false;
    if (tokens.size() > 1) return !codes_in(tokens[1].text).empty();
    return std::ranges::any_of(header_,
                               [&](const TopoWord& t) { return t.text == tokens.front().text; });
  }
  static bool continues_row(const Tokens& tokens) {
    return !codes_in(tokens.front().text).empty() || is_affinity(tokens.front().text);
  }

  void sort_lines() {
    enum class At { before, header, rows, legend, nic_legend } at = At::before;
    std::size_t strange = 0;
    bool after_row = false;  // a line that continues a row follows it at once
    Place first_strange;
    const auto skip = [&](const TopoLine& line) {
      if (strange++ == 0) first_strange = {file_, line.number, line.words.front().column};
    };
    for (const TopoLine& line : lines_) {
      const Tokens& tokens = line.words;
      const bool follows_row = std::exchange(after_row, false);
      if (tokens.empty()) continue;
      if (line.damaged) {
        warn(place(tokens.front()), "this line holds control characters and is not used");
        continue;
      }
      const std::string_view first = tokens.front().text;
      if (is_gpu_name(first) && may_be_header(tokens) &&
          !(at == At::header && header_.size() > 0) && (tokens.size() > 1 || at == At::before)) {
        if (at != At::before) {
          error(place(tokens.front()), "a second matrix begins here",
                "import one machine at a time");
          return;
        }
        header_ = tokens;
        at = At::header;
      } else if (at == At::before) {
        skip(line);
      } else if (first == "Legend:") {
        at = At::legend;
      } else if (first == "NIC" && tokens.size() > 1 && tokens[1].text == "Legend:") {
        at = At::nic_legend;
      } else if (at == At::nic_legend && tokens.size() == 2 && first.ends_with(':')) {
        nic_devices_[std::string(first.substr(0, first.size() - 1))] = tokens[1].text;
      } else if (tokens.size() > 1 && tokens[1].text == "=") {
        // the meaning of a code
      } else if (starts_row(tokens)) {
        rows_.push_back(
            {Tokens(tokens.begin() + 1, tokens.end()), std::string(first), place(tokens.front())});
        at = At::rows;
        after_row = true;
      } else if (at == At::header && may_be_header(tokens)) {
        warn(place(tokens.front()), "the header goes on here: the capture was wrapped");
        header_.insert(header_.end(), tokens.begin(), tokens.end());
      } else if (follows_row && continues_row(tokens)) {
        warn(
            place(tokens.front()),
            fmt::format("the row of {} goes on here: the capture was wrapped", rows_.back().label));
        rows_.back().tokens.insert(rows_.back().tokens.end(), tokens.begin(), tokens.end());
        rows_.back().wrapped = after_row = true;
      } else {
        skip(line);
      }
    }
    if (strange > 0)
      out_.note(Kind::ignored,
                fmt::format("{} lines that are no part of the matrix, the first here", strange),
                first_strange);
  }

  // ---- names

  std::size_t find_device(std::string_view name) const {
    const auto at = index_.find(name);
    return at != index_.end() ? at->second : kNoPart;
  }

  void name_devices() {
    std::vector<TopoWord> names;
    for (std::size_t i = 0; i < header_.size(); ++i) {
      const std::string_view word = header_[i].text;
      const auto follows = [&](std::size_t k, std::string_view text) {
        return i + k < header_.size() && header_[i + k].text == text;
      };
      if ((word == "CPU" || word == "NUMA") && follows(1, "Affinity")) {
        columns_.push_back(
            {word == "CPU" ? AffinityColumn::cpus : AffinityColumn::numa, header_[i].shown_at});
        i += 1;
      } else if (word == "GPU" && follows(1, "NUMA") && follows(2, "ID")) {
        columns_.push_back({AffinityColumn::memory_numa, header_[i].shown_at});
        i += 2;
      } else if (!columns_.empty()) {
        warn(place(header_[i]), fmt::format("the column \"{}\" is not known and not used", word));
      } else {
        names.push_back(header_[i]);
      }
    }
    columns_in_header_ = names.size();
    std::set<std::string, std::less<>> seen;
    for (const TopoWord& name : names) seen.insert(name.text);
    for (const Row& row : rows_) {
      if (seen.contains(row.label)) continue;
      if (is_gpu_name(row.label))
        error(row.place, fmt::format("the header has no column for {}", row.label));
      seen.insert(row.label);
      names.push_back({row.label, row.place.line, row.place.column, 0, 0});
      warn(row.place,
           fmt::format("the header has no column for {}: its distances are taken from its row",
                       row.label));
    }
    if (names.size() > kMostMachineDevices)
      return error(place(header_.front()),
                   fmt::format("{} devices are more than any machine has", names.size()));
    std::stable_partition(names.begin(), names.end(),
                          [](const TopoWord& t) { return is_gpu_name(t.text); });
    for (const TopoWord& name : names) {
      if (!index_.emplace(name.text, matrix_.devices.size()).second)
        error(place(name), fmt::format("the header names {} twice", name.text));
      const auto legend = nic_devices_.find(name.text);
      matrix_.devices.push_back({name.text,
                                 legend != nic_devices_.end() ? legend->second : std::string{},
                                 {},
                                 {},
                                 {},
                                 place(name)});
      if (is_gpu_name(name.text)) matrix_.gpus = matrix_.devices.size();
    }
    for (std::size_t i = 0; i < columns_in_header_ && i < header_.size(); ++i)
      order_.push_back(find_device(header_[i].text));
    for (const auto& [nic, device] : nic_devices_) {
      if (find_device(nic) == kNoPart)
        out_.note(Kind::warning,
                  fmt::format("the legend names {} ({}), which is not in the matrix", nic, device));
    }
    matrix_.cells.assign(names.size(), std::vector<TopoMatrix::Cell>(names.size()));
    affinities_.assign(names.size(), {});
  }

  // ---- rows

  void read_row(const Row& row) {
    const std::size_t own = find_device(row.label);
    if (!seen_rows_.insert(row.label).second)
      return error(row.place, fmt::format("a second row of {}", row.label));
    std::vector<TopoMatrix::Cell> cells;
    std::size_t at = 0;
    for (; at < row.tokens.size(); ++at) {
      const TopoWord& token = row.tokens[at];
      std::vector<TopoMatrix::Cell> codes = codes_in(token.text);
      if (codes.empty() && (is_affinity(token.text) || cells.size() >= order_.size())) break;
      if (codes.empty()) {
        warn(place(token),
             fmt::format("\"{}\" is no code of the matrix: the cell is taken from the other row",
                         token.text));
        codes.emplace_back();
      } else if (codes.size() > 1) {
        warn(place(token),
             fmt::format("\"{}\" is read as {} cells that run together", token.text, codes.size()));
      }
      for (TopoMatrix::Cell& cell : codes) {
        cell.place = place(token);
        cells.push_back(cell);
      }
    }
    place_cells(row, own, cells);
    const Tokens rest(row.tokens.begin() + static_cast<std::ptrdiff_t>(at), row.tokens.end());
    if (own < matrix_.gpus) {
      const std::uint32_t tabs = at > 0 ? row.tokens[at - 1].tabs : 0;
      affinities_[own] = read_affinity(rest, columns_, tabs, row.wrapped, file_, out_);
    } else if (!rest.empty()) {
      warn(place(rest.front()), fmt::format("text after the cells of {} is not used", row.label));
    }
  }

  void place_cells(const Row& row, std::size_t own, const std::vector<TopoMatrix::Cell>& cells) {
    std::vector<std::size_t> order = order_;
    if (cells.size() > order.size()) {
      // The header lost columns that have rows.
      for (std::size_t d = 0; d < matrix_.devices.size(); ++d) {
        if (std::ranges::find(order, d) == order.end()) order.push_back(d);
      }
    }
    if (cells.size() > order.size()) {
      return error(row.place,
                   fmt::format("the row of {} has {} cells for {} devices", row.label, cells.size(),
                               order.size()),
                   "capture it again, or separate cells that hold other text");
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool self = cells[i].known && cells[i].distance == Distance::self;
      if (self == (order[i] == own) || !cells[i].known) continue;
      return error(
          cells[i].place,
          fmt::format("the row of {} has its X in the wrong column: a cell is lost or one too many",
                      row.label),
          "capture it again");
    }
    if (cells.size() < order_.size()) {
      warn(row.place,
           fmt::format("the row of {} has {} of {} cells: the rest is taken from the other rows",
                       row.label, cells.size(), order_.size()));
    }
    for (std::size_t i = 0; i < cells.size(); ++i) matrix_.cells[own][order[i]] = cells[i];
  }

  // ---- cells

  static std::string code(const TopoMatrix::Cell& cell) {
    return cell.nvlinks > 0 ? fmt::format("NV{}", cell.nvlinks) : std::string(word(cell.distance));
  }

  void compare_cells() {
    std::size_t unknown = 0;
    for (std::size_t a = 0; a < matrix_.devices.size(); ++a) {
      if (!seen_rows_.contains(matrix_.devices[a].name)) {
        warn(
            matrix_.devices[a].place,
            fmt::format("the capture has no row of {}: its distances are taken from the other rows",
                        matrix_.devices[a].name));
      }
      for (std::size_t b = 0; b < a; ++b) {
        TopoMatrix::Cell& there = matrix_.cells[a][b];
        TopoMatrix::Cell& back = matrix_.cells[b][a];
        const std::string pair =
            fmt::format("{} and {}", matrix_.devices[b].name, matrix_.devices[a].name);
        if (there.known && back.known) {
          if (code(there) == code(back)) continue;
          error(there.place,
                fmt::format("{} are {} here and {} in line {}", pair, code(there), code(back),
                            back.place.line),
                "capture it again: both cells of a pair must agree");
        } else if (there.known || back.known) {
          (there.known ? back : there) = there.known ? there : back;
        } else if (b >= matrix_.gpus) {
          ++unknown;
        } else {
          error(matrix_.devices[a].place, fmt::format("no row tells what lies between {}", pair),
                "capture the whole matrix");
        }
        if (a >= matrix_.gpus && there.nvlinks > 0)
          error(there.place,
                fmt::format("{} cannot be joined by NVLink: one of them is a NIC", pair));
      }
    }
    if (unknown > 0)
      out_.note(Kind::unknown,
                fmt::format("distances of {} pairs of NICs: no column, no cell", unknown));
  }

  std::vector<TopoLine> lines_;
  std::uint32_t file_;
  Imported& out_;
  Diagnostics& diagnostics_;
  Tokens header_;
  std::vector<Row> rows_;
  std::map<std::string, std::string, std::less<>> nic_devices_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<AffinityColumn> columns_;
  std::size_t columns_in_header_ = 0;
  std::vector<std::size_t> order_;  // device of each column
  std::set<std::string, std::less<>> seen_rows_;
  std::vector<Affinity> affinities_;
  TopoMatrix matrix_;
};

}  // namespace

TopoMatrix read_topo_matrix(std::string_view text, const std::string& file, Imported& out,
                            Diagnostics& diagnostics) {
  return Reader(text, file, out, diagnostics).read();
}

}  // namespace weft
