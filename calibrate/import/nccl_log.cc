// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/nccl_log.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr double kSlack = 0.01;  // beyond rounding: time and rate of a row are of the same clock

}  // namespace

int element_size(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, int>, 19> kTypes{{{"int8", 1},
                                                                     {"uint8", 1},
                                                                     {"char", 1},
                                                                     {"f8e4m3", 1},
                                                                     {"f8e5m2", 1},
                                                                     {"fp8_e4m3", 1},
                                                                     {"half", 2},
                                                                     {"float16", 2},
                                                                     {"bfloat16", 2},
                                                                     {"int32", 4},
                                                                     {"uint32", 4},
                                                                     {"int", 4},
                                                                     {"float", 4},
                                                                     {"float32", 4},
                                                                     {"int64", 8},
                                                                     {"uint64", 8},
                                                                     {"double", 8},
                                                                     {"fp8_e5m2", 1},
                                                                     {"float64", 8}}};
  for (const auto& [name, size] : kTypes) {
    if (name == type) return size;
  }
  return 0;
}

std::string collective_of_program(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kPrograms{
      {{"all_reduce", "all_reduce"},
       {"all_gather", "all_gather"},
       {"reduce_scatter", "reduce_scatter"},
       {"alltoallv", "all_to_all_v"},
       {"alltoall", "all_to_all"},
       {"broadcast", "broadcast"},
       {"reduce", "reduce"},
       {"gather", "gather"},
       {"scatter", "scatter"},
       {"sendrecv", "send_recv"},
       {"hypercube", "hypercube"}}};
  const std::size_t end = text.find("_perf");
  if (end == std::string_view::npos) return {};
  std::size_t first = end;
  const auto part = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  while (first > 0 && part(text[first - 1])) --first;
  const std::string_view name = text.substr(first, end - first);
  for (const auto& [program, collective] : kPrograms) {
    if (name == program) return std::string(collective);
  }
  return {};
}

bool keep_nccl_variable(std::map<std::string, std::string>& into, std::string_view name,
                        std::string_view value) {
  value = trimmed(value.substr(0, value.find(' ')));
  if (value.ends_with(".")) value.remove_suffix(1);
  for (const char quote : {'"', '\''}) {
    if (value.size() > 1 && value.front() == quote && value.back() == quote)
      value = value.substr(1, value.size() - 2);
  }
  const bool named = name.starts_with("NCCL_") && std::ranges::all_of(name, [](char c) {
                       return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
                     });
  if (!named || value.empty()) return false;
  into[std::string(name)] = value;
  return true;
}

std::string disagreement(std::int64_t bytes, const NcclHalf& half, bool cpu_time) {
  if (half.time.value <= 0 || half.algbw.value < 0 || half.busbw.value < 0)
    return "a time or bandwidth is not positive";
  if (half.busbw.value > 2 * half.algbw.value + 3 * half.algbw.half_unit)
    return "busbw is more than twice algbw";
  if (half.busbw.value > 0 &&
      half.busbw.value + half.busbw.half_unit < 0.5 * (half.algbw.value - half.algbw.half_unit))
    return "busbw is less than half of algbw";
  if (cpu_time) return {};  // the time is not the one the rates were computed from
  const double size = static_cast<double>(bytes);
  const double slowest = size / ((half.time.value + half.time.half_unit) * 1e3);
  const double shortest = std::max(half.time.value - half.time.half_unit, 1e-9);
  const double fastest = size / (shortest * 1e3);
  const bool below = half.algbw.value + half.algbw.half_unit < slowest * (1 - kSlack);
  const bool above = half.algbw.value - half.algbw.half_unit > fastest * (1 + kSlack);
  if (!below && !above) return {};
  return fmt::format("{} B in {} us are {:.4g} GB/s, the row says algbw {}", bytes, half.time.value,
                     size / (half.time.value * 1e3), half.algbw.value);
}

}  // namespace weft
