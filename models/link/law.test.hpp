// SPDX-License-Identifier: Apache-2.0
// What the tests of link laws share: a link from the text of its file, and what it delivers.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/fabric/link_law.hpp"

namespace weft {

struct TestedLink {
  LinkLaw law;
  std::vector<Problem> problems;

  Bandwidth payload_rate() const { return scaled(law.raw, law.efficiency()); }
  double gbps() const { return static_cast<double>(payload_rate().bps) / 1e9; }
  double gbytes() const { return payload_rate().gbytes_per_s(); }
  std::string problem() const { return problems.empty() ? std::string{} : problems.front().fact; }
};

// `facts`: the members of the link's object beside its head, e.g. R"("class": "c2c", "rate": "50 GB/s")".
inline TestedLink test_link(const LinkClassEntry& entry, const std::string& facts) {
  Diagnostics out;
  const Json json = parse_json("{" + facts + "}", "link.json", out);
  LinkSpec spec;
  read_config(json, "/link", spec, out);
  EXPECT_TRUE(out.ok()) << out.text();
  const LinkClassEntry* table[] = {&entry};
  TestedLink link;
  link.law = link_law(spec, table, out);
  link.problems = out.problems();
  return link;
}

}  // namespace weft
