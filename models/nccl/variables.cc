// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/variables.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace weft::nccl {
namespace {

std::optional<std::int64_t> integer(const NcclEnvironment& environment, const char* name,
                                    std::int64_t low, std::int64_t high, Diagnostics& diagnostics) {
  const std::string* text = environment.find(name);
  if (text == nullptr) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < low || value > high) {
    diagnostics.error({}, name,
                      fmt::format("\"{}\" is not a number from {} to {}", *text, low, high));
    return std::nullopt;
  }
  return value;
}

// A class by name, or by the numbers of old releases.
std::optional<NcclPath> level(const NcclEnvironment& environment, const char* name,
                              Diagnostics& diagnostics) {
  const std::string* text = environment.find(name);
  if (text == nullptr) return std::nullopt;
  for (const auto& entry : enum_names(NcclPath{})) {
    if (entry.value <= NcclPath::sys && entry.name == *text) return entry.value;
  }
  if (text->size() == 1 && (*text)[0] >= '0' && (*text)[0] <= '9') {
    using enum NcclPath;
    constexpr std::array<NcclPath, 6> kOld{loc, pix, pxb, phb, sys, sys};
    return kOld[std::min<std::size_t>(static_cast<std::size_t>((*text)[0] - '0'), 5)];
  }
  diagnostics.error({}, name, fmt::format("\"{}\" is not a path class", *text),
                    "LOC, NVL, PIX, PXB, PHB or SYS");
  return std::nullopt;
}

// Read here, by the tuner (NCCL_ALGO, NCCL_PROTO), or both.
constexpr std::string_view kNames[] = {"NCCL_ALGO",
                                       "NCCL_COLLNET_ENABLE",
                                       "NCCL_COLLNET_NODE_THRESHOLD",
                                       "NCCL_CROSS_NIC",
                                       "NCCL_MAX_CTAS",
                                       "NCCL_MAX_NCHANNELS",
                                       "NCCL_MAX_NRINGS",
                                       "NCCL_MAX_P2P_NCHANNELS",
                                       "NCCL_MIN_CTAS",
                                       "NCCL_MIN_NCHANNELS",
                                       "NCCL_MIN_NRINGS",
                                       "NCCL_MIN_P2P_NCHANNELS",
                                       "NCCL_MNNVL_ENABLE",
                                       "NCCL_NCHANNELS_PER_NET_PEER",
                                       "NCCL_NET_GDR_LEVEL",
                                       "NCCL_NVB_DISABLE",
                                       "NCCL_NVLS_ENABLE",
                                       "NCCL_NVLS_NCHANNELS",
                                       "NCCL_P2P_DISABLE",
                                       "NCCL_P2P_LEVEL",
                                       "NCCL_PROTO",
                                       "NCCL_PXN_C2C",
                                       "NCCL_PXN_DISABLE"};

}  // namespace

std::span<const std::string_view> variable_names() { return kNames; }

Variables read_variables(const NcclEnvironment& environment) {
  Diagnostics diagnostics;
  Variables out = read_variables(environment, diagnostics);
  diagnostics.throw_if_errors();
  return out;
}

Variables read_variables(const NcclEnvironment& environment, Diagnostics& diagnostics) {
  const auto number = [&](const char* name, std::int64_t low, std::int64_t high) {
    return integer(environment, name, low, high, diagnostics);
  };
  Variables out;
  out.policy.p2p_level = level(environment, "NCCL_P2P_LEVEL", diagnostics);
  if (number("NCCL_P2P_DISABLE", 0, 1).value_or(0) == 1) out.policy.p2p_level = NcclPath::loc;
  out.policy.gdr_level = level(environment, "NCCL_NET_GDR_LEVEL", diagnostics);
  out.policy.pxn = number("NCCL_PXN_DISABLE", 0, 1).value_or(0) == 0;
  out.policy.nvb = number("NCCL_NVB_DISABLE", 0, 1).value_or(0) == 0;
  out.policy.pxn_c2c = number("NCCL_PXN_C2C", 0, 1).value_or(0) == 1;
  out.search.cross_nic = static_cast<int>(number("NCCL_CROSS_NIC", 0, 2).value_or(2));

  // Newer names win over older ones.
  const auto newest = [&](std::initializer_list<const char*> names) {
    std::optional<std::int64_t> found;
    for (const char* name : names) {
      if (const auto value = number(name, 1, 64)) found = value;
    }
    return found;
  };
  out.min_channels = newest({"NCCL_MIN_NRINGS", "NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS"});
  out.max_channels = newest({"NCCL_MAX_NRINGS", "NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS"});
  out.nvls_channels = number("NCCL_NVLS_NCHANNELS", 1, 64);
  out.min_p2p = number("NCCL_MIN_P2P_NCHANNELS", 1, 64);
  out.max_p2p = number("NCCL_MAX_P2P_NCHANNELS", 1, 64);
  out.net_peer = number("NCCL_NCHANNELS_PER_NET_PEER", 1, 64);
  out.collnet_nodes = number("NCCL_COLLNET_NODE_THRESHOLD", 0, 1'000'000);
  out.nvls = number("NCCL_NVLS_ENABLE", 0, 2).value_or(2) != 0;
  out.collnet = number("NCCL_COLLNET_ENABLE", 0, 1).value_or(0) == 1;
  out.mnnvl = number("NCCL_MNNVL_ENABLE", 0, 2).value_or(2) != 0;
  return out;
}

}  // namespace weft::nccl
