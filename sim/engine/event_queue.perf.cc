// SPDX-License-Identifier: Apache-2.0
// The queue's design was chosen here. Hold model: N events wait; each step takes the earliest and puts one back. Three of four
// delays are one of two fixed ones (serialisation and propagation of a full packet), the rest is spread over 10 us.
#include "sim/engine/event_queue.hpp"

#include <algorithm>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/core/random.hpp"

namespace weft {
namespace {

struct SmallEvent {
  Time when = {};
  std::uint64_t order = 0;
  std::uint64_t arg = 0;
};

// The standard heap on the same vector, for comparison.
template <class E>
class StandardQueue {
 public:
  void reserve(std::size_t n) { heap_.reserve(n); }
  void after(Time delay, E event) {
    event.when = now_ + delay;
    event.order = stamp_++;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  E pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const E first = heap_.back();
    heap_.pop_back();
    now_ = first.when;
    return first;
  }

 private:
  static bool later(const E& a, const E& b) {
    return a.when > b.when || (a.when == b.when && a.order > b.order);
  }
  std::vector<E> heap_;
  Time now_;
  std::uint64_t stamp_ = 0;
};

std::vector<Time> delays() {
  constexpr std::size_t kMany = 1 << 14;  // a power of two, and small beside the queue
  Random luck(1, "hold model");
  std::vector<Time> out;
  for (std::size_t i = 0; i < kMany; ++i) {
    const double kind = luck.uniform();
    const auto spread = static_cast<std::int64_t>(luck.below(10'000'000));
    out.push_back(kind < 0.5 ? Time{81'920} : kind < 0.75 ? 500_ns : Time{spread});
  }
  return out;
}

template <class Queue, class E>
void hold(benchmark::State& state) {
  const auto steps = delays();
  const auto waiting = static_cast<std::size_t>(state.range(0));
  Queue queue;
  queue.reserve(waiting + 1);
  Random luck(2, "start");
  for (std::size_t i = 0; i < waiting; ++i)
    queue.after(Time{static_cast<std::int64_t>(luck.below(10'000'000))}, E{});
  std::size_t i = 0;
  const auto step = [&] {
    const E event = queue.pop();
    queue.after(steps[i++ % steps.size()], event);
  };
  for (std::size_t warm = 0; warm < waiting; ++warm) step();
  for (auto _ : state) step();
  state.SetItemsProcessed(state.iterations());
}

// As hold, but the event put back takes the place of the one taken.
template <class Queue, class E>
void hold_replace(benchmark::State& state) {
  const auto steps = delays();
  const auto waiting = static_cast<std::size_t>(state.range(0));
  Queue queue;
  Random luck(2, "start");
  for (std::size_t i = 0; i < waiting; ++i)
    queue.after(Time{static_cast<std::int64_t>(luck.below(10'000'000))}, E{});
  std::size_t i = 0;
  const auto step = [&] {
    queue.replace_at(queue.next_time() + steps[i++ % steps.size()], queue.next());
  };
  for (std::size_t warm = 0; warm < waiting; ++warm) step();
  for (auto _ : state) step();
  state.SetItemsProcessed(state.iterations());
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const int n : {1'000, 10'000, 100'000, 1'000'000}) b->Arg(n);
}

BENCHMARK_TEMPLATE(hold, StandardQueue<Event>, Event)->Apply(sizes);
BENCHMARK_TEMPLATE(hold, EventQueue<Event, 2>, Event)->Apply(sizes);
BENCHMARK_TEMPLATE(hold, EventQueue<Event, 4>, Event)->Apply(sizes);
BENCHMARK_TEMPLATE(hold, EventQueue<Event, 8>, Event)->Apply(sizes);
BENCHMARK_TEMPLATE(hold_replace, EventQueue<Event, 8>, Event)->Apply(sizes);
BENCHMARK_TEMPLATE(hold, StandardQueue<SmallEvent>, SmallEvent)->Apply(sizes);
BENCHMARK_TEMPLATE(hold, EventQueue<SmallEvent, 2>, SmallEvent)->Apply(sizes);
BENCHMARK_TEMPLATE(hold, EventQueue<SmallEvent, 4>, SmallEvent)->Apply(sizes);
BENCHMARK_TEMPLATE(hold, EventQueue<SmallEvent, 8>, SmallEvent)->Apply(sizes);
BENCHMARK_TEMPLATE(hold_replace, EventQueue<SmallEvent, 8>, SmallEvent)->Apply(sizes);

}  // namespace
}  // namespace weft
