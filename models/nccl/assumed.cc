// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/assumed.hpp"

#include <array>

namespace weft::nccl {
namespace {

template <class T>
struct Since {
  NcclVersion first;
  T value;
};

// The last row that the release has; tables begin with 2.5.
template <class T, std::size_t N>
const T& pick(const std::array<Since<T>, N>& table, NcclVersion version) {
  const T* found = &table.front().value;
  for (const auto& row : table) {
    if (row.first <= version) found = &row.value;
  }
  return *found;
}

struct NvlinkSpeeds {
  Speed pascal, volta, ampere, ampere_86, hopper, blackwell;
};
constexpr std::array<Since<NvlinkSpeeds>, 7> kNvlink{{
    {{2, 5, 6}, {18'000, 21'000, 21'000, 21'000, 21'000, 21'000}},
    {{2, 8, 3}, {18'000, 21'000, 21'000, 12'000, 21'000, 21'000}},
    {{2, 10, 3}, {18'000, 22'000, 22'000, 12'000, 22'000, 22'000}},
    {{2, 18, 1}, {18'000, 20'000, 20'000, 12'000, 20'000, 20'000}},
    {{2, 20, 3}, {18'000, 20'000, 20'000, 12'000, 20'600, 20'600}},
    {{2, 25, 1}, {18'000, 20'000, 20'000, 12'000, 20'600, 40'000}},
    {{2, 27, 5}, {18'000, 20'000, 20'000, 12'000, 20'600, 40'100}},
}};

struct SocketSpeeds {
  Speed broadwell, skylake, sapphire_rapids, emerald_rapids, amd, power, arm;
};
constexpr std::array<Since<SocketSpeeds>, 5> kSocket{{
    {{2, 5, 6}, {8'000, 12'000, 12'000, 12'000, kLocalSpeed, 32'000, kLocalSpeed}},
    {{2, 6, 4}, {6'000, 9'000, 9'000, 9'000, kLocalSpeed, 32'000, 6'000}},
    {{2, 18, 1}, {6'000, 10'000, 10'000, 10'000, kLocalSpeed, 32'000, 6'000}},
    {{2, 19, 1}, {6'000, 10'000, 10'000, 10'000, 16'000, 32'000, 6'000}},
    {{2, 26, 2}, {6'000, 10'000, 22'000, 40'000, 16'000, 32'000, 6'000}},
}};

// Release 2.5 has no table: it goes down from one link's speed in steps of 3 GB/s.
constexpr Speed k25[] = {21'000, 18'000, 15'000, 12'000, 9'000, 6'000, 3'000};
constexpr Speed k26[] = {24'000, 21'000, 18'000, 15'000, 12'000, 10'000, 9'000, 7'000,
                         6'000,  5'000,  4'000,  3'000,  2'400,  1'200,  240,   120};
constexpr Speed k27[] = {42'000, 24'000, 21'000, 18'000, 15'000, 12'000, 10'000, 9'000, 7'000,
                         6'000,  5'000,  4'000,  3'000,  2'400,  1'200,  240,    120};
constexpr Speed k28[] = {42'000, 30'000, 24'000, 21'000, 18'000, 15'000, 12'000, 10'000, 9'000,
                         7'000,  6'000,  5'000,  4'000,  3'000,  2'400,  1'200,  240,    120};
constexpr Speed k210In[] = {44'000, 30'000, 22'000, 18'000, 15'000, 12'000, 10'000,
                            9'000,  7'000,  6'000,  5'000,  4'000,  3'000};
constexpr Speed k210Net[] = {48'000, 30'000, 24'000, 22'000, 18'000, 15'000, 12'000, 10'000, 9'000,
                             7'000,  6'000,  5'000,  4'000,  3'000,  2'400,  1'200,  240,    120};
constexpr Speed k215Net[] = {48'000, 30'000, 28'000, 24'000, 22'000, 18'000, 15'000,
                             12'000, 10'000, 9'000,  7'000,  6'000,  5'000,  4'000,
                             3'000,  2'400,  1'200,  240,    120};
constexpr Speed k218In[] = {40'000, 30'000, 20'000, 18'000, 15'000, 12'000, 10'000,
                            9'000,  7'000,  6'000,  5'000,  4'000,  3'000};
constexpr Speed k218Net[] = {48'000, 30'000, 28'000, 24'000, 20'000, 18'000, 15'000,
                             12'000, 10'000, 9'000,  7'000,  6'000,  5'000,  4'000,
                             3'000,  2'400,  1'200,  240,    120};
constexpr Speed k216In90[] = {66'000, 33'000, 24'000, 20'000, 15'000, 12'000, 6'000, 3'000};
constexpr Speed k216Net90[] = {48'000, 45'000, 30'000, 24'000, 15'000, 12'000,
                               6'000,  3'000,  2'400,  1'200,  240,    120};
constexpr Speed k218In90[] = {60'000, 40'000, 30'000, 24'000, 20'000, 15'000, 12'000, 6'000, 3'000};
constexpr Speed k218Net90[] = {48'000, 45'000, 42'000, 40'000, 30'000, 24'000, 20'000, 17'500,
                               15'000, 12'000, 6'000,  3'000,  2'400,  1'200,  240,    120};
constexpr Speed k219In90[] = {60'000, 50'000, 40'000, 30'000, 24'000,
                              20'000, 15'000, 12'000, 6'000,  3'000};
constexpr Speed k219Net90[] = {48'000, 45'000, 42'000, 40'000, 30'000, 24'000,
                               22'000, 20'000, 17'500, 15'000, 12'000, 6'000,
                               3'000,  2'400,  1'200,  240,    120};
constexpr Speed k221In90[] = {60'000, 50'000, 40'000, 30'000, 24'000, 20'000,
                              15'000, 12'000, 11'000, 6'000,  3'000};
constexpr Speed k225In100[] = {90'000, 80'000, 70'000, 60'000, 50'000,
                               40'000, 30'000, 24'000, 20'000, 19'000};
constexpr Speed k227In100[] = {90'000, 80'000, 70'000, 60'000, 50'000, 40'000,
                               30'000, 24'000, 20'000, 19'000, 18'000};
constexpr Speed k229In100[] = {90'000, 80'000, 70'000, 60'000, 50'000, 45'000,
                               40'000, 30'000, 24'000, 20'000, 19'000, 18'000};
constexpr Speed k2273Net100[] = {47'900, 45'000, 42'000, 40'000, 30'000, 24'000,
                                 22'000, 20'000, 17'500, 15'000, 12'000, 6'000,
                                 3'000,  2'400,  1'200,  240,    120};
constexpr Speed k2275Net100[] = {48'000, 45'100, 42'000, 40'000, 30'000, 24'000,
                                 22'000, 20'000, 17'500, 15'000, 12'000, 6'000,
                                 3'000,  2'400,  1'200,  240,    120};
constexpr Speed k2276Net100[] = {96'000, 48'000, 45'100, 42'000, 40'000, 30'000,
                                 24'000, 22'000, 20'000, 17'500, 15'000, 12'000,
                                 6'000,  3'000,  2'400,  1'200,  240,    120};
constexpr Speed k2297Net100[] = {96'000, 80'000, 48'000, 45'100, 42'000, 40'000, 30'000,
                                 24'000, 22'000, 20'000, 17'500, 15'000, 12'000, 6'000,
                                 3'000,  2'400,  1'200,  240,    120};
constexpr Speed k230Net100[] = {96'000, 86'000, 80'000, 48'000, 45'100, 42'000, 40'000,
                                30'000, 24'000, 22'000, 20'000, 17'500, 15'000, 12'000,
                                6'000,  3'000,  2'400,  1'200,  240,    120};

using Speeds = std::span<const Speed>;
const std::array<Since<Speeds>, 6> kInside{{{{2, 5, 6}, k25},
                                            {{2, 6, 4}, k26},
                                            {{2, 7, 3}, k27},
                                            {{2, 8, 3}, k28},
                                            {{2, 10, 3}, k210In},
                                            {{2, 18, 1}, k218In}}};
const std::array<Since<Speeds>, 7> kNetwork{{{{2, 5, 6}, k25},
                                             {{2, 6, 4}, k26},
                                             {{2, 7, 3}, k27},
                                             {{2, 8, 3}, k28},
                                             {{2, 10, 3}, k210Net},
                                             {{2, 15, 1}, k215Net},
                                             {{2, 18, 1}, k218Net}}};
const std::array<Since<Speeds>, 4> kInside90{{{{2, 16, 2}, k216In90},
                                              {{2, 18, 1}, k218In90},
                                              {{2, 19, 1}, k219In90},
                                              {{2, 21, 5}, k221In90}}};
const std::array<Since<Speeds>, 3> kNetwork90{
    {{{2, 16, 2}, k216Net90}, {{2, 18, 1}, k218Net90}, {{2, 19, 1}, k219Net90}}};
const std::array<Since<Speeds>, 3> kInside100{
    {{{2, 25, 1}, k225In100}, {{2, 27, 3}, k227In100}, {{2, 29, 2}, k229In100}}};
const std::array<Since<Speeds>, 6> kNetwork100{{{{2, 25, 1}, k219Net90},
                                                {{2, 27, 3}, k2273Net100},
                                                {{2, 27, 5}, k2275Net100},
                                                {{2, 27, 6}, k2276Net100},
                                                {{2, 29, 7}, k2297Net100},
                                                {{2, 30, 3}, k230Net100}}};

constexpr std::array<Since<Budgets>, 4> kBudgets{{
    {{2, 5, 6}, {3 << 19, 1 << 18, 1 << 17, 1 << 10}},
    {{2, 12, 7}, {1 << 18, 1 << 14, 1 << 14, 1 << 8}},
    {{2, 18, 1}, {5 << 16, 1 << 14, 1 << 14, 1 << 8}},
    {{2, 19, 1}, {1 << 19, 1 << 14, 1 << 14, 1 << 8}},
}};

constexpr std::array<Since<Doubling>, 4> kDoubling{{{{2, 5, 6}, Doubling::never},
                                                    {{2, 7, 3}, Doubling::from_25},
                                                    {{2, 16, 2}, Doubling::hopper_from_50},
                                                    {{2, 18, 1}, Doubling::few_fast}}};
constexpr std::array<Since<NicOrder>, 5> kNicOrder{{{{2, 5, 6}, NicOrder::as_listed},
                                                    {{2, 9, 6}, NicOrder::fastest},
                                                    {{2, 12, 7}, NicOrder::nearest},
                                                    {{2, 19, 1}, NicOrder::preferred},
                                                    {{2, 27, 5}, NicOrder::preferred_gpu_first}}};
constexpr std::array<Since<NicChoice>, 3> kNicChoice{{{{2, 5, 6}, NicChoice::by_device},
                                                      {{2, 18, 1}, NicChoice::in_turn},
                                                      {{2, 19, 1}, NicChoice::mirrored_bits}}};
constexpr std::array<Since<NvlsCounts>, 3> kNvls{
    {{{2, 5, 6}, {16, 16, 16}}, {{2, 25, 1}, {16, 32, 32}}, {{2, 27, 3}, {16, 32, 24}}}};
constexpr std::array<Since<int>, 3> kNetChannels{
    {{{2, 5, 6}, 1}, {{2, 12, 7}, 2}, {{2, 21, 5}, -1}}};

}  // namespace

Speed nvlink_speed(NcclVersion version, int compute_capability) {
  const NvlinkSpeeds& speeds = pick(kNvlink, version);
  const int cc = compute_capability;
  if (cc >= 100) return speeds.blackwell;
  if (cc >= 90) return speeds.hopper;
  if (cc == 86) return speeds.ampere_86;
  if (cc >= 80) return speeds.ampere;
  if (cc >= 70) return speeds.volta;
  return speeds.pascal;
}

Speed socket_speed(NcclVersion version, CpuKind kind) {
  const SocketSpeeds& speeds = pick(kSocket, version);
  switch (kind) {
    case CpuKind::broadwell:
      return speeds.broadwell;
    case CpuKind::skylake:
      return speeds.skylake;
    case CpuKind::sapphire_rapids:
      return speeds.sapphire_rapids;
    case CpuKind::emerald_rapids:
      return speeds.emerald_rapids;
    case CpuKind::amd:
      return speeds.amd;
    case CpuKind::power:
      return speeds.power;
    case CpuKind::arm:
      return speeds.arm;
  }
  return kLocalSpeed;
}

Speeds trial_speeds(NcclVersion version, int compute_capability, bool network) {
  if (compute_capability >= 100 && version >= NcclVersion{2, 25, 1})
    return network ? pick(kNetwork100, version) : pick(kInside100, version);
  if (compute_capability >= 90 && version >= NcclVersion{2, 16, 2})
    return network ? pick(kNetwork90, version) : pick(kInside90, version);
  return network ? pick(kNetwork, version) : pick(kInside, version);
}

Rules rules_of(NcclVersion version) {
  const auto since = [&](int minor, int patch = 0) {
    return version >= NcclVersion{2, minor, patch};
  };
  return {
      .version = version,
      .most_channels = since(25) ? 64U : 32U,
      .budgets = pick(kBudgets, version),
      .relay_through_gpu = since(8),
      .relay_to_nic = since(12),
      .any_relay_gpu = !since(18),
      .c2c_to_nic = since(27),
      .one_link_per_channel = !since(7),
      .total_ends = since(8),
      .total_limits_start = since(18),
      .doubling = pick(kDoubling, version),
      .doubles_before_raise = since(19),
      .raise_rings = since(19),
      .split_below_80 = since(8) && !since(17),
      .tree_by_nodes = since(8) && !since(10),
      .split_always = !since(8),
      .chain_after_balanced = since(18),
      .chain_early = !since(12),
      .chain_late = since(12) && !since(18),
      .tree_as_many_as_ring = since(18),
      .both_ways_checked = since(18),
      .nvs_neighbours_first = since(19),
      .nvs_neighbours_only = since(21),
      .not_same_only = since(19),
      .types_from_machine = since(25),
      .rotates_nets = since(19),
      .replay_is_alone = since(27, 5),
      .local_gpus_only = since(27),
      .local_gpu_first = since(27, 5),
      .skips_pci_order_on_nvs = since(19),
      .two_nvlink_halves_two_rings = since(26),
      .nic_choice = pick(kNicChoice, version),
      .nic_order = pick(kNicOrder, version),
      .cross_retry = since(23) ? 2 : 1,
      .crossing_costs = since(18) && !since(20),
      .cross_pairs = since(20),
      .cross_any_pattern = !since(23),
      .swap_odd_nodes = since(20),
      .swap_needs_even_nodes = !since(21),
      .swap_cross_nic = since(26, 2) ? 2 : 1,
      .swap_by_node = since(28),
      .nvls_graph = since(18),
      .nvls_most_heads = since(25) ? 32U : 64U,
      .nvls_least_gpus = since(28, 7) || !since(18) ? 2U : 3U,
      .nvls = pick(kNvls, version),
      .nvls_extends_channels = since(20) && !since(28),
      .hopper_doubles = since(18),
      .hopper_doubles_blackwell = since(25),
      .hopper_doubles_below = since(20) ? 16U : 17U,
      .multi_node_nvlink = since(21),
      .collnet_direct = since(22),
      .pcie_known_generation = since(11) ? 6 : 4,
      .net_channels_per_peer = pick(kNetChannels, version),
      .peer_channels_by_network = since(29),
      .nvls_by_nic = since(30),
  };
}

NcclPath Rules::farther(NcclPath type) const {
  do {
    type = static_cast<NcclPath>(static_cast<int>(type) + 1);
  } while ((type == NcclPath::nvb && !relay_through_gpu) ||
           (type == NcclPath::c2c && version < NcclVersion{2, 26, 0}) ||
           (type == NcclPath::p2c && !c2c_to_nic) || (type == NcclPath::pxn && !relay_to_nic));
  return type;
}

NcclPath Rules::p2p_level(CpuKind cpu, std::size_t gpus) const {
  using enum NcclPath;
  if (version >= NcclVersion{2, 23, 0}) return cpu == CpuKind::amd && gpus <= 2 ? sys : pxb;
  if (cpu == CpuKind::arm) return pxb;
  if (!is_intel(cpu)) return sys;
  if (version >= NcclVersion{2, 9, 0} || cpu == CpuKind::broadwell) return pxb;
  return version >= NcclVersion{2, 7, 0} ? phb : sys;
}

}  // namespace weft::nccl
