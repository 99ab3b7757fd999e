// SPDX-License-Identifier: Apache-2.0
#include "sim/core/diagnostics.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "sim/core/input_problems.hpp"

namespace weft {
namespace {

// A run-away input (a million bad values) must not become a million kept strings.
constexpr std::size_t kMostKept = 1000;

// Nor a megabyte-long value a megabyte-long line: the middle of a long text is left out, between characters of UTF-8.
constexpr std::size_t kLongest = 1000, kShownEnd = 300;

std::string shortened(std::string text) {
  if (text.size() <= kLongest) return text;
  const auto inside = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  std::size_t head = kShownEnd, tail = text.size() - kShownEnd;
  for (int i = 0; i < 3 && inside(head); ++i) --head;
  for (int i = 0; i < 3 && inside(tail); ++i) ++tail;
  return text.substr(0, head) + " ... " + text.substr(tail);
}

}  // namespace

std::uint32_t Diagnostics::add_file(std::string name) {
  files_.push_back(std::move(name));
  return static_cast<std::uint32_t>(files_.size() - 1);
}

void Diagnostics::error(Place place, std::string pointer, std::string fact, std::string cure) {
  ++errors_;
  if (problems_.size() < kMostKept) {
    problems_.push_back({Problem::Severity::error, place, shortened(std::move(pointer)),
                         shortened(std::move(fact)), shortened(std::move(cure))});
  }
}

void Diagnostics::warning(Place place, std::string pointer, std::string fact, std::string cure) {
  if (problems_.size() < kMostKept) {
    problems_.push_back({Problem::Severity::warning, place, shortened(std::move(pointer)),
                         shortened(std::move(fact)), shortened(std::move(cure))});
  }
}

std::string Diagnostics::text_of(const Problem& problem) const {
  std::string out = files_[problem.place.file];
  if (problem.place.line > 0)
    out += fmt::format(":{}:{}", problem.place.line, problem.place.column);
  out += problem.severity == Problem::Severity::error ? ": error: " : ": warning: ";
  if (!problem.pointer.empty()) out += problem.pointer + ": ";
  out += problem.fact + "\n";
  if (!problem.cure.empty()) out += "    " + problem.cure + "\n";
  return out;
}

std::string Diagnostics::text(std::size_t limit) const {
  std::vector<const Problem*> sorted;
  sorted.reserve(problems_.size());
  for (const Problem& problem : problems_) sorted.push_back(&problem);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem* a, const Problem* b) {
    return std::tie(a->place.file, a->place.line, a->place.column) <
           std::tie(b->place.file, b->place.line, b->place.column);
  });
  std::string out;
  for (std::size_t i = 0; i < std::min(limit, sorted.size()); ++i) out += text_of(*sorted[i]);
  if (sorted.size() > limit)
    out += fmt::format("... and {} more problems\n", sorted.size() - limit);
  return out;
}

void Diagnostics::throw_if_errors() const {
  if (ok()) return;
  std::vector<LocatedProblem> located;
  for (const Problem& p : problems_) {
    located.push_back({files_[p.place.file], p.place.line, p.place.column,
                       p.severity == Problem::Severity::warning, p.pointer, p.fact, p.cure});
  }
  throw InputProblems(text(), std::move(located));
}

}  // namespace weft
