// SPDX-License-Identifier: Apache-2.0
// The traffic of the comparison with SimGrid, the same for both programs.
//
// Fabric:    ls<D>x<L>, L leaves with D hosts each and D spines; all links 50 GB/s and 1 us, one way.
// Routing:   D-mod-k: a message to host d climbs to spine d mod D.
// Workloads: permutation (one cycle through all hosts), all-to-all, and ring all-reduce in 2(N-1) steps with a barrier between.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace traffic {

constexpr double kBytesPerSecond = 50e9;
constexpr double kLinkLatency = 1e-6;

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) {
    __extension__ typedef unsigned __int128 Wide;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * n) >> 64);
  }

 private:
  std::uint64_t state_;
};

struct Message {
  std::uint32_t from, to;
  std::uint64_t bytes;
};

struct Options {
  std::uint32_t hosts_per_leaf = 0, leaves = 0;
  std::string workload;     // permutation, all-to-all, ring
  std::uint64_t bytes = 0;  // per message; of the whole buffer for ring
  bool random_sizes = false;
  std::string times;  // file for the finish times, empty for none
  std::uint32_t hosts() const { return hosts_per_leaf * leaves; }
};

// PROGRAM ls<D>x<L> WORKLOAD BYTES equal|random TIMES|- [anything else]
inline Options parse(int argc, char** argv) {
  Options out;
  if (argc < 6 || std::sscanf(argv[1], "ls%ux%u", &out.hosts_per_leaf, &out.leaves) != 2) {
    std::fprintf(stderr,
                 "usage: %s ls<D>x<L> permutation|all-to-all|ring BYTES equal|random TIMES|-\n",
                 argv[0]);
    std::exit(2);
  }
  out.workload = argv[2];
  out.bytes = static_cast<std::uint64_t>(std::atof(argv[3]));
  out.random_sizes = std::strcmp(argv[4], "random") == 0;
  if (std::strcmp(argv[5], "-") != 0) out.times = argv[5];
  return out;
}

inline std::uint64_t random_size(SplitMix64& luck, std::uint64_t most) {
  const std::uint64_t least = most / 10;
  return least + luck.below(most - least + 1);
}

// The messages of each step.
inline std::uint64_t step_count(const Options& o) {
  return o.workload == "ring" ? 2 * (static_cast<std::uint64_t>(o.hosts()) - 1) : 1;
}

inline std::vector<Message> messages_of_step(const Options& o) {
  const std::uint32_t n = o.hosts();
  std::vector<Message> out;
  if (o.workload == "permutation") {
    std::vector<std::uint32_t> to(n);
    for (std::uint32_t i = 0; i < n; ++i) to[i] = i;
    SplitMix64 order(1), sizes(2);
    for (std::uint32_t i = n - 1; i > 0; --i) std::swap(to[i], to[order.below(i)]);
    for (std::uint32_t i = 0; i < n; ++i)
      out.push_back({i, to[i], o.random_sizes ? random_size(sizes, o.bytes) : o.bytes});
  } else if (o.workload == "all-to-all") {
    SplitMix64 sizes(3);
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t j = 1; j < n; ++j) {
        out.push_back({i, (i + j) % n, o.random_sizes ? random_size(sizes, o.bytes) : o.bytes});
      }
    }
  } else {
    for (std::uint32_t i = 0; i < n; ++i) out.push_back({i, (i + 1) % n, o.bytes / n});
  }
  return out;
}

// Wall time, and time on the processor: both programs have one thread, and the second is hardly disturbed by neighbours.
struct Stopwatch {
  std::chrono::steady_clock::time_point wall_start = std::chrono::steady_clock::now();
  std::clock_t cpu_start = std::clock();
  double wall() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start).count();
  }
  double cpu() const { return static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC; }
};

inline void write_times(const Options& o, const std::vector<double>& seconds) {
  if (o.times.empty()) return;
  std::FILE* file = std::fopen(o.times.c_str(), "wb");
  if (file == nullptr ||
      std::fwrite(seconds.data(), sizeof(double), seconds.size(), file) != seconds.size()) {
    std::fprintf(stderr, "cannot write %s\n", o.times.c_str());
    std::exit(1);
  }
  std::fclose(file);
}

}  // namespace traffic
