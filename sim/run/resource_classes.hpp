// SPDX-License-Identifier: Apache-2.0
// Resources that no flow can tell apart are one constraint. Two links of the same capacity that carry the same share of every
// flow fill and empty alike, so a solver needs only one of them: 128 replicas of a pipeline cost what one costs.
//
// The partition is refined use by use (colour refinement on the side of the resources): what a new use loads differently is
// split off. A use that was added before a split still names the whole, so its classes are read after the last use.
//
//   ResourceClasses classes(capacities);
//   const auto use = classes.add(shares);       // for every way of every flow
//   ...
//   for (const Share& share : classes.shares(use)) // one resource per class, with the weight all its members have
//
// Law: max-min rates over `shares(use)` equal those over the full lists; every member carries what its representative carries.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/share.hpp"
#include "sim/core/units.hpp"

namespace weft {

class ResourceClasses {
 public:
  // `alone`: resources that change by themselves (faults) and stand for nobody else.
  ResourceClasses(std::span<const Bandwidth> capacities, std::span<const std::uint32_t> alone = {});

  // A resource may occur several times; its weights add up.
  std::uint32_t add(std::span<const Share> shares);
  // Sorted by resource.
  std::vector<Share> shares(std::uint32_t use) const;
  std::uint32_t representative(std::uint32_t resource) const;

 private:
  struct Class {
    std::uint32_t size = 0;
    std::uint32_t first = 0;               // its lowest member, known after settle()
    std::vector<std::uint32_t> split_off;  // classes, in order of time
    std::uint32_t born = 0;                // number of uses before it
  };
  struct Part {
    std::uint32_t of = 0;
    double weight = 0;
  };
  void expand(std::uint32_t of, double weight, std::uint32_t after, std::vector<Share>& out) const;
  void settle() const;

  std::vector<std::uint32_t> class_of_;  // by resource
  mutable std::vector<Class> classes_;
  mutable bool settled_ = false;
  std::vector<std::vector<Part>> uses_;
};

}  // namespace weft
