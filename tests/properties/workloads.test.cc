// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>

#include "models/analytic/bounds.hpp"
#include "sim/core/check.hpp"
#include "tests/properties/random_machines.hpp"
#include "tests/support/tiny.hpp"

namespace weft::properties {
namespace {

std::string random_job(const Fabric& fabric, int index, bool endless) {
  const int gpus = static_cast<int>(fabric.gpus().size());
  std::string out =
      fmt::format(R"({{"name": "job{}", "start": "{} us", "placement": {{"policy": "{}"}})", index,
                  between(0, 50), any_of<std::string>({"packed", "spread", "random"}));
  if (endless) {
    out += R"(, "repeat": "until-end")";
  } else if (chance(30)) {
    out += fmt::format(R"(, "repeat": {})", between(1, 4));
  }
  const auto gpu = [&] {
    return fabric.name(fabric.gpus()[static_cast<std::size_t>(between(0, gpus - 1))]);
  };
  const std::string size = fmt::format("{} B", any_of({0, 1, 4097, 1'000'003, 50'000'000}));
  switch (between(0, 3)) {
    case 0: {
      out += fmt::format(
          R"(, "gpus": {}, "size": "{}", "collective": "{}", "channels": {}, "expand": {})",
          between(1, std::max(1, gpus / 3)), size,
          any_of<std::string>({"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                               "broadcast", "reduce", "gather", "scatter", "send_recv"}),
          between(1, 4), chance(40));
      break;
    }
    case 1:
      out += fmt::format(
          R"(, "gpus": {}, "size": "{}", "pattern": "{}")", between(1, std::max(1, gpus / 3)), size,
          any_of<std::string>({"permutation", "incast", "all_to_all", "random", "ring"}));
      break;
    case 2:
      out += fmt::format(
          R"(, "p2p": {{"src": "{}", "dst": "{}", "size": "{} B", "bidirectional": {}, "peer_access": {}}})",
          gpu(), gpu(), between(1, 10'000'000), chance(50), chance(70));
      break;
    default: {
      out += R"(, "flows": [)";
      const int flows = between(1, 6);
      for (int f = 0; f < flows; ++f) {
        out +=
            fmt::format(R"({}{{"src": "{}", "dst": "{}", "size": "{} B", "start": "{} us"}})",
                        f > 0 ? ", " : "", gpu(), gpu(), between(0, 10'000'000), between(0, 500));
      }
      out += "]";
    }
  }
  return out + "}";
}

RC_GTEST_PROP(RandomWorkloads, FinishConserveBytesAndRespectTheBound, ()) {
  const Built built = random_valid_fabric();
  const Fabric& fabric = built.fabric;
  const int jobs = between(1, 3);
  std::string members = fmt::format(R"("seed": {}, "fidelity": "{}", "jobs": [)", between(0, 1000),
                                    any_of<std::string>({"analytic", "fluid"}));
  for (int j = 0; j < jobs; ++j)
    members += (j > 0 ? ", " : "") + random_job(fabric, j, j > 0 && chance(20));
  members += "]";
  RC_LOG() << built.text << "\n" << members << "\n";
  test::Traffic traffic;
  Report report;
  try {
    report = test::run(fabric, members, &traffic);
  } catch (const InputError&) {
    return;  // two GPUs of this machine do not reach each other, or too few are left: said, not crashed
  }
  RC_ASSERT(std::isfinite(report.time_s));
  const bool endless = members.find("until-end") != std::string::npos;
  for (std::uint32_t r = 0; r < traffic.injected.size(); ++r) {
    const double injected = traffic.injected[r];
    // What an endless job has under way at the end is dropped.
    RC_ASSERT(traffic.carried[r] <= injected * (1 + 1e-9) + 1);
    if (!endless) RC_ASSERT(traffic.carried[r] >= injected * (1 - 1e-9) - 1);
    if (report.fidelity == "fluid") {
      RC_ASSERT(traffic.carried[r] <=
                fabric.capacity(r).bytes_per_s() * traffic.busy[r].seconds() * (1 + 1e-9) + 1);
    }
  }
  if (endless) return;
  RC_ASSERT(traffic.finished == traffic.messages.size());
  if (report.fidelity == "analytic") return;  // an estimate: flows of other instants are not seen
  RC_ASSERT(report.time_s * (1 + 1e-9) >= report.bound_s);
  std::vector<BoundMessage> messages;
  for (const auto& m : traffic.messages) messages.push_back({m.shares, m.size, m.latency});
  RC_ASSERT(test::time_of(report) >= lower_bound(fabric.capacities(), messages).time);
}

}  // namespace
}  // namespace weft::properties
