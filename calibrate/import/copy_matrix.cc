// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/copy_matrix.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "calibrate/log_facts.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostColumns = 4096;

std::optional<std::vector<std::optional<double>>> cells_of(const std::vector<Word>& words,
                                                           std::string& why) {
  std::vector<std::optional<double>> out;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].text == "N/A") {
      out.emplace_back();
      continue;
    }
    const auto value = parse_printed(words[i].text);
    if (!value || value->decimals != 2 || value->value < 0) {
      why = fmt::format("\"{}\" is no number with two decimals", words[i].text);
      return std::nullopt;
    }
    out.emplace_back(value->value);
  }
  return out;
}

}  // namespace

bool CopyMatrixReader::take_head(const LogLine& line) {
  std::vector<Word> words = words_of(line.text);
  std::string corner;
  if (!words.empty() && !parse_whole(words.front().text)) {
    corner = words.front().text;
    words.erase(words.begin());
  }
  if (words.empty() || words.size() > kMostColumns || line.damaged || !line.finished) return false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (parse_whole(words[i].text) != static_cast<std::int64_t>(i)) return false;
  }
  corner_ = std::move(corner);
  columns_ = words.size();
  cells_.clear();
  open_ = true;
  return true;
}

bool CopyMatrixReader::take_row(const LogLine& line, IgnoredLines& ignored) {
  if (cells_.size() >= columns_) open_ = false;
  if (!open_ || !begins_with_digit(line.text)) return false;
  const std::vector<Word> words = words_of(line.text);
  std::string why;
  if (line.damaged) why = "it holds broken escape codes";
  if (parse_whole(words.front().text) != static_cast<std::int64_t>(cells_.size()))
    why = fmt::format("row {} was expected", cells_.size());
  if (why.empty() && words.size() != columns_ + 1)
    why = fmt::format("it has {} cells, the table has {} columns", words.size() - 1, columns_);
  if (why.empty()) {
    if (auto cells = cells_of(words, why)) {
      cells_.push_back(std::move(*cells));
      return true;
    }
  }
  open_ = false;
  ignored.row(line, why);
  return true;
}

Json facts_of_matrices(const Measurement& measurement) {
  Json out = Json::array();
  for (const MeasuredMatrix& matrix : measurement.matrices) {
    std::vector<double> values;
    bool latency = false;
    for (const MeasuredPair& pair : matrix.pairs) {
      if (pair.bandwidth) values.push_back(pair.bandwidth->gbytes_per_s());
      if (pair.latency) values.push_back(us_of(*pair.latency));
      latency |= pair.latency.has_value();
    }
    const auto [least, most] = std::ranges::minmax(values);
    Json test = Json::object();
    test.set("name", matrix.name);
    test.set("quantity", latency ? "latency_us" : "bandwidth_gbs");
    test.set("pairs", std::uint64_t{matrix.pairs.size()});
    test.set("median", median(values));
    test.set("least", least);
    test.set("most", most);
    if (matrix.halved) test.set("halved", true);
    if (matrix.staged) test.set("path", "host-staged");
    if (!matrix.definition.empty()) test.set("definition", matrix.definition);
    out.push(std::move(test));
  }
  return out;
}

}  // namespace weft
