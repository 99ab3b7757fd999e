// SPDX-License-Identifier: Apache-2.0
// Which part of a machine is not what it should be: a fit explains all parts of one kind by one value, so a part that differs
// leaves residuals on every path that crosses it, and only there.
//
//   slow link       copies that cross one cable take longer, by one factor; of a switched machine all NVLinks of one GPU
//                   (the link between two sockets: at any part of its rate, as forwarding for peers is what limits it)
//   half width      the same with a factor near 1/2 or 1/4 on a PCIe link: trained down
//   wrong affinity  two devices exchange their residuals' pattern: the data fit once they are joined elsewhere
//
// Every candidate is simulated: the description is changed, all is predicted again with the fitted values, and the candidate that
// takes away most of what is left of the squared residuals wins, if it takes more than luck would and makes hardly any other copy
// wrong (a law that weft lacks looks like a fault, too, and does that).
// Assumes: one fault. Shared parameters are fitted robustly, so that one part does not pull them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/fit/fit.hpp"

namespace weft {

struct FoundFault {
  std::string kind;                        // "slow-link", "half-width", "wrong-affinity"
  std::string parts;                       // "gpu3:plx1", "the NVLinks of gpu2"
  double factor = 1;                       // of the rate
  double explains = 0;                     // share of the squared residuals that it takes away
  std::function<void(FabricSpec&)> tweak;  // puts it into a description
  std::string what() const;                // "slow-link: gpu3:plx1 at 0.5 of the rate"
  std::string text() const;                // and how much it explains
};

// Best first; empty when nothing stands out. Needs copies: collectives see the slowest part only.
std::vector<FoundFault> find_faults(const FitMachine& machine, const FitData& data,
                                    const FitResult& fitted);

// The machine as it is, with the fault in it; and the measurements of it, without what a fault spoils beside itself: transfers
// that started together with one over the faulty part wait for it in switches and buffers, which a fluid does not show.
FitMachine faulty_machine(const FitMachine& machine, const FoundFault& fault);
FitData without_victims(const FitData& data, const FoundFault& fault);

// Fits, looks for a fault, and when there is one fits again with it in place, so that the shared values are those of the sound
// parts. The notes of the result name it.
FitResult fit_and_find_faults(const FitMachine& machine, const FitData& data,
                              const FitOptions& options, std::vector<FoundFault>& faults);

}  // namespace weft
