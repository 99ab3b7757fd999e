// SPDX-License-Identifier: Apache-2.0
// Whatever a person does to a valid file: the reader takes it or says where it is wrong.
#include <limits>

#include "models/catalog.hpp"
#include "sim/core/check.hpp"
#include "tests/properties/random_machines.hpp"
#include "tests/support/tiny.hpp"

namespace weft::properties {
namespace {

const char* const kScenarios[] = {
    R"({"weft": {"schema": 1}, "name": "n", "question": "q", "fabric": {"use": "dgx1-p100"}, "seed": 3, "fidelity": "fluid",
        "workload": {"collective": "all_reduce", "size": "1 MiB", "algorithm": "ring", "channels": 2, "chunk": "64 KiB", "repeat": 2}})",
    R"({"fabric": {"kind": "fabric", "name": "f", "servers": 4, "server": {"kind": "server", "name": "s",
          "nodes": [{"id": "g[0-1]", "kind": "gpu", "model": {"sms": 10, "memory": "16 GiB"}}, {"id": "p", "kind": "pcie_switch", "latency": "100 ns"},
                    {"id": "c", "kind": "cpu"}, {"id": "d", "kind": "dram"},
                    {"id": "n", "kind": "nic", "model": {"ports": 1, "link": {"class": "ethernet", "rate": "100 Gb/s", "delay": "500 ns", "mtu": "4 KiB", "transport": "roce"}}}],
          "links": [{"a": "g[0-1]", "b": "p", "link": {"class": "pcie", "generation": 4, "width": 16, "max_payload": "256 B", "duplex_factor": 0.8}},
                    {"a": "n", "b": "p", "pair": "each", "link": {"class": "pcie", "generation": 4, "width": 8, "max_payload": "256 B"}},
                    {"a": "p", "b": "c", "link": {"class": "pcie", "generation": 4, "width": 16, "max_payload": "256 B"}, "count": 2},
                    {"a": "d", "b": "c", "link": {"class": "memory", "rate": "100 GB/s"}}],
          "peer_access": {"nvlink": true, "pcie": "socket"}, "gpudirect_rdma": "switch", "staging": {"rate": "10 GB/s", "latency": "20 us"},
          "copy": {"latency": "9 us"}, "sources": {"": "assumed: a test"}},
        "network": {"generator": "leaf-spine", "switch": {"ports": 16, "latency": "300 ns", "link": {"class": "ethernet", "rate": "100 Gb/s", "delay": "200 ns", "mtu": "4 KiB"}},
                    "hosts_per_leaf": 2, "spines": 2, "oversubscription": 1, "routing": "ecmp"}},
        "jobs": [{"name": "a", "pattern": "permutation", "size": "1 MB", "gpus": 4, "placement": {"policy": "spread"}, "start": "1 us"},
                 {"name": "b", "flows": [{"src": "server0/g0", "dst": "server3/g1", "size": "3 MB", "start": "2 us"}], "repeat": "until-end"}],
        "faults": [{"target": "leaf0:spine0", "do": "degrade", "at": "1 us", "until": "3 us", "factor": 0.5}],
        "observe": {"critical_path": true, "top": 5}, "models": {"collective": {"launch": "1 us"}, "merge_classes": false}})",
    R"({"fabric": {"kind": "fabric", "name": "e", "server": [{"count": 2, "server": "aws-p4d-node"}], "network": {"generator": "explicit",
          "switch": "tomahawk4-128x200g", "switches": ["s0"], "cables": [{"a": "server0/nic0", "b": "s0", "count": 1}]}},
        "workload": {"p2p": {"src": "server0/gpu0", "dst": "server0/gpu1", "size": "1 MB", "via": "host", "bidirectional": true}}})"};

Json random_value() {
  switch (between(0, 9)) {
    case 0:
      return Json();
    case 1:
      return Json(chance(50));
    case 2:
      return Json(any_of<std::int64_t>({0, -1, 1, 2, 7, 65536, 4294967296,
                                        std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<std::int64_t>::min()}));
    case 3:
      return Json(any_of({0.0, -1.5, 1e-300, 1e300, 0.5, 1e19}));
    case 4:
      return Json(any_of<std::string>({"", "x", "gpu[0-9999999]", "gpu[3-1]", "[", "gpu[0-]",
                                       "server0/g0", "dgx2", "../x.json", "ring"}));
    case 5:
      return Json(any_of<std::string>({"1 GiB", "0 s", "400 Gb/s", "-1 s", "1e400 s", "9e99 GB/s",
                                       "1 parsec", "NaN s", "0 B"}));
    case 6:
      return Json::array();
    case 7:
      return Json::object();
    case 8: {
      Json out = Json::object();
      out.set("use", any_of<std::string>({"dgx2", "nothing", "gpu"}));
      return out;
    }
    default: {
      Json out = Json::array();
      out.push(Json(1));
      out.push(Json("a"));
      return out;
    }
  }
}

// Every value of the document, itself included.
void collect(Json& json, std::vector<Json*>& out) {
  out.push_back(&json);
  for (Json& item : json.items) collect(item, out);
  for (JsonMember& member : json.members) collect(member.value, out);
}

void mutate(Json& document) {
  std::vector<Json*> all;
  collect(document, all);
  Json& at = *all[static_cast<std::size_t>(between(0, static_cast<int>(all.size()) - 1))];
  Json& other = *all[static_cast<std::size_t>(between(0, static_cast<int>(all.size()) - 1))];
  const auto pick = [](std::size_t n) {
    return static_cast<std::ptrdiff_t>(between(0, static_cast<int>(n) - 1));
  };
  switch (between(0, 5)) {
    case 0:
      at = random_value();
      break;
    case 1:
      at = Json(other);
      break;  // something that is valid elsewhere
    case 2:
      if (!at.members.empty())
        at.members.erase(at.members.begin() + pick(at.members.size()));
      else if (!at.items.empty())
        at.items.erase(at.items.begin() + pick(at.items.size()));
      break;
    case 3:
      if (at.is_object())
        at.set(any_of<std::string>({"use", "set", "size", "network", "nodez", "", "weft"}),
               random_value());
      break;
    case 4:
      if (!at.items.empty())
        at.push(Json(at.items[static_cast<std::size_t>(pick(at.items.size()))]));
      break;
    default:
      if (at.is_string() && !at.text.empty())
        at.text[static_cast<std::size_t>(pick(at.text.size()))] =
            static_cast<char>(between(32, 126));
  }
}

bool small(const FabricSpec& spec) {
  std::int64_t nodes = 0;
  for (const ServerGroup& group : spec.groups)
    nodes += group.count * static_cast<std::int64_t>(group.server.nodes.size());
  return nodes < 2000;
}

RC_GTEST_PROP(MutatedScenarios, AreReadOrRefused, ()) {
  Diagnostics parsing;
  Json document = parse_json(kScenarios[between(0, 2)], "scenario.json", parsing);
  RC_ASSERT(parsing.ok());
  const int mutations = between(1, 3);
  for (int m = 0; m < mutations; ++m) mutate(document);
  const std::string text = to_text(document);
  RC_LOG() << text << "\n";
  Diagnostics out;
  try {
    test::Files files({{"scenario.json", text}});
    const Json resolved = Loader(files, out).load_file("scenario.json");
    if (out.ok()) {
      const Scenario scenario = read_scenario(resolved, out);
      if (out.ok() && small(scenario.fabric)) build_fabric(scenario.fabric, link_classes(), out);
    }
  } catch (const InputError& error) {
    RC_ASSERT(std::string(error.what()).size() > 10U);
  } catch (const LimitReached&) {
  }
  RC_CLASSIFY(out.ok(), "still valid");
  for (const Problem& problem : out.problems()) RC_ASSERT(!problem.fact.empty());
}

RC_GTEST_PROP(MutatedText, IsReadOrRefused, ()) {
  std::string text = kScenarios[between(0, 2)];
  const int edits = between(1, 6);
  for (int e = 0; e < edits; ++e) {
    const auto at = static_cast<std::size_t>(between(0, static_cast<int>(text.size()) - 1));
    switch (between(0, 2)) {
      case 0:
        text[at] = static_cast<char>(between(0, 255));
        break;
      case 1:
        text.erase(at, static_cast<std::size_t>(between(1, 20)));
        break;
      default:
        text.insert(
            at, any_of<std::string>({"{", "}", "[", "\"", ",", ":", "\\u0000", "1e999", "\xff"}));
    }
    if (text.empty()) break;
  }
  Diagnostics out;
  test::Files files({{"scenario.json", text}});
  const Json document = Loader(files, out).load_file("scenario.json");
  if (out.ok()) read_scenario(document, out);
  for (const Problem& problem : out.problems()) RC_ASSERT(!problem.fact.empty());
}

}  // namespace
}  // namespace weft::properties
