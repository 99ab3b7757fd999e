// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/verifier.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::size_t kMaxFaults = 8;
constexpr std::uint64_t kStateWords = (16U << 20) / sizeof(std::uint64_t);

std::string name_of(std::uint32_t rank) {
  return rank == kSwitch ? "the switch" : fmt::format("rank {}", rank);
}

// Runs the steps that touch units [first, last).
class Window {
 public:
  Window(const Schedule& schedule, std::uint64_t first, std::uint64_t last, Verification& out)
      : schedule_(schedule),
        kind_(schedule.request.kind),
        n_(schedule.ranks),
        root_(schedule.request.root),
        first_(first),
        last_(last),
        words_((n_ + 63) / 64),
        state_((n_ + 1) * (last - first) * words_, 0),
        out_(out) {}

  void run() {
    for (std::uint64_t u = first_; u < last_; ++u) {
      for (std::uint32_t r = 0; r < n_; ++r) {
        if (starts_with(r, u)) insert(place(r, u), r);
      }
    }
    schedule_.steps([this](const Step& step) { take(step); });
    close_round();
    for (std::uint64_t u = first_; u < last_; ++u) {
      for (std::uint32_t r = 0; r < n_; ++r) check_goal(r, u);
    }
  }

 private:
  struct Write {
    std::size_t place;
    std::size_t data;  // where the set starts in data_
    std::uint32_t src, dst;
    std::uint64_t unit;
    bool reduces;
  };

  std::size_t place(std::uint32_t rank, std::uint64_t unit) const {
    const std::size_t r = rank == kSwitch ? n_ : rank;
    return (r * (last_ - first_) + (unit - first_)) * words_;
  }
  void insert(std::size_t at, std::uint32_t rank) {
    state_[at + rank / 64] |= std::uint64_t{1} << (rank % 64);
  }

  bool starts_with(std::uint32_t r, std::uint64_t u) const {
    switch (kind_) {
      case CollectiveKind::broadcast:
      case CollectiveKind::scatter:
        return r == root_;
      case CollectiveKind::all_gather:
      case CollectiveKind::gather:
        return r == u % n_;
      case CollectiveKind::all_to_all:
        return r == u / n_;
      case CollectiveKind::send_recv:
        return r == u;
      default:
        return true;
    }
  }
  bool must_hold(std::uint32_t r, std::uint64_t u) const {
    switch (kind_) {
      case CollectiveKind::reduce:
      case CollectiveKind::gather:
        return r == root_;
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::scatter:
      case CollectiveKind::all_to_all:
        return r == u % n_;
      case CollectiveKind::send_recv:
        return r == (u + 1) % n_;
      default:
        return true;
    }
  }
  // The one rank whose data the unit is, or kSwitch when it is the sum of all.
  std::uint32_t origin(std::uint64_t u) const {
    switch (kind_) {
      case CollectiveKind::broadcast:
      case CollectiveKind::scatter:
        return root_;
      case CollectiveKind::all_gather:
      case CollectiveKind::gather:
        return static_cast<std::uint32_t>(u % n_);
      case CollectiveKind::all_to_all:
        return static_cast<std::uint32_t>(u / n_);
      case CollectiveKind::send_recv:
        return static_cast<std::uint32_t>(u);
      default:
        return kSwitch;
    }
  }

  template <class... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args) {
    if (out_.fault_count++ < kMaxFaults)
      out_.faults.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  std::string show(std::size_t at) const {
    std::string text;
    std::uint32_t shown = 0;
    for (std::uint32_t r = 0; r < n_ && shown < 8; ++r) {
      if ((state_[at + r / 64] >> (r % 64) & 1) == 0) continue;
      text += fmt::format("{}{}", shown++ == 0 ? "" : " ", r);
    }
    return "{" + text + (shown == 8 ? " ...}" : "}");
  }

  void take(const Step& step) {
    const bool counts = first_ == 0;  // what does not depend on the window is reported once
    if (step.round != round_) {
      if (step.round < round_ && counts)
        fault("round {} follows round {}: not ascending", step.round, round_);
      close_round();
      if (step.round > round_ + 1) empty_switch();
      round_ = step.round;
    }
    const auto known = [this](std::uint32_t r) { return r < n_ || r == kSwitch; };
    if (!known(step.src) || !known(step.dst) || step.src == step.dst || step.unit_count == 0 ||
        step.unit >= schedule_.units || step.unit_count > schedule_.units - step.unit ||
        step.round >= schedule_.rounds) {
      if (counts) {
        fault("round {} of {}: no such transfer: {} to {}, units {} + {} of {}", step.round,
              schedule_.rounds, name_of(step.src), name_of(step.dst), step.unit, step.unit_count,
              schedule_.units);
      }
      return;
    }
    if (counts) {
      ++out_.step_count;
      out_.bytes.at(step.src, step.dst) +=
          schedule_.size_of_units(step.unit, step.unit_count).value();
    }
    const std::uint64_t end = std::min(last_, step.unit + step.unit_count);
    for (std::uint64_t u = std::max(first_, step.unit); u < end; ++u) {
      const auto from = state_.begin() + static_cast<std::ptrdiff_t>(place(step.src, u));
      if (std::all_of(from, from + static_cast<std::ptrdiff_t>(words_),
                      [](std::uint64_t w) { return w == 0; })) {
        fault("round {}: {} sends unit {} to {} but does not hold it", step.round,
              name_of(step.src), u, name_of(step.dst));
        continue;
      }
      writes_.push_back({place(step.dst, u), data_.size(), step.src, step.dst, u, step.reduces});
      data_.insert(data_.end(), from, from + static_cast<std::ptrdiff_t>(words_));
    }
  }

  void empty_switch() {
    for (const std::size_t at : in_switch_) {
      for (std::size_t k = 0; k < words_; ++k) state_[at + k] = 0;
    }
    in_switch_.clear();
  }

  void close_round() {
    empty_switch();
    if (!std::is_sorted(writes_.begin(), writes_.end(), by_place)) {
      std::stable_sort(writes_.begin(), writes_.end(), by_place);
    }
    for (std::size_t i = 0; i < writes_.size(); ++i) {
      const Write& w = writes_[i];
      const bool again = i > 0 && writes_[i - 1].place == w.place;
      if (again && !(w.reduces && writes_[i - 1].reduces)) {
        fault("round {}: {} and {} both write unit {} of {}", round_, name_of(writes_[i - 1].src),
              name_of(w.src), w.unit, name_of(w.dst));
        continue;
      }
      if (w.dst == kSwitch && !again) in_switch_.push_back(w.place);
      bool twice = false;
      for (std::size_t k = 0; k < words_; ++k) {
        std::uint64_t& held = state_[w.place + k];
        twice = twice || (w.reduces && (held & data_[w.data + k]) != 0);
        held = w.reduces ? held | data_[w.data + k] : data_[w.data + k];
      }
      if (twice) {
        fault("round {}: {} adds to unit {} of {} what is in it already, now {}", round_,
              name_of(w.src), w.unit, name_of(w.dst), show(w.place));
      }
    }
    writes_.clear();
    data_.clear();
  }
  static bool by_place(const Write& a, const Write& b) { return a.place < b.place; }

  void check_goal(std::uint32_t r, std::uint64_t u) {
    if (!must_hold(r, u)) return;
    const std::size_t at = place(r, u);
    const std::uint32_t from = origin(u);
    std::uint32_t members = 0;
    for (std::size_t k = 0; k < words_; ++k)
      members += static_cast<std::uint32_t>(std::popcount(state_[at + k]));
    const bool right = from == kSwitch
                           ? members == n_
                           : members == 1 && (state_[at + from / 64] >> (from % 64) & 1) != 0;
    if (right) return;
    fault("end: rank {} holds {} in unit {}, wanted {}", r, show(at), u,
          from == kSwitch ? std::string("all ranks") : fmt::format("{{{}}}", from));
  }

  const Schedule& schedule_;
  CollectiveKind kind_;
  std::uint32_t n_, root_;
  std::uint64_t first_, last_;
  std::size_t words_;
  std::vector<std::uint64_t> state_;
  std::vector<Write> writes_;
  std::vector<std::uint64_t> data_;
  std::vector<std::size_t> in_switch_;  // places that the round before filled
  std::uint32_t round_ = 0;
  Verification& out_;
};

void check_shape(const Schedule& s, Verification& out) {
  const auto fault = [&out](std::string text) {
    ++out.fault_count;
    out.faults.push_back(std::move(text));
  };
  const CollectiveKind kind = s.request.kind;
  if (s.ranks == 0 || s.units == 0 || !s.steps) fault("a schedule without ranks, units or steps");
  const std::uint64_t n = std::max<std::uint64_t>(s.ranks, 1);
  const bool by_rank = kind == CollectiveKind::all_gather ||
                       kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::gather ||
                       kind == CollectiveKind::scatter;
  if (by_rank && s.units % n != 0)
    fault(fmt::format("{} units are not a multiple of {} ranks", s.units, s.ranks));
  if (kind == CollectiveKind::all_to_all && s.units != n * n)
    fault(fmt::format("{} units, wanted ranks^2", s.units));
  if (kind == CollectiveKind::send_recv && s.units != n)
    fault(fmt::format("{} units, wanted one per rank", s.units));
  if (s.request.root >= n) fault(fmt::format("root {} of {} ranks", s.request.root, s.ranks));
}

}  // namespace

double PairBytes::sent_by(std::uint32_t rank) const {
  double sum = at(rank, kSwitch);
  for (std::uint32_t r = 0; r < ranks_; ++r) sum += at(rank, r);
  return sum;
}

double PairBytes::received_by(std::uint32_t rank) const {
  double sum = at(kSwitch, rank);
  for (std::uint32_t r = 0; r < ranks_; ++r) sum += at(r, rank);
  return sum;
}

double PairBytes::total() const {
  double sum = 0;
  for (const double bytes : bytes_) sum += bytes;
  return sum;
}

std::string Verification::text() const {
  std::string text;
  for (const std::string& fault : faults) text += fault + "\n";
  if (fault_count > faults.size())
    text += fmt::format("and {} more\n", fault_count - faults.size());
  return text;
}

Verification verify(const Schedule& schedule) {
  Verification out;
  check_shape(schedule, out);
  if (!out.ok()) return out;
  out.bytes = PairBytes(schedule.ranks);
  const std::uint64_t per_unit = (std::uint64_t{schedule.ranks} + 1) * ((schedule.ranks + 63) / 64);
  const std::uint64_t window = std::max<std::uint64_t>(1, kStateWords / per_unit);
  for (std::uint64_t first = 0; first < schedule.units; first += window) {
    Window(schedule, first, std::min(first + window, schedule.units), out).run();
  }
  std::uint32_t rounds = 0;
  schedule.steps([&rounds](const Step& step) { rounds = std::max(rounds, step.round + 1); });
  if (rounds < schedule.rounds) {
    ++out.fault_count;
    out.faults.push_back(fmt::format("{} rounds announced, {} used", schedule.rounds, rounds));
  }
  return out;
}

PairBytes phase_bytes(const Schedule& schedule) {
  PairBytes bytes(schedule.ranks);
  for (const Phase& phase : schedule.phases) {
    for (const Channel& channel : phase.channels) {
      channel.for_each_edge(
          [&](const Edge& e) { bytes.at(e.src, e.dst) += channel.bytes.value() * e.weight; });
    }
  }
  return bytes;
}

std::vector<std::string> compare_phases(const Schedule& schedule, const Verification& verification,
                                        double tolerance) {
  std::vector<std::string> faults;
  const auto fault = [&faults](std::string text) {
    if (faults.size() < kMaxFaults) faults.push_back(std::move(text));
  };
  for (const Phase& phase : schedule.phases) {
    for (const Channel& channel : phase.channels) {
      const bool ring = channel.form == Channel::Form::ring;
      if (!ring && channel.form != Channel::Form::chain) continue;
      for (std::size_t i = 0; i < channel.edges.size(); ++i) {
        const Edge& edge = channel.edges[i];
        if (i + 1 == channel.edges.size() && !ring) break;
        const Edge& next = channel.edges[(i + 1) % channel.edges.size()];
        if (edge.dst != next.src) {
          fault(fmt::format("edge {} ends at {}, the next starts at {}", i, name_of(edge.dst),
                            name_of(next.src)));
        }
      }
    }
  }
  const PairBytes claimed = phase_bytes(schedule);
  const auto rank = [&](std::uint32_t i) { return i == schedule.ranks ? kSwitch : i; };
  for (std::uint32_t i = 0; i <= schedule.ranks; ++i) {
    for (std::uint32_t j = 0; j <= schedule.ranks; ++j) {
      const double steps = verification.bytes.at(rank(i), rank(j));
      const double phases = claimed.at(rank(i), rank(j));
      if (std::abs(steps - phases) <= tolerance) continue;
      fault(fmt::format("{} to {}: {} B in steps, {} B in phases", name_of(rank(i)),
                        name_of(rank(j)), steps, phases));
    }
  }
  return faults;
}

}  // namespace weft
