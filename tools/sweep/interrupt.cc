// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/interrupt.hpp"

#include <atomic>

namespace weft {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may touch it

void note(int) { interrupted = true; }

}  // namespace

Interrupts::Interrupts() {
  interrupted = false;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 2; ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // Ignored by who started us (nohup, a shell's background job): stays ignored.
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupts::~Interrupts() {
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

bool Interrupts::seen() { return interrupted; }

}  // namespace weft
