// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random_machines.hpp"

#include <cstdlib>

#include <fmt/format.h>

#include "models/catalog.hpp"
#include "tests/support/tiny.hpp"

namespace weft::properties {
namespace {

// Cases are cheap, so there are many; RC_PARAMS of the caller comes first.
[[maybe_unused]] const int kMoreCases = setenv("RC_PARAMS", "max_success=300", 0);

}  // namespace

std::string random_network() {
  const std::string link =
      fmt::format(R"({{"class": "ethernet", "rate": "{}", "delay": "{} ns", "efficiency": 1}})",
                  any_of<std::string>({"25 Gb/s", "100 Gb/s", "400 Gb/s"}), between(0, 2000));
  const std::string routing =
      any_of<std::string>({"single", "ecmp", "flowlet", "spray", "adaptive"});
  std::string out = fmt::format(
      R"("switch": {{"ports": {}, "latency": "{} ns", "link": {}}}, "routing": "{}", "link": {})",
      between(2, 24), between(0, 900), link, routing, link);
  const std::string shape = any_of<std::string>(
      {"single-switch", "leaf-spine", "fat-tree", "rail-optimised", "dragonfly", "torus"});
  out += fmt::format(R"(, "generator": "{}")", shape);
  if (shape == "leaf-spine") {
    if (chance(70)) out += fmt::format(R"(, "hosts_per_leaf": {})", between(1, 8));
    if (chance(70)) out += fmt::format(R"(, "spines": {})", between(1, 6));
  }
  if (shape == "fat-tree" || shape == "rail-optimised")
    out += fmt::format(R"(, "tiers": {})", between(1, 3));
  if (shape != "single-switch" && shape != "torus" && shape != "dragonfly" && chance(40)) {
    out += fmt::format(R"(, "oversubscription": {})",
                       any_of<std::string>({"1", "2", "3", "0.5", "1.5"}));
  }
  if (shape == "dragonfly") {
    out += fmt::format(
        R"(, "routers_per_group": {}, "hosts_per_router": {}, "global_links_per_router": {})",
        between(1, 5), between(1, 4), between(1, 4));
  }
  if (shape == "torus") {
    out += R"(, "dims": [)";
    const int dimensions = between(1, 3);
    for (int d = 0; d < dimensions; ++d)
      out += fmt::format("{}{}", d > 0 ? ", " : "", between(1, 4));
    out += "]";
  }
  return out;
}

std::string random_server(bool with_nics) {
  const int gpus = between(1, 5), sockets = between(1, 2), switches = between(0, 3);
  const auto rate = [] {
    return any_of<std::string>({"8 Gb/s", "64 Gb/s", "100 Gb/s", "256 Gb/s"});
  };
  const auto host_link = [&] {
    return fmt::format("{}, {} ns{}", rate(), between(0, 500),
                       chance(40) ? any_of<std::string>({", duplex 0.75", ", duplex 1"}) : "");
  };
  std::string out;
  std::vector<std::string> parents;
  for (int c = 0; c < sockets; ++c) {
    out += fmt::format("cpu c{} {} ns\n", c, between(0, 200));
    if (chance(80)) out += fmt::format("dram d{0} -- 800 Gb/s, 60 ns -- c{0}\n", c);
    parents.push_back(fmt::format("c{}", c));
  }
  if (sockets == 2) out += fmt::format("c0 -- {}, 100 ns -- c1\n", rate());
  for (int s = 0; s < switches; ++s) {
    const std::string up =
        parents[static_cast<std::size_t>(between(0, static_cast<int>(parents.size()) - 1))];
    out += fmt::format("pcie_switch p{} 100 ns -- {} -- {}\n", s, host_link(), up);
    parents.push_back(fmt::format("p{}", s));
  }
  const auto parent = [&] {
    return parents[static_cast<std::size_t>(between(0, static_cast<int>(parents.size()) - 1))];
  };
  for (int g = 0; g < gpus; ++g)
    out += fmt::format("gpu g{} -- {} -- {}\n", g, host_link(), parent());
  if (chance(50)) {
    for (int a = 0; a < gpus; ++a) {
      for (int b = a + 1; b < gpus; ++b) {
        if (chance(50))
          out += fmt::format("g{} -- {}, {} ns, x{} -- g{}\n", a, rate(), between(0, 300),
                             between(1, 3), b);
      }
    }
  } else if (chance(50)) {
    const int planes = between(1, 3);
    for (int p = 0; p < planes; ++p) {
      out += fmt::format("nvswitch s{} 90 ns\n", p);
      for (int g = 0; g < gpus; ++g) {
        if (chance(90))
          out += fmt::format("g{} -- {}, 50 ns, x{} -- s{}\n", g, rate(), between(1, 3), p);
      }
    }
  }
  if (with_nics) {
    const int nics = between(1, 3);
    for (int n = 0; n < nics; ++n)
      out += fmt::format("nic n{} -- {} -- {}\n", n, host_link(), parent());
  }
  return out;
}

Built random_fabric() {
  test::TinyOptions options;
  options.servers = chance(30) ? 1 : between(2, 9);
  if (options.servers > 1) options.network = random_network();
  const auto reach = [] { return any_of<std::string>({"none", "switch", "socket", "all"}); };
  options.server = fmt::format(
      R"("peer_access": {{"nvlink": {}, "pcie": "{}"}}, "gpudirect_rdma": "{}", "staging": {{"rate": "50 Gb/s",
      "latency": "5 us"}}, "copy": {{"latency": "2 us"}})",
      chance(80), reach(), reach());
  Built out;
  out.text = test::tiny_text(random_server(options.servers > 1), options);
  test::Files files({{"random.json", out.text}});
  const Json document = Loader(files, out.problems).load_file("random.json");
  FabricSpec spec = read_fabric(document, {}, out.problems);
  if (out.problems.ok()) out.fabric = build_fabric(std::move(spec), link_classes(), out.problems);
  out.ok = out.problems.ok();
  return out;
}

Built random_valid_fabric() {
  for (int tries = 0;; ++tries) {
    Built built = random_fabric();
    if (built.ok) return built;
    if (tries == 50) RC_DISCARD("no fabric in fifty tries");
  }
}

}  // namespace weft::properties
