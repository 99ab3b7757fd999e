// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/spec.hpp"

#include <fmt/format.h>

namespace weft {
namespace {

// A fabric file but for `server`, which is one server or an array of them.
struct FabricFile : ComponentHead {
  std::int64_t servers = 1;
  Json server;
  std::optional<NetworkSpec> network;
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("servers", servers, "number of servers", between(1, 1'000'000));
    v("server", server, "a server of the catalogue, or an array of {count, server}", required);
    v("network", network, "what joins the servers; none for one server");
  }
};

}  // namespace

FabricSpec read_fabric(const Json& document, const std::string& pointer, Diagnostics& out) {
  FabricSpec spec;
  spec.place = document.place;
  spec.pointer = pointer;
  if (document.find("nodes") != nullptr) {  // a server: a fabric of one
    ServerGroup& group = spec.groups.emplace_back();
    read_config(document, pointer, group.server, out);
    static_cast<ComponentHead&>(spec) = group.server;
    return spec;
  }
  FabricFile file;
  read_config(document, pointer, file, out);
  static_cast<ComponentHead&>(spec) = file;
  spec.servers = file.servers;
  spec.network = std::move(file.network);
  const std::string at = pointer + "/server";
  if (file.server.is_array()) {
    read_config(file.server, at, spec.groups, out);
    spec.servers = 0;
    for (const ServerGroup& group : spec.groups) spec.servers += group.count;
    if (spec.groups.empty())
      out.error(file.server.place, at, "no servers", "list at least one {count, server}");
    if (document.find("servers") != nullptr) {
      out.error(document.find("servers")->place, pointer + "/servers",
                "the array of \"server\" already counts the servers", "remove \"servers\"");
    }
  } else {
    ServerGroup& group = spec.groups.emplace_back();
    group.count = spec.servers;
    if (document.find("server") != nullptr) read_config(file.server, at, group.server, out);
  }
  return spec;
}

}  // namespace weft
