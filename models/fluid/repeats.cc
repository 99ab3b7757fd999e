// SPDX-License-Identifier: Apache-2.0
#include "models/fluid/repeats.hpp"

namespace weft {

Repeats::Slot& Repeats::slot_of(const RepeatKey& key) {
  if (slots_.empty()) slots_.resize(2 * kMostKeys);
  std::size_t at = static_cast<std::size_t>(key.low) & (slots_.size() - 1);
  while (slots_[at].used && !(slots_[at].key == key)) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

// The solution handed out last has been filled by now.
void Repeats::account() {
  for (; counted_ < solutions_.size(); ++counted_) {
    values_ += solutions_[counted_].leads.size() + solutions_[counted_].levels.size();
  }
}

const Repeats::Solution* Repeats::find(const RepeatKey& key, bool& store) {
  account();
  if (keys_ >= kMostKeys || values_ >= kMostValues) clear();
  Slot& slot = slot_of(key);
  store = slot.used && slot.solution == kNone;
  if (!slot.used) {
    slot.used = true;
    slot.key = key;
    ++keys_;
    ++misses_;
    return nullptr;
  }
  misses_ = 0;
  return slot.solution == kNone ? nullptr : &solutions_[slot.solution];
}

Repeats::Solution& Repeats::insert(const RepeatKey& key) {
  account();
  slot_of(key).solution = static_cast<std::uint32_t>(solutions_.size());
  return solutions_.emplace_back();
}

void Repeats::clear() {
  slots_.assign(slots_.size(), Slot{});
  solutions_.clear();
  keys_ = values_ = counted_ = 0;
}

}  // namespace weft
