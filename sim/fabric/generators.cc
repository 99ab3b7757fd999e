// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/generators.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/fabric/dragonfly_routes.hpp"

namespace weft {
namespace {

std::uint32_t u32(std::size_t v) { return static_cast<std::uint32_t>(v); }

double real(std::size_t v) { return static_cast<double>(v); }

constexpr std::size_t kMostSwitches = 1'000'000;
constexpr std::size_t kMostPorts =
    1'000'000;  // beyond any radix; keeps absurd ratios of rates in range

class Planner {
 public:
  Planner(const NetworkSpec& spec, const std::vector<HostPort>& hosts, Bandwidth uplink,
          Diagnostics& out)
      : spec_(spec),
        hosts_(hosts),
        uplink_(uplink),
        out_(out),
        radix_(static_cast<std::size_t>(spec.switch_model.ports)) {}

  NetworkPlan plan() {
    refuse_unused_keys();
    switch (spec_.generator) {
      case Generator::single_switch:
        single_switch();
        break;
      case Generator::leaf_spine:
      case Generator::fat_tree:
        clos(false);
        break;
      case Generator::rail_optimised:
        clos(true);
        break;
      case Generator::dragonfly:
        dragonfly();
        break;
      case Generator::torus:
        torus();
        break;
      case Generator::explicit_list:
        explicit_list();
        break;
    }
    return std::move(plan_);
  }

 private:
  // A key that this generator does not read would be a silent mistake.
  void refuse_unused_keys() {
    const Generator g = spec_.generator;
    const bool clos =
        g == Generator::leaf_spine || g == Generator::fat_tree || g == Generator::rail_optimised;
    const bool dragonfly = g == Generator::dragonfly;
    const auto check = [&](std::string_view key, bool given, bool used) {
      if (!given || used) return;
      out_.error(spec_.place, fmt::format("{}/{}", spec_.pointer, key),
                 fmt::format("the generator \"{}\" does not use \"{}\"", write_config(g).text, key),
                 "remove the key");
    };
    if (uses_lanes(spec_.routing) && !dragonfly) {
      out_.error(spec_.place, spec_.pointer + "/routing",
                 fmt::format("\"{}\" is of dragonflies", write_config(spec_.routing).text),
                 "use single, ecmp, flowlet, spray or adaptive");
    }
    check("oversubscription", spec_.oversubscription != 1, clos);
    check("tiers", spec_.tiers.has_value(), clos);
    check("hosts_per_leaf", spec_.hosts_per_leaf.has_value(), clos);
    check("spines", spec_.spines.has_value(), clos);
    check("routers_per_group", spec_.routers_per_group.has_value(), dragonfly);
    check("hosts_per_router", spec_.hosts_per_router.has_value(), dragonfly);
    check("global_links_per_router", spec_.global_links_per_router.has_value(), dragonfly);
    check("link_global", spec_.link_global.has_value(), dragonfly);
    check("dims", !spec_.dims.empty(), g == Generator::torus);
    check("switches", !spec_.switches.empty(), g == Generator::explicit_list);
    check("cables", !spec_.cables.empty(), g == Generator::explicit_list);
  }

  std::uint32_t add_switch(std::string name, std::uint8_t level) {
    plan_.switches.push_back({std::move(name), level});
    return u32(plan_.switches.size() - 1);
  }
  void attach(std::size_t host, std::uint32_t to) {
    plan_.cables.push_back({PlannedCable::kHost | u32(host), to, Tier::access, -1});
  }
  void join(std::uint32_t a, std::uint32_t b, Tier tier, std::size_t parallel = 1) {
    for (std::size_t k = 0; k < parallel; ++k) plan_.cables.push_back({a, b, tier, -1});
  }
  // Counts before cables are made, so that a few numbers cannot ask for more memory than there is.
  bool fits(double switches, double cables) {
    if (switches <= static_cast<double>(kMostSwitches) &&
        cables <= static_cast<double>(kMostLinks / 2))
      return true;
    error(fmt::format("{:.0f} switches and {:.0f} cables, more than the {} and {} that can be held",
                      switches, cables, kMostSwitches, kMostLinks / 2),
          "simulate a smaller network");
    return false;
  }
  void error(std::string fact, std::string cure) {
    out_.error(spec_.place, spec_.pointer, std::move(fact), std::move(cure));
  }

  void single_switch() {
    if (hosts_.size() > radix_) {
      return error(
          fmt::format("{} NIC ports do not fit one switch of {} ports", hosts_.size(), radix_),
          "use \"generator\": \"leaf-spine\"");
    }
    const std::uint32_t s = add_switch("switch0", 1);
    for (std::size_t h = 0; h < hosts_.size(); ++h) attach(h, s);
  }

  // Smallest number of upper switches among which `uplinks` equal uplinks of each of `lower` switches fit; 0 if none.
  std::size_t upper_switches(std::size_t lower, std::size_t uplinks) const {
    for (std::size_t n = 1; n <= uplinks; ++n) {
      if (uplinks % n == 0 && lower * (uplinks / n) <= radix_) return n;
    }
    return 0;
  }

  // NIC ports of each leaf, in leaf order; leaves of rail r of a pod follow each other.
  struct Leaves {
    std::vector<std::vector<std::size_t>> hosts;
    std::vector<std::string> names;
  };
  Leaves fill_leaves(std::size_t per_leaf, bool rails) const {
    Leaves out;
    if (!rails) {
      for (std::size_t h = 0; h < hosts_.size(); ++h) {
        if (h % per_leaf == 0) {
          out.names.push_back(fmt::format("leaf{}", out.hosts.size()));
          out.hosts.emplace_back();
        }
        out.hosts.back().push_back(h);
      }
      return out;
    }
    // A rail is a NIC position (and port); a pod is the block of servers whose ports of one rail fill one leaf.
    std::uint32_t rails_count = 0, ports = 1;
    for (const HostPort& host : hosts_) {
      rails_count = std::max(rails_count, host.rail + 1);
      ports = std::max(ports, host.port + 1);
    }
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> index;  // (pod, rail) -> leaf
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const std::size_t pod = hosts_[h].server / per_leaf;
      const std::size_t rail = std::size_t{hosts_[h].rail} * ports + hosts_[h].port;
      index.emplace(std::pair{pod, rail}, 0);
    }
    for (auto& [key, leaf] : index) {
      leaf = out.hosts.size();
      out.hosts.emplace_back();
      out.names.push_back(fmt::format("rail{}/leaf{}", key.second, key.first));
    }
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const std::size_t rail = std::size_t{hosts_[h].rail} * ports + hosts_[h].port;
      out.hosts[index.at({hosts_[h].server / per_leaf, rail})].push_back(h);
    }
    return out;
  }

  // Uplinks are planned for full leaves; with fewer hosts the ratio that was asked for is not what is built.
  void note_ratio(const Leaves& leaves, std::size_t per_leaf, double upward) {
    std::size_t fullest = 0;
    for (const auto& hosts : leaves.hosts) fullest = std::max(fullest, hosts.size());
    if (spec_.oversubscription <= 1 || fullest >= per_leaf) return;
    out_.warning(
        spec_.place, spec_.pointer + "/oversubscription",
        fmt::format(
            "leaves are planned for {} ports of hosts and the fullest has {}: {:.3g} : 1 is "
            "built, not {:g} : 1",
            per_leaf, fullest, static_cast<double>(fullest) / upward, spec_.oversubscription),
        fmt::format("\"hosts_per_leaf\": {}", fullest));
  }

  void clos(bool rails) {
    const auto per_leaf = static_cast<std::size_t>(
        spec_.hosts_per_leaf.value_or(static_cast<std::int64_t>(radix_ / 2)));
    if (hosts_.empty()) return;
    Bandwidth host_rate{0};
    for (const HostPort& host : hosts_) host_rate = std::max(host_rate, host.raw);
    const double wanted = static_cast<double>(per_leaf) * static_cast<double>(host_rate.bps) /
                          (spec_.oversubscription * static_cast<double>(uplink_.bps));
    // The ratio asked for is a ceiling: a fraction of an uplink is rounded up.
    auto uplinks =
        static_cast<std::size_t>(std::clamp(std::ceil(wanted - 1e-9), 1.0, real(kMostPorts)));
    if (spec_.spines) {
      const auto spines = static_cast<std::size_t>(*spec_.spines);
      uplinks = std::max(spines, uplinks / spines * spines + (uplinks % spines != 0 ? spines : 0));
    }
    if (per_leaf + uplinks > radix_) {
      return error(fmt::format("a leaf needs {} ports down and {} up, the switch has {}", per_leaf,
                               uplinks, radix_),
                   "lower hosts_per_leaf, raise the oversubscription or take a larger switch");
    }
    if (!fits(real(hosts_.size() / per_leaf), real(hosts_.size()))) return;
    const Leaves leaves = fill_leaves(per_leaf, rails);
    std::vector<std::uint32_t> leaf_ids;
    for (std::size_t i = 0; i < leaves.hosts.size(); ++i) {
      leaf_ids.push_back(add_switch(leaves.names[i], 1));
      for (const std::size_t host : leaves.hosts[i]) attach(host, leaf_ids.back());
    }
    const std::size_t count = leaf_ids.size();
    note_ratio(leaves, per_leaf,
               static_cast<double>(uplinks) * static_cast<double>(uplink_.bps) /
                   static_cast<double>(host_rate.bps));
    if (count == 1 && !spec_.tiers && !spec_.spines) return;
    if (spec_.tiers == 1) {
      return error(fmt::format("{} leaves cannot be joined without a second level", count),
                   "set tiers to 2 or 3");
    }
    std::size_t spines =
        spec_.spines ? static_cast<std::size_t>(*spec_.spines) : upper_switches(count, uplinks);
    if (spec_.spines && spec_.tiers == 3) {
      return error("\"spines\" counts the second of two levels, there are three",
                   "remove \"spines\", or set tiers to 2");
    }
    if (spec_.spines && count * (uplinks / spines) > radix_) {
      return error(fmt::format("{} leaves with {} cables to each of {} spines do not fit {} ports",
                               count, uplinks / spines, spines, radix_),
                   "raise \"spines\" or the oversubscription, or use a switch with more ports");
    }
    const bool three = spec_.tiers == 3 || (!spec_.tiers && spines == 0);
    if (!three) {
      if (spines == 0) {
        return error(fmt::format("{} leaves with {} uplinks do not fit spines of {} ports", count,
                                 uplinks, radix_),
                     "set tiers to 3, or use a switch with more ports");
      }
      if (!fits(real(count + spines), real(hosts_.size()) + real(count) * real(uplinks))) return;
      for (std::size_t s = 0; s < spines; ++s) {
        const std::uint32_t spine = add_switch(fmt::format("spine{}", s), 2);
        for (const std::uint32_t leaf : leaf_ids)
          join(leaf, spine, Tier::leaf_spine, uplinks / spines);
      }
      return;
    }
    three_level(leaf_ids, uplinks);
  }

  // Pods of leaves under their own spines; spine j of every pod meets at core group j.
  void three_level(const std::vector<std::uint32_t>& leaves, std::size_t uplinks) {
    const std::size_t per_pod = std::max<std::size_t>(1, radix_ / 2);
    const std::size_t pods = (leaves.size() + per_pod - 1) / per_pod;
    const std::size_t up =
        std::min(per_pod, leaves.size());  // a spine's uplinks equal its downlinks
    const std::size_t cores_per_group = upper_switches(pods, up);
    if (cores_per_group == 0) {
      return error(
          fmt::format("{} pods of {} leaves do not fit cores of {} ports", pods, per_pod, radix_),
          "use a switch with more ports; three levels are the most there are");
    }
    if (!fits(real(leaves.size()) + real(uplinks) * real(pods + cores_per_group),
              real(hosts_.size()) + real(leaves.size()) * real(uplinks) +
                  real(uplinks) * real(pods) * real(up))) {
      return;
    }
    std::vector<std::vector<std::uint32_t>> spines(pods);
    for (std::size_t pod = 0; pod < pods; ++pod) {
      for (std::size_t j = 0; j < uplinks; ++j) {
        spines[pod].push_back(add_switch(fmt::format("pod{}/spine{}", pod, j), 2));
        for (std::size_t i = pod * per_pod; i < std::min(leaves.size(), (pod + 1) * per_pod); ++i) {
          join(leaves[i], spines[pod].back(), Tier::leaf_spine);
        }
      }
    }
    for (std::size_t j = 0; j < uplinks; ++j) {
      for (std::size_t c = 0; c < cores_per_group; ++c) {
        const std::uint32_t core = add_switch(fmt::format("core{}", j * cores_per_group + c), 3);
        for (std::size_t pod = 0; pod < pods; ++pod)
          join(spines[pod][j], core, Tier::spine_core, up / cores_per_group);
      }
    }
  }

  void dragonfly() {
    if (hosts_.empty()) return;
    const auto quarter = std::max<std::int64_t>(1, static_cast<std::int64_t>(radix_ / 4));
    const auto per_router = static_cast<std::size_t>(spec_.hosts_per_router.value_or(quarter));
    const auto routers = static_cast<std::size_t>(
        spec_.routers_per_group.value_or(static_cast<std::int64_t>(radix_ / 2)));
    const auto global = static_cast<std::size_t>(spec_.global_links_per_router.value_or(quarter));
    if (per_router + routers - 1 + global > radix_) {
      return error(fmt::format("a router needs {} + {} + {} ports, the switch has {}", per_router,
                               routers - 1, global, radix_),
                   "lower hosts_per_router, routers_per_group or global_links_per_router");
    }
    const std::size_t per_group = per_router * routers;
    const std::size_t groups = (hosts_.size() + per_group - 1) / per_group;
    if (groups > 1 && groups - 1 > routers * global) {
      return error(fmt::format("{} groups need {} global links per group, there are {}", groups,
                               groups - 1, routers * global),
                   "raise global_links_per_router or routers_per_group");
    }
    if (!fits(real(groups) * real(routers),
              real(hosts_.size()) + real(groups) * real(routers) * real(routers - 1 + global) / 2))
      return;
    std::vector<std::uint32_t> ids;
    for (std::size_t g = 0; g < groups; ++g) {
      for (std::size_t r = 0; r < routers; ++r) {
        ids.push_back(add_switch(fmt::format("group{}/router{}", g, r), 1));
        for (std::size_t other = 0; other < r; ++other)
          join(ids[g * routers + other], ids.back(), Tier::group);
      }
    }
    for (std::size_t h = 0; h < hosts_.size(); ++h) attach(h, ids[h / per_router]);
    if (groups < 2) return;
    // Port k of group i leads to group i + k + 1 (mod groups), round and round while ports last; port k sits on router
    // k / global. The other end is the port that leads back.
    const std::size_t rounds = routers * global / (groups - 1);
    for (std::size_t i = 0; i < groups; ++i) {
      for (std::size_t step = 1; step < groups; ++step) {
        const std::size_t j = (i + step) % groups;
        if (i > j) continue;
        for (std::size_t round = 0; round < rounds; ++round) {
          const std::size_t out = round * (groups - 1) + step - 1;
          const std::size_t back = round * (groups - 1) + (groups - step) - 1;
          join(ids[i * routers + out / global], ids[j * routers + back / global], Tier::global);
        }
      }
    }
  }

  void torus() {
    std::size_t points = 1;
    for (const std::int64_t d : spec_.dims) {
      if (d < 1 || d > 65536 || points * static_cast<std::size_t>(d) > kMostSwitches) {
        return error(fmt::format("dims: {} is not a possible size of a dimension", d),
                     "each at least 1, 10^6 points at most");
      }
      points *= static_cast<std::size_t>(d);
    }
    if (spec_.dims.empty()) return error("a torus needs \"dims\"", "e.g. \"dims\": [4, 4, 4]");
    const std::size_t per_point = (hosts_.size() + points - 1) / points;
    if (per_point + 2 * spec_.dims.size() > radix_) {
      return error(
          fmt::format("{} NIC ports at each of {} points and {} neighbours do not fit {} ports",
                      per_point, points, 2 * spec_.dims.size(), radix_),
          "enlarge dims");
    }
    if (!fits(real(points), real(hosts_.size()) + real(points) * real(spec_.dims.size()))) return;
    for (std::size_t p = 0; p < points; ++p) add_switch(fmt::format("torus{}", p), 1);
    std::size_t stride = 1;
    for (const std::int64_t dim : spec_.dims) {
      const auto size = static_cast<std::size_t>(dim);
      for (std::size_t p = 0; p < points && size > 1; ++p) {
        const std::size_t at = p / stride % size;
        if (at + 1 == size && size == 2) continue;  // two points: one cable, not two
        const std::size_t next = at + 1 == size ? p - (size - 1) * stride : p + stride;
        join(u32(p), u32(next), Tier::torus);
      }
      stride *= size;
    }
    for (std::size_t h = 0; h < hosts_.size(); ++h)
      attach(h, u32(h / std::max<std::size_t>(1, per_point)));
  }

  void explicit_list() {
    std::map<std::string, std::uint32_t, std::less<>> switches;
    std::map<std::string, std::vector<std::uint32_t>, std::less<>>
        hosts;  // free ports of a NIC, the next one last
    for (const std::string& name : spec_.switches) {
      if (name.empty() || name.find_first_of(":#[]") != std::string::npos ||
          name.find("/up") != std::string::npos) {
        error(fmt::format("\"{}\" is not a name of a switch", name),
              "a name without : # [ ] and /up, e.g. \"leaf0\"");
      }
      if (!switches.emplace(name, u32(plan_.switches.size())).second) {
        error(fmt::format("the switch \"{}\" is listed twice", name), "give each its own name");
      }
      add_switch(name, 1);
    }
    for (std::size_t h = hosts_.size(); h-- > 0;) hosts[hosts_[h].name].push_back(u32(h));
    std::vector<std::size_t> used(spec_.switches.size());  // ports
    for (std::size_t c = 0; c < spec_.cables.size(); ++c) {
      const CableEntry& cable = spec_.cables[c];
      const auto b = switches.find(cable.b);
      const auto a_switch = switches.find(cable.a);
      const auto a_host = hosts.find(cable.a);
      if (b == switches.end() || (a_switch == switches.end() && a_host == hosts.end())) {
        out_.error(cable.place, cable.pointer,
                   fmt::format("\"{}\" is not {}", b == switches.end() ? cable.b : cable.a,
                               b == switches.end()
                                   ? "a listed switch"
                                   : fmt::format("a NIC such as {} or a listed switch",
                                                 hosts_.empty() ? "nic0" : hosts_.front().name)),
                   "name NICs by `weft topo` and switches as in \"switches\"");
        continue;
      }
      const bool host = a_switch == switches.end();
      if (!host && a_switch->second == b->second) {
        out_.error(cable.place, cable.pointer, "a cable from a switch to itself", "name two ends");
        continue;
      }
      if (host && a_host->second.size() < static_cast<std::size_t>(cable.count)) {
        out_.error(cable.place, cable.pointer,
                   fmt::format("\"{}\" has no free port for this cable", cable.a),
                   "a NIC takes one cable per port");
        continue;
      }
      used[b->second] += static_cast<std::size_t>(cable.count);
      if (!host) used[a_switch->second] += static_cast<std::size_t>(cable.count);
      if (!fits(0, real(plan_.cables.size()) + real(static_cast<std::size_t>(cable.count)))) return;
      for (std::int64_t k = 0; k < cable.count; ++k) {
        std::uint32_t a = 0;
        if (host) {
          a = PlannedCable::kHost | a_host->second.back();
          a_host->second.pop_back();
        } else {
          a = a_switch->second;
        }
        plan_.cables.push_back({a, b->second, host ? Tier::access : Tier::cable,
                                cable.link ? static_cast<std::int32_t>(c) : -1});
      }
    }
    for (std::size_t s = 0; s < used.size(); ++s) {
      if (used[s] <= radix_) continue;
      error(fmt::format("the switch \"{}\" has {} cables and {} ports", spec_.switches[s], used[s],
                        radix_),
            "move cables to another switch, or use one with more ports");
    }
  }

  const NetworkSpec& spec_;
  const std::vector<HostPort>& hosts_;
  Bandwidth uplink_;
  Diagnostics& out_;
  std::size_t radix_;
  NetworkPlan plan_;
};

}  // namespace

NetworkPlan plan_network(const NetworkSpec& spec, const std::vector<HostPort>& hosts,
                         Bandwidth uplink, Diagnostics& out) {
  return Planner(spec, hosts, uplink, out).plan();
}

}  // namespace weft
