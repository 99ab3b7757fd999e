// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM as a question, for as long as an Interrupts lives: the first asks for a clean stop, a second one of the same
// kind does what it always does.
#pragma once

#include <csignal>

namespace weft {

class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  static bool seen();

 private:
  struct sigaction before_[2];
};

}  // namespace weft
