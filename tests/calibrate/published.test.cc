// SPDX-License-Identifier: Apache-2.0
// Published tables: three sizes of each are fitted, the others predicted.
#include "tests/calibrate/published.hpp"

#include <cmath>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "calibrate/log_facts.hpp"

namespace weft::calibrate_test {

HoldOut hold_out_published(const PublishedData& published, const FitOptions& options) {
  std::set<std::int64_t> groups;
  for (const FitTable& table : published.data.tables) groups.insert(table.ranks);
  while (groups.size() > 2) groups.erase(std::prev(groups.end()));
  const std::vector<Bytes> wanted{32_KiB, 1_MiB, 1_GiB};
  std::set<std::string> kept;
  for (const FitTable& table : published.data.tables) {
    if (!groups.contains(table.ranks)) continue;
    for (const Bytes size : wanted) {
      const FitRow* nearest = nullptr;
      for (const FitRow& row : table.rows) {
        if (!row.refused.empty()) continue;
        const auto off = [&](const FitRow& r) {
          return std::abs(std::log(r.bytes.value() / size.value()));
        };
        if (nearest == nullptr || off(row) < off(*nearest)) nearest = &row;
      }
      if (nearest != nullptr) kept.insert(table.name + "@" + to_text(nearest->bytes));
    }
  }
  return hold_out(
      published.machine, published.data,
      [&](const MeasuredPoint& point) { return kept.contains(point.id); }, options);
}

namespace {

// What stands between two marks of docs/calibration.md; replaced by `text` under WEFT_UPDATE=1.
std::string shown(const std::string& mark, const std::string& text) {
  const std::string path = std::string(WEFT_SOURCE_DIR) + "/docs/calibration.md";
  std::ifstream file(path);
  std::ostringstream all;
  all << file.rdbuf();
  std::string page = all.str();
  const std::string from = "<!-- " + mark + " -->\n", to = "<!-- /" + mark + " -->";
  const auto begin = page.find(from), end = page.find(to);
  if (begin == std::string::npos || end == std::string::npos) return {};
  const auto at = begin + from.size();
  if (std::getenv("WEFT_UPDATE") != nullptr) {
    page.replace(at, end - at, text);
    std::ofstream(path) << page;
    return text;
  }
  return page.substr(at, end - at);
}

// Cell by cell; numbers to half a percent, as the last digit may differ between compilers.
bool nearly_same(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  std::string x, y;
  while (true) {
    const bool more = static_cast<bool>(std::getline(left, x, '|'));
    if (more != static_cast<bool>(std::getline(right, y, '|'))) return false;
    if (!more) return true;
    if (x == y) continue;
    char *end_x = nullptr, *end_y = nullptr;
    const double u = std::strtod(x.c_str(), &end_x), v = std::strtod(y.c_str(), &end_y);
    if (end_x == x.c_str() || end_y == y.c_str() || std::abs(u - v) > 0.5) return false;
  }
}

TEST(PublishedTables, PredictWhatTheyWereNotFittedTo) {
  HoldOut single, multi, all;
  std::string text;
  std::string page =
      "| machine | fitted | predicted | median % | p90 % | bias % | covered % |\n| --- | --- | --- "
      "| "
      "--- | --- | --- | --- |\n";
  const char* only = std::getenv("WEFT_MACHINE");
  for (const PublishedMachine& which : published_machines()) {
    if (only != nullptr && which.name.find(only) == std::string::npos) continue;
    std::printf("%s", text.c_str());
    std::fflush(stdout);
    text.clear();
    const HoldOut found = hold_out_published(load_machine(which), {});
    page += fmt::format("| {} | {} | {} | {:.1f} | {:.1f} | {:+.1f} | {:.0f} |\n", which.name,
                        found.fitted, found.rows.size(), 100 * found.median, 100 * found.p90,
                        100 * found.bias, 100 * found.coverage);
    text += fmt::format("{:<40} {:>3} {:>4} {:6.1f} {:6.1f} {:+6.1f} {:4.0f}\n", which.name,
                        found.fitted, found.rows.size(), 100 * found.median, 100 * found.p90,
                        100 * found.bias, 100 * found.coverage);
    if (std::getenv("WEFT_ROWS") != nullptr)
      for (const HeldOutRow& row : found.rows)
        text += fmt::format("    {:<40} {:>10.5g} {:>10.5g} {:+6.1f} {:5.1f} {}\n", row.point.id,
                            row.point.measured, row.predicted, 100 * row.error(), 100 * row.sd,
                            row.covered ? "" : "outside");
    if (which.wanted == "single") add_rows(single, found);
    if (which.wanted == "multi") add_rows(multi, found);
    add_rows(all, found);
  }
  for (const auto& [name, sum] : {std::pair{"single", &single}, {"multi", &multi}, {"all", &all}}) {
    page += fmt::format("| **{}** | | {} | {:.1f} | {:.1f} | {:+.1f} | {:.0f} |\n", name,
                        sum->rows.size(), 100 * sum->median, 100 * sum->p90, 100 * sum->bias,
                        100 * sum->coverage);
    text += fmt::format("{:<40} {:>8} {:6.1f} {:6.1f} {:+6.1f} {:4.0f}\n", name, sum->rows.size(),
                        100 * sum->median, 100 * sum->p90, 100 * sum->bias, 100 * sum->coverage);
  }
  std::printf("%s", text.c_str());
  if (only != nullptr) return;
  EXPECT_TRUE(nearly_same(shown("published", page), page)) << "WEFT_UPDATE=1 writes it";
  EXPECT_LE(single.median, 0.07);
  EXPECT_LE(multi.median, 0.15);
  EXPECT_GE(all.coverage, 0.80);
  EXPECT_LE(all.coverage, 0.98);
}

}  // namespace
}  // namespace weft::calibrate_test
