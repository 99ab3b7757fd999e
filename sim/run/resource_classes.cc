// SPDX-License-Identifier: Apache-2.0
#include "sim/run/resource_classes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace weft {
namespace {

constexpr std::uint32_t kNobody = 0xFFFF'FFFF;
constexpr double kWeightSteps =
    1e9;  // weights that differ less than this are equal: sums in another order

std::int64_t step_of(double weight) { return std::llround(weight * kWeightSteps); }

}  // namespace

ResourceClasses::ResourceClasses(std::span<const Bandwidth> capacities,
                                 std::span<const std::uint32_t> alone)
    : class_of_(capacities.size()) {
  std::map<std::int64_t, std::uint32_t> by_capacity;
  std::vector<std::uint8_t> single(capacities.size(), 0);
  for (const std::uint32_t resource : alone) single[resource] = 1;
  std::int64_t last = -1;  // neighbours are mostly alike
  std::uint32_t of_last = 0;
  for (std::uint32_t r = 0; r < capacities.size(); ++r) {
    const auto fresh = static_cast<std::uint32_t>(classes_.size());
    std::uint32_t c = fresh;
    if (single[r] == 0) {
      if (capacities[r].bps != last) {
        last = capacities[r].bps;
        of_last = by_capacity.try_emplace(last, fresh).first->second;
      }
      c = of_last;
    }
    if (c == fresh) classes_.emplace_back();
    class_of_[r] = c;
    ++classes_[c].size;
  }
}

std::uint32_t ResourceClasses::add(std::span<const Share> shares) {
  std::vector<Share> sorted(shares.begin(), shares.end());
  std::ranges::sort(sorted, {}, &Share::resource);
  struct Member {
    std::uint32_t of;
    std::int64_t step;
    std::uint32_t resource;
    double weight;
  };
  std::vector<Member> members;
  for (std::size_t i = 0; i < sorted.size();) {
    const std::uint32_t resource = sorted[i].resource;
    double weight = 0;
    for (; i < sorted.size() && sorted[i].resource == resource; ++i) weight += sorted[i].weight;
    members.push_back({class_of_[resource], step_of(weight), resource, weight});
  }
  std::ranges::sort(members, [](const Member& a, const Member& b) {
    return std::tie(a.of, a.step, a.resource) < std::tie(b.of, b.step, b.resource);
  });
  const auto now = static_cast<std::uint32_t>(uses_.size());
  std::vector<Part>& parts = uses_.emplace_back();
  for (std::size_t i = 0; i < members.size();) {
    const std::uint32_t old = members[i].of;
    std::size_t end = i;
    while (end < members.size() && members[end].of == old && members[end].step == members[i].step)
      ++end;
    const auto count = static_cast<std::uint32_t>(end - i);
    std::uint32_t made = old;
    if (count < classes_[old].size) {
      made = static_cast<std::uint32_t>(classes_.size());
      classes_.push_back({.size = count, .born = now});
      classes_[old].size -= count;
      classes_[old].split_off.push_back(made);
      for (std::size_t k = i; k < end; ++k) class_of_[members[k].resource] = made;
    }
    parts.push_back({made, members[i].weight});
    i = end;
  }
  settled_ = false;
  return now;
}

void ResourceClasses::settle() const {
  if (settled_) return;
  for (Class& c : classes_) c.first = kNobody;
  for (std::uint32_t r = 0; r < class_of_.size(); ++r)
    classes_[class_of_[r]].first = std::min(classes_[class_of_[r]].first, r);
  settled_ = true;
}

// The class as it was after use `after`: its members now, and what was split off since.
void ResourceClasses::expand(std::uint32_t of, double weight, std::uint32_t after,
                             std::vector<Share>& out) const {
  const Class& c = classes_[of];
  if (c.size > 0) out.push_back({c.first, weight});
  for (auto part = c.split_off.rbegin(); part != c.split_off.rend(); ++part) {
    if (classes_[*part].born <= after) break;
    expand(*part, weight, classes_[*part].born, out);
  }
}

std::vector<Share> ResourceClasses::shares(std::uint32_t use) const {
  settle();
  std::vector<Share> out;
  for (const Part& part : uses_[use]) expand(part.of, part.weight, use, out);
  std::ranges::sort(out, {}, &Share::resource);
  return out;
}

std::uint32_t ResourceClasses::representative(std::uint32_t resource) const {
  settle();
  return classes_[class_of_[resource]].first;
}

}  // namespace weft
