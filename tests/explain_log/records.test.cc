// SPDX-License-Identifier: Apache-2.0
// Over all published tables: what is healthy is called normal, and what is known to be degraded is not.
#include "tests/explain_log/records.hpp"

namespace weft::explain_test {
namespace {

struct Class {
  std::size_t rows = 0, normal = 0;
};
struct Healthy {
  std::size_t rows = 0, normal = 0, tables = 0;
  std::size_t called = 0;                                           // low or high as a whole
  std::map<std::pair<const LogBand*, std::size_t>, Class> classes;  // by band and class of size
  std::string text;
};

const Healthy& healthy() {
  static const Healthy all = [] {
    Healthy out;
    for (const ValidationRecord& one : dataset().records) {
      if (one.degraded || one.rows.empty()) continue;
      std::size_t rows = 0, normal = 0;
      for (LogQuestion& question : questions(one)) {
        question.find_causes = false;
        const LogExplanation found = explain_log(question);
        const LogBand* band = &band_of(*question.fabric, question.gpus);
        for (const LogRow& row : found.rows) {
          Class& sizes = out.classes[{band, LogBand::size_class(row.bytes)}];
          ++sizes.rows;
          sizes.normal += row.verdict == LogVerdict::normal ? 1 : 0;
        }
        rows += found.rows.size();
        normal += found.normal_rows();
        ++out.tables;
        out.called += found.verdict == LogVerdict::normal ? 0 : 1;
        if (found.verdict != LogVerdict::normal) out.text += one.id + " " + list(found);
      }
      out.rows += rows;
      out.normal += normal;
      out.text += one.id + ": " + std::to_string(normal) + " of " + std::to_string(rows) + "\n";
    }
    return out;
  }();
  return all;
}

// Nine rows of ten of all published tables without a known fault; none is left out.
TEST(HealthyTables, AreNormal) {
  EXPECT_GT(healthy().rows, 1500U);
  EXPECT_GE(static_cast<double>(healthy().normal), 0.9 * static_cast<double>(healthy().rows))
      << healthy().normal << " of " << healthy().rows << "\n"
      << healthy().text;
}

// A table as a whole is called slow or fast by its large rows: 23 of 184, of which 14 are of P100 systems of 2018, before the
// oldest release that is modelled.
TEST(HealthyTables, AreSeldomCalledSlowOrFast) {
  EXPECT_LE(100 * healthy().called, 15 * healthy().tables) << healthy().text;
}

// Each band is what it says: the ninth decile of its class, give or take what a class of 40 rows can tell.
TEST(HealthyTables, EachBandHoldsItsClass) {
  for (const auto& [key, sizes] : healthy().classes) {
    EXPECT_GE(static_cast<double>(sizes.normal), 0.85 * static_cast<double>(sizes.rows))
        << "sizes of class " << key.second << ": " << sizes.normal << " of " << sizes.rows;
  }
  for (const LogBand* band : {&kBandInside, &kBandAcross}) EXPECT_LT(band->most.back(), 1.5);
}

}  // namespace
}  // namespace weft::explain_test
