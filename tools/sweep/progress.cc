// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/progress.hpp"

#include <fmt/format.h>

namespace weft {

std::string rough_time(double seconds) {
  const auto s = static_cast<long long>(seconds + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
  return fmt::format("{} d {} h", s / 86400, s % 86400 / 3600);
}

void SweepProgress::show(std::size_t finished, std::size_t failed) {
  if (!line_) return;
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::string text = fmt::format("{} of {} points", finished, total_);
  if (failed > 0) text += fmt::format(", {} failed", failed);
  if (finished > 0 && elapsed > 0) {
    const double rate = static_cast<double>(finished) / elapsed;
    text += fmt::format(", {:.3g}/s, {} left", rate,
                        rough_time(static_cast<double>(total_ - finished) / rate));
  }
  line_->show(text);
}

}  // namespace weft
