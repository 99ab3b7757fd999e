// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/nccl_row.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

using Column = NcclColumn;

constexpr std::string_view kRemark = "chosen";  // heads the columns that only weft prints

std::optional<Column> column_of(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, Column>, 21> kNames{
      {{"size", Column::size},           {"bytes", Column::size},
       {"count", Column::count},         {"N", Column::count},
       {"type", Column::type},           {"redop", Column::operation},
       {"op", Column::operation},        {"root", Column::root},
       {"time", Column::time},           {"cputime", Column::cpu_time},
       {"algbw", Column::algbw},         {"busbw", Column::busbw},
       {"#wrong", Column::wrong},        {"wrong", Column::wrong},
       {"error", Column::error},         {"delta", Column::error},
       {"i_min", Column::shortest},      {"i_max", Column::longest},
       {"i_p99", Column::percentile_99}, {"i_cv%", Column::variation},
       {"timestamp", Column::timestamp}}};
  for (const auto& [name, column] : kNames) {
    if (name == word) return column;
  }
  return std::nullopt;
}

// What the option -I adds to a group.
bool is_spread(Column c) {
  return c == Column::shortest || c == Column::longest || c == Column::percentile_99 ||
         c == Column::variation;
}
bool is_time(Column c) { return c == Column::time || c == Column::cpu_time; }

// What today's release prints, with and without root (old) and with one half only (trimmed by hand).
std::optional<NcclColumns> columns_of_shape(std::size_t words) {
  using enum NcclColumn;
  NcclColumns out{size, count, type, operation};
  if (words == 13 || words == 9) out.push_back(root);
  const std::size_t halves = words > 9 ? 2 : 1;
  if (words != 13 && words != 12 && words != 9 && words != 8) return std::nullopt;
  for (std::size_t i = 0; i < halves; ++i) out.insert(out.end(), {time, algbw, busbw, wrong});
  return out;
}

bool is_operation(std::string_view word) {
  constexpr std::array<std::string_view, 7> kNames{"sum", "prod", "min",   "max",
                                                   "avg", "none", "mulsum"};
  return std::ranges::find(kNames, word) != kNames.end();
}

class RowReader {
 public:
  RowReader(const std::vector<Word>& words, bool finished) : words_(words), finished_(finished) {}

  // Reads the words as these columns; empty with the reason in why().
  std::optional<NcclLogRow> read(const NcclColumns& columns) {
    row_ = {};
    half_ = -1;
    std::size_t at = 0;
    for (const Column column : columns) {
      if (column == Column::remark) {
        at = words_.size();
        break;
      }
      if (at >= words_.size()) return fail("it is cut off");
      if (!take(column, at)) return fail(std::string(why_));
    }
    if (at != words_.size()) return fail("it has more cells than the header");
    if (row_.bytes <= 0) return fail("its size is not positive");
    const int element = element_size(row_.type);
    if (!row_.type.empty() && element == 0)
      return fail(fmt::format("\"{}\" is no type of NCCL", row_.type));
    if (element > 0 && row_.count > 0 &&
        (row_.bytes % element != 0 || (row_.bytes / element) % row_.count != 0))
      return fail(fmt::format("{} B are not {} {} times a whole number", row_.bytes, row_.count,
                              row_.type));
    for (const auto& half : row_.halves) {
      if (!half) continue;
      if (std::string wrong = disagreement(row_.bytes, *half, cpu_time_); !wrong.empty())
        return fail(std::move(wrong));
    }
    return row_;
  }
  const std::string& why() const { return why_; }

 private:
  std::nullopt_t fail(std::string why) {
    why_ = std::move(why);
    return std::nullopt;
  }

  bool take(Column column, std::size_t& at) {
    const std::string_view word = words_[at].text;
    const bool last = at + 1 == words_.size();
    ++at;
    why_ = "the line is cut off";
    const bool checked = column == Column::wrong || column == Column::error;
    if (last && !finished_ && !checked && column != Column::timestamp) return false;
    why_ = fmt::format("\"{}\" is not what its column holds", word);
    switch (column) {
      case Column::size:
        return take_whole(word, row_.bytes);
      case Column::count:
        return take_whole(word, row_.count);
      case Column::type:
        row_.type = word;
        return !begins_with_digit(word) && word[0] != '-';
      case Column::operation:
        row_.operation = word == "none" ? std::string_view{} : word;
        return is_operation(word);
      case Column::root: {
        const auto root = parse_whole(word);
        if (!root || *root < -1 || *root > 10'000'000) return false;
        if (*root >= 0) row_.root = static_cast<int>(*root);
        return true;
      }
      case Column::time:
      case Column::cpu_time:
        if (++half_ > 1) return false;
        row_.halves[static_cast<std::size_t>(half_)].emplace();
        cpu_time_ = column == Column::cpu_time;
        return take_number(word, half().time) && is_printed_time(half().time);
      case Column::algbw:
        return take_number(word, half().algbw) && is_printed_rate(half().algbw);
      case Column::busbw:
        return take_number(word, half().busbw) && is_printed_rate(half().busbw);
      case Column::wrong:
      case Column::error:
        return take_wrong(word, column == Column::error, last && !finished_);
      case Column::shortest:
        return take_number(word, half().shortest.emplace());
      case Column::longest:
        return take_number(word, half().longest.emplace());
      case Column::percentile_99:
        return take_number(word, half().percentile_99.emplace());
      case Column::variation:
        return parse_printed(word).has_value();
      case Column::timestamp:  // date and clock are two words
        return at < words_.size() && word.size() == 10 && words_[at++].text.size() == 8;
      case Column::remark:
        break;
    }
    return false;
  }

  NcclHalf& half() { return *row_.halves[static_cast<std::size_t>(half_)]; }

  static bool take_whole(std::string_view word, std::int64_t& out) {
    const auto value = parse_whole(word);
    if (!value || *value < 0) return false;
    out = *value;
    return true;
  }
  // Every release prints two decimals where they fit: rates below 1000 and times below 100. A cell with fewer lost its end.
  static bool is_printed_rate(const PrintedNumber& n) { return n.value >= 999 || n.decimals == 2; }
  static bool is_printed_time(const PrintedNumber& n) { return n.value >= 99 || n.decimals == 2; }
  static bool take_number(std::string_view word, PrintedNumber& out) {
    const auto value = parse_printed(word);
    if (!value || value->value < 0 || value->decimals > 2)
      return false;  // printed with two at most
    out = *value;
    return true;
  }
  // A count, or the largest error of old releases, which always has an exponent.
  bool take_wrong(std::string_view word, bool error, bool maybe_cut) {
    if (word == "N/A") return true;
    const auto value = parse_printed(word);
    if (!value || value->value < 0) return false;
    if (!error && value->value != std::floor(value->value)) return false;
    if (error && maybe_cut && word.find('e') == std::string_view::npos) return false;
    half().wrong = value->value;
    return true;
  }

  const std::vector<Word>& words_;
  bool finished_;
  NcclLogRow row_;
  int half_ = -1;
  bool cpu_time_ = false;
  std::string why_;
};

}  // namespace

std::optional<NcclColumns> nccl_header_of(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with("#") && !text.starts_with("#wrong")) text.remove_prefix(1);
  NcclColumns columns;
  for (const Word& word : words_of(text)) {
    if (word.text == kRemark && is_complete_header(columns)) {
      columns.push_back(Column::remark);
      break;
    }
    const auto column = column_of(word.text);
    if (!column) return std::nullopt;
    columns.push_back(*column);
  }
  if (columns.empty()) return std::nullopt;
  return columns;
}

bool is_complete_header(const NcclColumns& columns) {
  // What describes the row comes first, in this order; what a release leaves out is left out.
  constexpr std::array<Column, 5> kLabels{Column::size, Column::count, Column::type,
                                          Column::operation, Column::root};
  if (columns.empty() || columns.front() != Column::size) return false;
  std::size_t groups = 0, i = 0;
  for (const Column label : kLabels) i += i < columns.size() && columns[i] == label ? 1 : 0;
  while (i + 3 < columns.size() && is_time(columns[i])) {
    const bool checked = columns[i + 3] == Column::wrong || columns[i + 3] == Column::error;
    if (columns[i + 1] != Column::algbw || columns[i + 2] != Column::busbw || !checked)
      return false;
    ++groups;
    i += 4;
    while (i < columns.size() && is_spread(columns[i])) ++i;
  }
  if (i + 1 == columns.size() && (columns[i] == Column::timestamp || columns[i] == Column::remark))
    ++i;
  return i == columns.size() && (groups == 1 || groups == 2);
}

std::optional<NcclLogRow> read_nccl_row(std::string_view text, bool finished,
                                        const NcclColumns& columns, std::string& why) {
  const std::vector<Word> words = words_without_tags(text);
  RowReader reader(words, finished);
  const auto shape = columns_of_shape(words.size());
  std::optional<NcclLogRow> row;
  if (!is_complete_header(columns)) {
    if (shape) row = reader.read(*shape);
    why = shape ? reader.why() : fmt::format("{} cells are no row of nccl-tests", words.size());
    return row;
  }
  row = reader.read(columns);
  why = reader.why();
  // Old releases print nothing where there is no operation or no root.
  for (const auto& [no_operation, no_root] :
       {std::pair(true, false), {false, true}, {true, true}}) {
    if (row) return row;
    NcclColumns fewer = columns;
    if (no_operation) std::erase(fewer, Column::operation);
    if (no_root) std::erase(fewer, Column::root);
    if (fewer.size() < columns.size()) row = reader.read(fewer);
  }
  // The end of the header is on a line of its own and in pieces, the row is whole.
  const bool header_cut = shape && shape->size() > columns.size() &&
                          std::equal(columns.begin(), columns.end(), shape->begin());
  if (!row && header_cut) row = reader.read(*shape);
  return row;
}

}  // namespace weft
