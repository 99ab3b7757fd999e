// SPDX-License-Identifier: Apache-2.0
// The shortest way from text to a simulated result. A fabric is one server in a line or two, copied over a network if need be:
//
//   Fabric fabric = fabric_from("gpu a -- 400 Gb/s, 500 ns -- gpu b");
//   Fabric star = fabric_from("gpu g -- 100 Gb/s, 0 ns -- nic n", {.servers = 4, .network = single_switch()});
//
// Statements are separated by ";" or newlines: `NODE`, or `NODE -- RATE, DELAY[, xCOUNT][, each|block|all][, duplex FACTOR]
// -- NODE`. A node is `KIND ID [LATENCY]` where it first appears and `ID` afterwards; ranges as in server files: gpu g[0-3].
// All of a link's rate is payload, so that expectations are round numbers; `duplex` makes it a PCIe link with a two-way
// budget.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/loader.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/run/run.hpp"
#include "sim/run/scenario.hpp"

namespace weft::test {

// The catalogue of the source tree, with files in memory before it. A component kept as "gpu/toy" is found as gpu "toy".
class Files final : public FileSource {
 public:
  explicit Files(std::map<std::string, std::string> in_memory = {})
      : in_memory_(std::move(in_memory)) {}
  std::optional<std::string> read(const std::string& path) override;
  std::optional<std::string> find(std::string_view kind, const std::string& name) override;
  std::vector<std::string> names(std::string_view kind) override;

 private:
  std::map<std::string, std::string> in_memory_;
};

struct TinyOptions {
  int servers = 1;
  std::string network;  // members of the fabric file's `network`; none for one server
  std::string server;   // more members of the server: "peer_access", "staging" ...
  std::string nic = "100 Gb/s, 500 ns";    // the NICs' port
  std::string cable = "100 Gb/s, 500 ns";  // between switches
  std::string network_class = "c2c";       // of both: "ethernet" has PFC and marks
};
std::string single_switch();  // for TinyOptions::network
std::string leaf_spine(int hosts_per_leaf, int spines, std::string_view routing = "ecmp");

std::string tiny_text(std::string_view text, const TinyOptions& options = {});  // the fabric file
Fabric fabric_from(std::string_view text, const TinyOptions& options = {});

// A component of the catalogue: a name, or a JSON object with `use` and `set`.
Fabric catalogue_fabric(std::string_view reference);

// Throws InputError with all problems.
Json document_from(std::string_view json);
Scenario scenario_from(std::string_view json, Diagnostics& out);

// The members `jobs`, `faults` ... of a scenario whose fabric is given separately.
Scenario scenario_on(const Fabric& fabric, std::string_view members, Diagnostics& out);

// What crossed the network model in a run.
struct Traffic {
  struct Message {
    std::vector<Share> shares;
    Bytes size;
    Time latency;
    Time start;
  };
  std::vector<Message> messages;  // as started
  std::vector<double> injected;   // sum of weight x size, by resource
  std::vector<double> carried;    // what the model says it carried
  std::vector<Time> busy;
  std::size_t finished = 0;  // messages that came back
};

// weft's models; `traffic` (may be null) sees every message. Without the what-if runs that explain a result.
RunContext context(Traffic* traffic = nullptr);

Report run(std::string_view scenario_json, Traffic* traffic = nullptr);
Report run(const Fabric& fabric, std::string_view members, Traffic* traffic = nullptr);

// A number of the first job's details, or of an object in them; stops when there is none.
double number(const Report& report, std::string_view key, std::string_view inner = {});
Time time_of(const Report& report);                        // exact picoseconds
NodeId node(const Fabric& fabric, std::string_view name);  // stops when there is none
LinkId link(const Fabric& fabric, std::string_view name);
std::vector<NodeId> nodes(const Fabric& fabric, const std::vector<std::string>& names);

}  // namespace weft::test
