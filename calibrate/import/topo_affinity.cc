// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/topo_affinity.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace weft {
namespace {

using Kind = ImportNote::Kind;

constexpr std::size_t kMostRanges = 1024;
constexpr std::size_t kMostCompared = 32;  // different lists of one capture

struct Span {
  std::int64_t first = 0, last = 0;
};

// Ranges of "0-31,64-95", nullopt when it is not such a list.
std::optional<std::vector<Span>> parse_list(std::string_view text) {
  std::vector<Span> out;
  while (true) {
    Span range;
    const auto number = [&](std::int64_t& into) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
      if (error != std::errc{} || into < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      return true;
    };
    if (!number(range.first)) return std::nullopt;
    range.last = range.first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!number(range.last) || range.last < range.first) return std::nullopt;
    }
    out.push_back(range);
    if (text.empty()) return out;
    if (!text.starts_with(',') || out.size() == kMostRanges) return std::nullopt;
    text.remove_prefix(1);
  }
}

bool overlap(const std::vector<Span>& a, const std::vector<Span>& b) {
  return std::ranges::any_of(a, [&](const Span& x) {
    return std::ranges::any_of(
        b, [&](const Span& y) { return x.first <= y.last && y.first <= x.last; });
  });
}

// "31,64-95" of "0-31,64-95", or "0-31,6": part of the other, cut at one end.
bool is_cut_of(std::string_view part, std::string_view whole) {
  return part.size() < whole.size() && (whole.starts_with(part) || whole.ends_with(part));
}

AffinityCell& cell_of(Affinity& affinity, AffinityColumn::Kind kind) {
  if (kind == AffinityColumn::cpus) return affinity.cpus;
  return kind == AffinityColumn::numa ? affinity.numa : affinity.memory_numa;
}

// Which column a cell stands below: the last that begins no later, with a letter of tolerance.
std::size_t column_below(const std::vector<AffinityColumn>& columns, std::uint32_t shown_at) {
  std::size_t out = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].shown_at <= shown_at + 1) out = c;
  }
  return out;
}

void drop_unsound(AffinityCell& cell, std::string_view what, const std::string& device,
                  Imported& out) {
  if (cell.text.empty() || parse_list(cell.text)) return;
  out.note(Kind::warning,
           fmt::format("{} of {} is \"{}\", a list that has lost characters: it counts as unknown",
                       what, device, cell.text),
           cell.place);
  cell.text.clear();
}

}  // namespace

bool is_affinity(std::string_view text) {
  return text == "N/A" || (!text.empty() && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || c == ',' || c == '-';
         }));
}

Affinity read_affinity(const std::vector<TopoWord>& cells,
                       const std::vector<AffinityColumn>& columns, std::uint32_t tabs, bool wrapped,
                       std::uint32_t file, Imported& out) {
  Affinity affinity;
  std::vector<TopoWord> tokens;
  for (const TopoWord& token : cells) {
    if (!tokens.empty() && tokens.back().text.ends_with(',')) {
      tokens.back().text += token.text;  // a list with a space in it
    } else {
      tokens.push_back(token);
    }
  }
  if (tokens.empty()) return affinity;
  const Place first{file, tokens.front().line, tokens.front().column};
  if (columns.empty() || tokens.size() > columns.size()) {
    out.note(
        Kind::warning,
        fmt::format("{} cells after the matrix and {} columns for them: affinity counts as unknown",
                    tokens.size(), columns.size()),
        first);
    return affinity;
  }
  std::vector<bool> taken(columns.size(), false);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::size_t column = i;
    if (tokens.size() < columns.size() && !wrapped) {
      const std::uint32_t after = tokens[i].tabs - tabs;
      column = after > 0 ? std::min<std::size_t>(after - 1, columns.size() - 1)
                         : column_below(columns, tokens[i].shown_at);
    }
    if (taken[column] || !is_affinity(tokens[i].text)) {
      out.note(Kind::warning, fmt::format("\"{}\" fits no column: it is not used", tokens[i].text),
               {file, tokens[i].line, tokens[i].column});
      continue;
    }
    taken[column] = true;
    AffinityCell& cell = cell_of(affinity, columns[column].kind);
    cell.place = {file, tokens[i].line, tokens[i].column};
    if (tokens[i].text != "N/A") cell.text = tokens[i].text;
  }
  return affinity;
}

void settle_affinities(TopoMatrix& matrix, std::vector<Affinity>& affinities, Imported& out) {
  for (std::size_t g = 0; g < matrix.gpus; ++g) {
    const std::string& name = matrix.devices[g].name;
    drop_unsound(affinities[g].cpus, "CPU affinity", name, out);
    drop_unsound(affinities[g].numa, "NUMA affinity", name, out);
    drop_unsound(affinities[g].memory_numa, "GPU NUMA ID", name, out);
  }
  // GPUs of one NUMA node have one list of CPUs; a shorter piece of it was cut.
  std::map<std::string_view, std::string> longest;
  for (std::size_t g = 0; g < matrix.gpus; ++g) {
    std::string& best = longest[affinities[g].numa.text];
    if (affinities[g].cpus.text.size() > best.size()) best = affinities[g].cpus.text;
  }
  for (std::size_t g = 0; g < matrix.gpus; ++g) {
    AffinityCell& cpus = affinities[g].cpus;
    const std::string& numa = affinities[g].numa.text;
    if (cpus.text.empty() || numa.empty() || cpus.text == longest[numa]) continue;
    const bool cut = is_cut_of(cpus.text, longest[numa]);
    out.note(Kind::warning,
             fmt::format("CPU affinity of {} is \"{}\", another GPU of NUMA node {} has \"{}\"{}",
                         matrix.devices[g].name, cpus.text, numa, longest[numa],
                         cut ? ": it lost characters and counts as unknown" : ""),
             cpus.place);
    if (cut) cpus.text.clear();
  }
  std::map<std::string, std::vector<Span>> lists;
  for (std::size_t g = 0; g < matrix.gpus; ++g) {
    TopoMatrix::Device& device = matrix.devices[g];
    device.cpus = affinities[g].cpus.text;
    device.numa = affinities[g].numa.text;
    device.memory_numa = affinities[g].memory_numa.text;
    if (!device.cpus.empty() && lists.size() < kMostCompared)
      lists.emplace(device.cpus, parse_list(device.cpus).value_or(std::vector<Span>{}));
  }
  for (auto a = lists.begin(); a != lists.end(); ++a) {
    for (auto b = lists.begin(); b != a; ++b) {
      if (!overlap(a->second, b->second)) continue;
      out.note(Kind::warning,
               fmt::format("CPU lists \"{}\" and \"{}\" overlap: one of them may be damaged",
                           b->first, a->first));
    }
  }
}

}  // namespace weft
