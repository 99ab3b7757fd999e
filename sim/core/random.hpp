// SPDX-License-Identifier: Apache-2.0
// Random numbers that belong to a thing: the stream of (seed, purpose, entity) is the same whatever other streams exist and in
// whatever order they are read, so adding a flow does not shift the luck of the others.
//
// Generator: Philox4x32-10, a counter-based generator: block k of a stream is a keyed bijection of (entity, k); nothing else
//            is stored (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// Assumes:   the key is a 64-bit hash of seed and purpose; a stream is shorter than 2^64 blocks.
// Same bits: distributions are our own, and use only + - * / and sqrt, which IEEE 754 fixes, not libm, whose last digit
//            differs between versions and between CPUs with and without FMA.
//
//   Random luck(scenario.seed, "arrivals", flow.v);
//   Time gap{static_cast<std::int64_t>(luck.exponential(mean_ps))};
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace weft {

// One block of Philox4x32-10.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

class Random {
 public:
  Random(std::uint64_t seed, std::string_view purpose, std::uint64_t entity = 0);

  std::uint64_t bits() {
    if (used_ == 2) refill();
    return block_[used_++];
  }

  // Uniform in {0 .. n-1} without bias, n > 0 (Lemire, "Fast random integer generation in an interval", 2019).
  std::uint64_t below(std::uint64_t n);
  // Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  bool chance(double probability) { return uniform() < probability; }

  double exponential(double mean);
  double normal(double mean = 0, double deviation = 1);  // Marsaglia's polar method
  // exp(normal(mu, sigma)): its median is exp(mu).
  double lognormal(double mu, double sigma);
  // k in {1 .. n} with probability proportional to k^-exponent, n > 0, exponent >= 0. Constant time, by rejection-inversion
  // (Hoermann and Derflinger, 1996).
  std::uint64_t zipf(std::uint64_t n, double exponent);

  // Every order of {0 .. n-1} equally likely (Fisher-Yates).
  std::vector<std::uint32_t> permutation(std::uint32_t n);
  // Every single cycle equally likely (Sattolo): nobody is sent to itself when n > 1.
  std::vector<std::uint32_t> cyclic_permutation(std::uint32_t n);

 private:
  void refill();

  std::uint64_t key_, entity_, next_block_ = 0;
  std::array<std::uint64_t, 2> block_{};
  std::size_t used_ = 2;
  double spare_normal_ = 0;
  bool has_spare_ = false;
};

// Natural logarithm and exponential within a few units of the last place, the same bits everywhere.
double portable_log(double x);  // x > 0 and normal
double portable_exp(double x);

}  // namespace weft
