// SPDX-License-Identifier: Apache-2.0
// The command line of weft-probe: which backend, which plan, where the results go.
//
//   weft-probe -o box.json                                             this machine
//   weft-probe --backend synthetic --fabric hgx-h100 --seed 7 -o box.json
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace weft {

// Exit codes as of weft: 0 ok, 2 bad input, 3 a device, library or tool is missing, 4 stopped before the end, 70 our bug.
int run_probe(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

}  // namespace weft
