// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/cli/cli.hpp"

namespace weft {
namespace {

class Topo final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("fabric", fabric_, "a fabric or server: catalogue name or a path ending in .json")->required();
    add_set_option(app, sets_);
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    Diagnostics diagnostics;
    const LoadedFabric loaded = load_fabric(fabric_, sets_, diagnostics);
    io.err << diagnostics.text();
    io.out += fmt::format("{} nodes, {} links\n", loaded.fabric.node_count(), loaded.fabric.link_count());
    return kOk;
  }

 private:
  std::string fabric_;
  std::vector<std::string> sets_;
  bool json_ = false;
};

}  // namespace

extern const Verb kTopo;
const Verb kTopo{"topo", "nodes, links, tiers, bisection and weak spots of a fabric", make_command<Topo>};

}  // namespace weft
