// SPDX-License-Identifier: Apache-2.0
// Alarms of a fixed set of things, at most one each: the packet level arms one per busy port. Earliest first; of one instant,
// the smaller id first, whatever the order in which they were set.
//
//   TimingWheel wheel(ports, 4_us);       // most alarms are less than 4 us ahead
//   wheel.set(port, now + delay);         // sets or moves the alarm of this port
//   while (wheel.next() <= until) handle(wheel.pop());
//
// Slots of equal width hold the alarms up to one turn ahead, in lists without order; alarms further ahead wait in a heap. A slot
// holds a handful of alarms when most things are busy; it is sorted once when the hand reaches it. Setting, moving and taking away cost O(1) but in that slot and
// in the heap. Alarms of many ports in one instant (the start of a synchronous pattern) cost one sort, not a scan each.
//
// Assumes: no alarm is set before the time of the last one taken.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "sim/core/check.hpp"
#include "sim/core/units.hpp"

namespace weft {

class TimingWheel {
 public:
  // `reach`: how far ahead most alarms are; less is right but slow.
  TimingWheel(std::size_t things, Time reach)
      : alarms_(things),
        mask_(static_cast<std::uint32_t>(
                  std::bit_ceil(std::clamp<std::size_t>(things / 8, kLeastSlots, kMostSlots))) -
              1),
        slots_(mask_ + std::size_t{1}, kNone),
        used_((mask_ + std::size_t{1}) / 64) {
    while ((std::int64_t{mask_} << shift_) < reach.ps && shift_ < 50) ++shift_;
  }

  std::size_t size() const { return alarms_.size(); }  // things

  Time time_of(std::uint32_t id) const { return {alarms_[id].when}; }

  void set(std::uint32_t id, Time when) {
    Alarm& alarm = alarms_[id];
    if (alarm.when == when.ps) return;
    take_out(id);
    alarm.when = when.ps;
    if (when.ps < hand_end_) {
      const Due due{when.ps, id};
      due_.insert(std::upper_bound(due_.begin(), due_.end(), due, Later{}), due);
      alarm.place = Place::due;
    } else if (when.ps - hand_end_ < (std::int64_t{mask_} << shift_)) {
      put_in_slot(id);
    } else {
      far_.push({when.ps, id});
      alarm.place = Place::far;
    }
  }

  void cancel(std::uint32_t id) {
    take_out(id);
    alarms_[id].when = kNever;
    alarms_[id].place = Place::none;
  }

  // Time of the earliest alarm, Time::never() without one.
  Time next() {
    while (true) {
      while (!due_.empty() && !valid(due_.back(), Place::due)) due_.pop_back();
      if (!due_.empty()) return {due_.back().when};
      if (!turn()) return Time::never();
    }
  }

  // The earliest alarm, which is taken away; next() must have been asked before and have given a time.
  std::uint32_t pop() {
    const std::uint32_t id = due_.back().id;
    due_.pop_back();
    alarms_[id].when = kNever;
    alarms_[id].place = Place::none;
    return id;
  }

  // What the pop() after `ahead` others will most likely give, to fetch its data early; kNone when unknown.
  std::uint32_t peek(std::size_t ahead) const {
    return due_.size() <= ahead ? kNone : due_[due_.size() - 1 - ahead].id;
  }

  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

 private:
  static constexpr std::int64_t kNever = Time::never().ps;
  enum class Place : std::uint8_t { none, slot, due, far };
  struct Alarm {
    std::int64_t when = kNever;
    std::uint32_t next = kNone, previous = kNone;  // in its slot
    Place place = Place::none;
  };
  struct Due {
    std::int64_t when;
    std::uint32_t id;
  };
  struct Later {
    bool operator()(const Due& a, const Due& b) const {
      return a.when != b.when ? a.when > b.when : a.id > b.id;
    }
  };
  // Slots that fit the nearer caches.
  static constexpr std::size_t kLeastSlots = 1024, kMostSlots = 16'384;

  bool valid(const Due& due, Place place) const {
    return alarms_[due.id].when == due.when && alarms_[due.id].place == place;
  }
  std::uint32_t slot_of(std::int64_t when) const {
    return static_cast<std::uint32_t>(when >> shift_) & mask_;
  }

  void put_in_slot(std::uint32_t id) {
    Alarm& alarm = alarms_[id];
    const std::uint32_t slot = slot_of(alarm.when);
    alarm.place = Place::slot;
    alarm.next = slots_[slot];
    alarm.previous = kNone;
    if (alarm.next != kNone) alarms_[alarm.next].previous = id;
    slots_[slot] = id;
    used_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }

  // Out of the list of its slot; entries of the heap and of the due ones just stop being valid.
  void take_out(std::uint32_t id) {
    Alarm& alarm = alarms_[id];
    if (alarm.place != Place::slot) return;
    if (alarm.next != kNone) alarms_[alarm.next].previous = alarm.previous;
    if (alarm.previous != kNone) {
      alarms_[alarm.previous].next = alarm.next;
    } else {
      const std::uint32_t slot = slot_of(alarm.when);
      slots_[slot] = alarm.next;
      if (alarm.next == kNone) used_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
    }
  }

  // The first slot in use from `from` on, round the wheel; kNone when all are empty.
  std::uint32_t first_used(std::uint32_t from) const {
    std::uint64_t word = used_[from / 64] & (~std::uint64_t{0} << (from % 64));
    const auto words = static_cast<std::uint32_t>(used_.size());
    for (std::uint32_t i = 0; i <= words; ++i) {
      const std::uint32_t w = (from / 64 + i) & (words - 1);
      if (i > 0) word = used_[w];
      if (word != 0) return w * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
    }
    return kNone;
  }

  // Moves the hand to the next slot that holds an alarm and makes its alarms due.
  bool turn() {
    while (!far_.empty() && !valid(far_.top(), Place::far)) far_.pop();
    const std::uint32_t at = slot_of(hand_end_);
    const std::uint32_t slot = first_used(at);
    std::int64_t tick = hand_end_ >> shift_;
    if (slot == kNone) {
      if (far_.empty()) return false;
      tick = far_.top().when >> shift_;
    } else {
      tick += (slot - at) & mask_;
      if (!far_.empty()) tick = std::min(tick, far_.top().when >> shift_);
    }
    hand_end_ = (tick + 1) << shift_;
    while (!far_.empty() && far_.top().when < hand_end_) {
      if (valid(far_.top(), Place::far)) {
        due_.push_back(far_.top());
        alarms_[far_.top().id].place = Place::due;
      }
      far_.pop();
    }
    if (slot != kNone && slot == (static_cast<std::uint32_t>(tick) & mask_)) {
      for (std::uint32_t id = slots_[slot]; id != kNone; id = alarms_[id].next) {
        due_.push_back({alarms_[id].when, id});
        alarms_[id].place = Place::due;
      }
      slots_[slot] = kNone;
      used_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
    }
    if (due_.size() > 1) sort();
    return true;
  }

  void sort() {
    if (due_.size() > 16) return std::sort(due_.begin(), due_.end(), Later{});
    for (std::size_t i = 1; i < due_.size(); ++i) {
      const Due due = due_[i];
      std::size_t at = i;
      for (; at > 0 && Later{}(due, due_[at - 1]); --at) due_[at] = due_[at - 1];
      due_[at] = due;
    }
  }

  int shift_ = 0;              // a slot is 2^shift_ ps wide
  std::int64_t hand_end_ = 0;  // alarms before this are due; a multiple of the width
  std::vector<Alarm> alarms_;
  std::vector<Due> due_;  // latest first
  std::uint32_t mask_;    // of the number of slots, a power of two
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> used_;
  std::priority_queue<Due, std::vector<Due>, Later> far_;
};

}  // namespace weft
