// SPDX-License-Identifier: Apache-2.0
// When requests arrive and how long they are.
#include <algorithm>
#include <cmath>

#include "models/llm/serve.hpp"
#include "sim/core/random.hpp"

namespace weft {
namespace {

// Log-normal of the given mean, at least one token.
std::int64_t length(Random& luck, std::int64_t mean, double spread) {
  if (spread <= 0) return mean;
  const double variance = portable_log(1 + spread * spread);
  const double drawn =
      luck.lognormal(portable_log(static_cast<double>(mean)) - variance / 2, std::sqrt(variance));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(drawn, 1e8) + 0.5));
}

// Whole pages only, and never all of the prompt: its last token has to be read.
std::int64_t cached_part(std::int64_t prompt, double share, std::int64_t block) {
  const auto tokens = static_cast<std::int64_t>(static_cast<double>(prompt) * share);
  return std::min(tokens, prompt - 1) / block * block;
}

}  // namespace

std::vector<ServeRequest> make_requests(const RequestsSpec& spec, std::int64_t block,
                                        std::uint64_t seed) {
  std::vector<ServeRequest> out;
  if (!spec.trace.empty()) {
    for (const RequestEntry& entry : spec.trace) {
      out.push_back({entry.at.seconds(), entry.prompt, entry.output,
                     cached_part(entry.prompt, entry.cached, block)});
    }
    std::ranges::stable_sort(out, {}, &ServeRequest::arrival);
    return out;
  }
  out.reserve(static_cast<std::size_t>(spec.count));
  Random arrivals(seed, "arrivals"), prompts(seed, "prompts"), outputs(seed, "outputs");
  const double gap = spec.rate ? 1 / spec.rate->per_s : 0;
  double now = 0;
  for (std::int64_t i = 0; i < spec.count; ++i) {
    ServeRequest request;
    if (spec.arrival == Arrival::poisson) now += arrivals.exponential(gap);
    if (spec.arrival == Arrival::uniform) now = static_cast<double>(i) * gap;
    request.arrival = now;
    request.prompt = length(prompts, spec.prompt, spec.spread);
    request.output = length(outputs, spec.output, spec.spread);
    request.cached = cached_part(request.prompt, spec.prefix_share, block);
    out.push_back(request);
  }
  return out;
}

}  // namespace weft
