// SPDX-License-Identifier: Apache-2.0
// A crowd and a bystander: seven hosts of one leaf send 4 MB each to one host of another; an eighth sends as much to a second host,
// over the same trunk, which has room for all. Hosts 100 Gb/s, trunk 800.
#pragma once

#include <string>

#include "tests/support/tiny.hpp"

namespace weft::test {

// `members`: of the scenario, beside its jobs "hog" and "victim".
inline Report crowd(std::string network_class, const std::string& members,
                    const std::string& victims_class = "1") {
  TinyOptions options;
  options.servers = 16;
  options.network = leaf_spine(8, 1);
  options.network_class = std::move(network_class);
  options.cable = "800 Gb/s, 500 ns";
  std::string hogs;
  for (int i = 0; i < 7; ++i) {
    hogs += (i == 0 ? "" : ", ") + std::string(R"({"src": "server)") + std::to_string(i) +
            R"(/g", "dst": "server8/g", "size": "4 MB"})";
  }
  return run(fabric_from("gpu g -- 400 Gb/s, 0 ns -- nic n", options),
             R"("jobs": [{"name": "hog", "flows": [)" + hogs +
                 R"(]}, {"name": "victim", "traffic_class": )" + victims_class +
                 R"(, "flows": [{"src": "server7/g", "dst": "server9/g", "size": "4 MB"}]}], )" +
                 members);
}

}  // namespace weft::test
