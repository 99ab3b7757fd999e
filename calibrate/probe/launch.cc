// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/launch.hpp"

#include <charconv>
#include <cstdlib>

namespace weft {
namespace {

struct Launcher {
  const char *rank, *size, *local_rank;
};
// Slurm's variables of a step: those of an allocation are there without srun, too.
constexpr Launcher kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};
constexpr int kMostProcesses = 65536, kLastPort = 65535;

std::optional<int> whole(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  int value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace

Launch read_launch(const std::function<std::optional<std::string>(const char*)>& variable) {
  Launch out;
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = whole(variable(launcher.rank)), size = whole(variable(launcher.size));
    if (!rank || !size || *size < 2 || *size > kMostProcesses || *rank < 0 || *rank >= *size)
      continue;
    out.rank = *rank;
    out.size = *size;
    out.local_rank = whole(variable(launcher.local_rank)).value_or(*rank);
    break;
  }
  if (const auto master = variable("MASTER_ADDR"); master && !master->empty()) out.master = *master;
  if (const auto port = whole(variable("MASTER_PORT")); port && *port > 0 && *port < kLastPort)
    out.port = *port + 1;
  if (const auto port = whole(variable("WEFT_PROBE_PORT")); port && *port > 0 && *port <= kLastPort)
    out.port = *port;
  return out;
}

Launch read_launch() {
  return read_launch([](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace weft
