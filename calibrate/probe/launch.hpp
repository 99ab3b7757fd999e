// SPDX-License-Identifier: Apache-2.0
// Which process of how many this is, as its launcher says: torchrun, Open MPI, MPICH and Slurm's srun.
//
// The first process listens at MASTER_ADDR (torchrun sets it; by default this host, enough for one server), one port above
// MASTER_PORT, or at WEFT_PROBE_PORT.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace weft {

struct Launch {
  int rank = 0, size = 1, local_rank = 0;
  std::string master = "127.0.0.1";
  int port = 29471;
};

// `variable` is getenv, or a test's own. A launcher whose numbers make no sense counts as none.
Launch read_launch(const std::function<std::optional<std::string>(const char*)>& variable);
Launch read_launch();

}  // namespace weft
