// SPDX-License-Identifier: Apache-2.0
// Typed 32-bit indices. A NodeId cannot be passed where a LinkId is meant, and an IdVector<LinkId, T> cannot be indexed
// with a NodeId. The default id is "none".
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace weft {

template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t v = kNone;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : v(static_cast<std::uint32_t>(index)) {}
  constexpr bool valid() const { return v != kNone; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using NodeId = Id<struct NodeTag>;      // a GPU, NIC, switch, socket ...
using LinkId = Id<struct LinkTag>;      // one direction of a cable, or a bundle of parallel ones
using FlowId = Id<struct FlowTag>;      // a transfer inside a network model
using OpId = Id<struct OpTag>;          // an operation of a workload
using JobId = Id<struct JobTag>;        // a job of a scenario
using RankId = Id<struct RankTag>;      // position inside a communicator
using ServerId = Id<struct ServerTag>;  // a server of a fabric

template <class I, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t n, const T& value = T{}) : items_(n, value) {}
  T& operator[](I id) { return items_[id.v]; }
  const T& operator[](I id) const { return items_[id.v]; }
  I push_back(T value) {
    items_.push_back(std::move(value));
    return I{items_.size() - 1};
  }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void resize(std::size_t n, const T& value = T{}) { items_.resize(n, value); }
  void reserve(std::size_t n) { items_.reserve(n); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

}  // namespace weft
