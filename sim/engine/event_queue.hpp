// SPDX-License-Identifier: Apache-2.0
// The pending events of a simulation, earliest first; events of one instant leave by their `order`, which is a stamp of
// insertion unless the caller gives one. The clock of the simulation is the time of the last event taken.
//
//   EventQueue<Event> queue;
//   queue.after(transfer_time(packet.size, rate), {.target = port.v, .kind = kLastBitSent, .arg = packet.v});
//   while (!queue.empty()) handle(queue.pop());
//
// Events are plain data of the engine's choosing: 24 bytes are enough for a time, an order and 8 bytes of meaning.
//
// Chosen by event_queue.perf.cc: nanoseconds to take one event and put one back, N pending, 32 | 24
// bytes each (g++ 12 -O3, best of five on a shared 2-core machine). The choice must hold from the
// thousands of a fluid run to the million of an expanded one.
//
//     N                           1 k        10 k       100 k         1 M
//     std::push_heap            63 | 64     87 | 89   135 | 129   388 | 314
//     2 children                47 | 52     74 | 78   143 | 140   886 | 729
//     4 children                50 | 50     73 | 71   148 | 113   447 | 393
//     8 children (chosen)       53 | 53     74 | 73   112 | 115   338 | 333
//     8 children, replace()     50 | 51     72 | 71   112 | 106   298 | 329
//
// clang 14 compiles the comparison to branches, so there 8 children cost 73, 104, 154, 362 and
// std::push_heap 65, 91, 146, 315.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/core/check.hpp"
#include "sim/core/units.hpp"

namespace weft {

struct Event {
  Time when = {};
  std::uint64_t order = 0;   // among events of one instant; stamped by at() and after()
  std::uint32_t target = 0;  // whose event it is, an id of the engine
  std::uint32_t kind = 0;
  std::uint64_t arg = 0;
};

template <class E>
concept PlainEvent = std::is_trivially_copyable_v<E> && requires(E e) {
  { e.when } -> std::convertible_to<Time>;
  { e.order } -> std::convertible_to<std::uint64_t>;
};

// A heap in which every node has kArity children, on one vector. kArity is a parameter for the benchmark only.
template <PlainEvent E = Event, std::size_t kArity = 8>
class EventQueue {
 public:
  Time now() const { return now_; }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  Time next_time() const { return heap_.empty() ? Time::never() : heap_.front().when; }
  const E& next() const { return heap_.front(); }
  void reserve(std::size_t n) { heap_.reserve(n); }

  // Puts the event at an absolute time, after all events of that time which are already there.
  void at(Time when, E event) {
    event.when = when;
    event.order = stamp_++;
    push(event);
  }
  void after(Time delay, E event) { at(now_ + delay, event); }

  // Keeps when and order as they are: the order is then a priority of the caller (control before data, low link ids
  // first). An engine uses either stamps or its own orders.
  void push(const E& event) {
    WEFT_CHECK(event.when >= now_, event.when, now_);
    heap_.push_back(event);
    rise(heap_.size() - 1, event);
  }

  // Takes the earliest event and moves the clock to it.
  E pop() {
    WEFT_DCHECK(!heap_.empty());
    const E first = heap_.front();
    const E last = heap_.back();
    heap_.pop_back();
    now_ = first.when;
    if (!heap_.empty()) sink(last);
    return first;
  }

  // pop() and push() in one: the earliest event is taken and `event` takes its place, for something that always has
  // exactly one event pending (the next arrival of a link).
  E replace(const E& event) {
    WEFT_DCHECK(!heap_.empty());
    const E first = heap_.front();
    WEFT_CHECK(event.when >= first.when, event.when, first.when);
    now_ = first.when;
    sink(event);
    return first;
  }
  // Stamps `event` as at() does.
  E replace_at(Time when, E event) {
    event.when = when;
    event.order = stamp_++;
    return replace(event);
  }

  // Forgets the pending events and starts the clock again.
  void clear() {
    heap_.clear();
    now_ = {};
    stamp_ = 0;
  }

 private:
  // One comparison of 128 bits, without a branch.
  static bool earlier(const E& a, const E& b) {
    __extension__ typedef __int128 Key;
    const auto key = [](const E& e) {
      return (static_cast<Key>(Time{e.when}.ps) << 64) | static_cast<Key>(std::uint64_t{e.order});
    };
    return key(a) < key(b);
  }

  void rise(std::size_t hole, const E event) {
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kArity;
      if (!earlier(event, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  // Fills the hole at the root: it goes down to a leaf along the earliest children, then `event`, which most often belongs
  // near the leaves, rises from there.
  void sink(const E event) {
    const std::size_t size = heap_.size();
    std::size_t hole = 0;
    while (true) {
      const std::size_t first = hole * kArity + 1;
      if (first + kArity > size) {
        if (first >= size) break;
        std::size_t best = first;
        for (std::size_t i = first + 1; i < size; ++i)
          best = earlier(heap_[i], heap_[best]) ? i : best;
        heap_[hole] = heap_[best];
        hole = best;
        break;
      }
      std::size_t best = first;
      for (std::size_t i = first + 1; i < first + kArity; ++i)
        best = earlier(heap_[i], heap_[best]) ? i : best;
      heap_[hole] = heap_[best];
      hole = best;
    }
    rise(hole, event);
  }

  std::vector<E> heap_;
  Time now_;
  std::uint64_t stamp_ = 0;
};

}  // namespace weft
