// SPDX-License-Identifier: Apache-2.0
#include "sim/core/random.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/core/check.hpp"
#include "sim/core/hash.hpp"

namespace weft {
namespace {

__extension__ typedef unsigned __int128 Wide;

// ln 2 in two parts; the first has 32 significant bits, so that its product with an exponent is exact.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;

// (exp(x) - 1) / x and log(1 + x) / x, smooth through 0.
double expm1_over(double x) {
  return std::fabs(x) > 1e-6 ? (portable_exp(x) - 1) / x : 1 + x / 2 * (1 + x / 3);
}
double log1p_over(double x) {
  return std::fabs(x) > 1e-6 ? portable_log(1 + x) / x : 1 - x * (0.5 - x / 3);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  auto& [c0, c1, c2, c3] = counter;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMultiplier0 * c0, p1 = kMultiplier1 * c2;
    const auto high0 = static_cast<std::uint32_t>(p0 >> 32),
               high1 = static_cast<std::uint32_t>(p1 >> 32);
    counter = {high1 ^ c1 ^ key[0], static_cast<std::uint32_t>(p1), high0 ^ c3 ^ key[1],
               static_cast<std::uint32_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

Random::Random(std::uint64_t seed, std::string_view purpose, std::uint64_t entity)
    : key_(stable_hash(purpose, seed)), entity_(entity) {}

void Random::refill() {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  const auto out = philox4x32({low(next_block_), high(next_block_), low(entity_), high(entity_)},
                              {low(key_), high(key_)});
  for (std::size_t i = 0; i < 2; ++i)
    block_[i] = out[2 * i] | static_cast<std::uint64_t>(out[2 * i + 1]) << 32;
  ++next_block_;
  used_ = 0;
}

std::uint64_t Random::below(std::uint64_t n) {
  WEFT_DCHECK(n > 0, n);
  Wide product = static_cast<Wide>(bits()) * n;
  if (static_cast<std::uint64_t>(product) < n) {
    const std::uint64_t unfair = (0 - n) % n;
    while (static_cast<std::uint64_t>(product) < unfair) product = static_cast<Wide>(bits()) * n;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Random::exponential(double mean) { return -mean * portable_log(1 - uniform()); }

double Random::normal(double mean, double deviation) {
  if (has_spare_) {
    has_spare_ = false;
    return mean + deviation * spare_normal_;
  }
  double x = 0, y = 0, square = 0;
  do {
    x = 2 * uniform() - 1;
    y = 2 * uniform() - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  const double scale = std::sqrt(-2 * portable_log(square) / square);
  spare_normal_ = y * scale;
  has_spare_ = true;
  return mean + deviation * x * scale;
}

double Random::lognormal(double mu, double sigma) { return portable_exp(normal(mu, sigma)); }

std::uint64_t Random::zipf(std::uint64_t n, double exponent) {
  WEFT_DCHECK(n > 0 && exponent >= 0, n, exponent);
  const double top = static_cast<double>(n);
  const double power = 1 - exponent;
  const auto density = [&](double x) { return portable_exp(-exponent * portable_log(x)); };
  const auto area = [&](double x) {
    const double l = portable_log(x);
    return expm1_over(power * l) * l;
  };
  const auto area_inverse = [&](double a) {
    const double t = std::fmax(power * a, -1 + 0x1p-53);
    return portable_exp(log1p_over(t) * a);
  };
  const double first = area(1.5) - 1, last = area(top + 0.5);
  const double sure = 2 - area_inverse(area(2.5) - density(2));
  while (true) {
    const double a = last + uniform() * (first - last);
    const double x = area_inverse(a);
    const double k = std::fmin(std::fmax(std::floor(x + 0.5), 1), top);
    if (k - x <= sure || a >= area(k + 0.5) - density(k)) return static_cast<std::uint64_t>(k);
  }
}

std::vector<std::uint32_t> Random::permutation(std::uint32_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[below(i)]);
  return order;
}

std::vector<std::uint32_t> Random::cyclic_permutation(std::uint32_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[below(i - 1)]);
  return order;
}

// x = m 2^e with m near 1, and log m = 2 atanh((m - 1) / (m + 1)) by its series.
double portable_log(double x) {
  constexpr double kHalfRoot = 0.70710678118654752440;
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < kHalfRoot) {
    m *= 2;
    --e;
  }
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int k = 21; k >= 3; k -= 2) sum = (sum + 1.0 / k) * square;
  return e * kLn2High + (2 * s + (2 * s * sum + e * kLn2Low));
}

// exp x = 2^k exp(r) with |r| <= ln 2 / 2, by its series.
double portable_exp(double x) {
  if (x > 709.78) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  const double k = std::floor(x / (kLn2High + kLn2Low) + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 1;
  for (int i = 14; i >= 1; --i) sum = 1 + sum * r / i;
  return std::ldexp(sum, static_cast<int>(k));
}

}  // namespace weft
