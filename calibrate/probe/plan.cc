// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "calibrate/log_facts.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

using Sizes = std::vector<Bytes>;

// Rates that no machine of interest is much below: only for the expected duration.
constexpr double kHostRate = 10e9, kPeerRate = 10e9, kMemoryRate = 500e9, kMatrixRate = 50e12;
constexpr double kSetUp = 0.02, kCall = 20e-6, kToolSeconds = 8;
constexpr std::size_t kAllToAll = 16;  // GPUs; more are covered by permutations
constexpr Bytes kPairSize = 64_MiB;

// Sizes from `first` to `last`, each `step` times the one before.
Sizes sweep(Bytes first, Bytes last, std::int64_t step) {
  Sizes out;
  for (Bytes size = first; size <= last; size = Bytes{size.count * step}) out.push_back(size);
  return out;
}

class Planner {
 public:
  Planner(const ProbeMachine& machine, const PlanOptions& options)
      : machine_(machine), options_(options), gpus_(machine.gpus) {
    if (options.quick) {
      plan_.rules = {.warm_up = 2, .least = 5, .most = 50, .seconds = 0.03, .timeout = 10};
      sizes_ = {16_KiB, 1_MiB, kPairSize};
    } else {
      sizes_ = sweep(4_KiB, 256_MiB, 4);
    }
  }

  ProbePlan run() {
    if (gpus_.empty()) return std::move(plan_);
    if (gpus_[0].near.empty()) {
      cannot("host copies", "no memory of a host is known");
    } else {
      host_copies();
    }
    device_memory();
    launches();
    products();
    if (gpus_.size() > 1) {
      find_kinds();
      peer_copies();
      latencies();
      contention();
      collectives();
      overlaps();
    } else {
      for (const char* what : {"copies between GPUs", "contention", "collectives", "overlap"})
        cannot(what, "the machine has one GPU");
    }
    if (!gpus_[0].near.empty()) host_contention();
    messages();
    return std::move(plan_);
  }

 private:
  // ---- adding

  template <class T>
  void add(std::string name, T what, double one, std::optional<double> in_all = {}) {
    if (!options_.only.empty() && !glob_match(options_.only, name)) return;
    const RepeatRules& rules = plan_.rules;
    const double runs = std::max(rules.seconds, rules.least * one);
    const double seconds = kSetUp + rules.warm_up * one + std::min(runs, rules.timeout);
    plan_.tests.push_back({std::move(name), std::move(what), in_all.value_or(seconds)});
  }
  void cannot(std::string what, std::string why) {
    plan_.impossible.push_back({std::move(what), std::move(why), TestState::impossible});
  }

  static std::string method_name(CopyMethod method) { return write_config(method).text; }

  void copy(const std::string& from, const std::string& to, Bytes bytes, CopyMethod method,
            std::optional<bool> peer = std::nullopt) {
    const double rate = peer ? kPeerRate : kHostRate;
    add(fmt::format("copy {} {} > {} {}", method_name(method), from, to, to_text(bytes)),
        CopyTest{{{from, to, bytes}}, method, {}, peer}, kCall + bytes.value() / rate);
  }
  void group(const std::string& what, std::string pattern, std::vector<CopyEnds> transfers,
             CopyMethod method, std::optional<bool> peer = std::nullopt) {
    if (transfers.size() < 2) return;
    double bytes = 0;
    for (const CopyEnds& ends : transfers) bytes += ends.bytes.value();
    const std::string size = to_text(transfers.front().bytes);
    const double one = kCall * static_cast<double>(transfers.size()) + bytes / kHostRate;
    std::string name = fmt::format("copies {} {} {} {}", pattern, method_name(method), what, size);
    add(std::move(name), CopyTest{std::move(transfers), method, std::move(pattern), peer}, one);
  }

  // ---- one GPU

  // The first GPU of each host memory stands for the others in sweeps.
  std::vector<std::size_t> one_per_memory() const {
    std::vector<std::size_t> out;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      if (seen.insert(gpus_[i].near).second) out.push_back(i);
    }
    return out;
  }

  void host_copies() {
    const std::vector<std::size_t> swept = one_per_memory();
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const ProbeGpu& gpu = gpus_[i];
      const bool all = std::ranges::find(swept, i) != swept.end();
      for (const Bytes bytes : all ? sizes_ : Sizes{kPairSize}) {
        copy(gpu.near, gpu.name, bytes, CopyMethod::copy_engine);
        copy(gpu.name, gpu.near, bytes, CopyMethod::copy_engine);
      }
    }
    for (const Bytes bytes : sizes_) {
      if (bytes > kPairSize) break;
      copy(gpus_[0].near, gpus_[0].name, bytes, CopyMethod::pageable);
      copy(gpus_[0].name, gpus_[0].near, bytes, CopyMethod::pageable);
    }
    for (const std::size_t i : swept) {
      for (const std::string& memory : gpus_[i].far) {
        copy(memory, gpus_[i].name, kPairSize, CopyMethod::copy_engine);
        copy(gpus_[i].name, memory, kPairSize, CopyMethod::copy_engine);
      }
    }
    for (const ProbeGpu& gpu : gpus_) {
      group(gpu.name, "both-ways-host",
            {{gpu.near, gpu.name, kPairSize}, {gpu.name, gpu.near, kPairSize}},
            CopyMethod::copy_engine);
    }
  }

  void device_memory() {
    const Sizes sizes = options_.quick ? Sizes{4_MiB, 512_MiB} : sweep(1_MiB, 1_GiB, 4);
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      for (const Bytes bytes : i == 0 ? sizes : Sizes{512_MiB}) {
        if (gpus_[i].memory.count > 0 && bytes.count * 2 > gpus_[i].memory.count) continue;
        for (const KernelTest test : {KernelTest::copy, KernelTest::triad}) {
          add(fmt::format("{} {} {}", write_config(test).text, gpus_[i].name, to_text(bytes)),
              GpuKernelTest{.gpu = gpus_[i].name, .test = test, .type = "fp32", .bytes = bytes},
              kCall + bytes.value() / kMemoryRate);
        }
      }
    }
  }

  void launches() {
    const std::string& gpu = gpus_[0].name;
    constexpr std::int64_t kKernels = 200;
    add("launch " + gpu, GpuKernelTest{.gpu = gpu, .test = KernelTest::launch, .kernels = kKernels},
        kCall * kKernels);
    if (!machine_.no_graphs.empty()) return cannot("graph launches", machine_.no_graphs);
    add("graph-launch " + gpu,
        GpuKernelTest{.gpu = gpu, .test = KernelTest::graph_launch, .kernels = kKernels},
        kCall * kKernels);
  }

  void product(const std::string& gpu, const std::string& type, std::int64_t m, std::int64_t n,
               std::int64_t k) {
    const double flops =
        2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    add(fmt::format("matmul {} {} {}x{}x{}", gpu, type, m, n, k),
        GpuKernelTest{.gpu = gpu, .test = KernelTest::matmul, .type = type, .m = m, .n = n, .k = k},
        kCall + flops / kMatrixRate);
  }

  void products() {
    if (!machine_.no_products.empty()) return cannot("matrix products", machine_.no_products);
    struct Shape {
      std::int64_t m, n, k;
    };
    std::vector<Shape> shapes{{1024, 1024, 1024}, {4096, 4096, 4096}, {8192, 8192, 8192}};
    if (!options_.quick) {
      shapes = {{256, 256, 256},     {512, 512, 512},     {1024, 1024, 1024}, {2048, 2048, 2048},
                {4096, 4096, 4096},  {8192, 8192, 8192},  {16, 8192, 8192},   {128, 8192, 8192},
                {512, 8192, 8192},   {2048, 8192, 8192},  {4096, 8192, 1024}, {4096, 1024, 8192},
                {4096, 14336, 4096}, {4096, 4096, 14336}, {3000, 5000, 2000}, {8192, 2048, 512}};
    }
    const std::vector<std::string>& types = gpus_[0].types;
    for (const std::string& type : types) {
      for (const Shape& shape : shapes) product(gpus_[0].name, type, shape.m, shape.n, shape.k);
    }
    for (const char* type : {"bf16", "fp8"}) {
      if (std::ranges::find(types, type) == types.end())
        cannot(fmt::format("matmul {}", type), "this GPU or library has no such products");
    }
    for (std::size_t i = 1; i < gpus_.size(); ++i) {
      if (!gpus_[i].types.empty()) product(gpus_[i].name, gpus_[i].types[0], 8192, 8192, 8192);
    }
  }

  // ---- pairs

  const ProbePath& path(std::size_t from, std::size_t to) const { return machine_.paths[from][to]; }

  void find_kinds() {
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      for (std::size_t j = 0; j < gpus_.size(); ++j) {
        if (i != j && !path(i, j).kind.empty()) kinds_.try_emplace(path(i, j).kind, i, j);
      }
    }
    if (gpus_.size() <= kEveryPair) {
      for (std::size_t i = 0; i < gpus_.size(); ++i) {
        for (std::size_t j = 0; j < gpus_.size(); ++j) {
          if (i != j && !path(i, j).kind.empty()) pairs_.emplace_back(i, j);
        }
      }
      return;
    }
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      std::set<std::string> seen;
      for (std::size_t d = 1; d < gpus_.size(); ++d) {
        const std::size_t j = (i + d) % gpus_.size();
        if (!path(i, j).kind.empty() && seen.insert(path(i, j).kind).second)
          pairs_.emplace_back(i, j);
      }
    }
  }

  void peer(std::size_t i, std::size_t j, Bytes bytes, CopyMethod method) {
    if (method == CopyMethod::sm && !path(i, j).peer_access) return;
    copy(gpus_[i].name, gpus_[j].name, bytes, method, path(i, j).peer_access);
  }

  void both_ways(std::size_t i, std::size_t j, Bytes bytes, CopyMethod method) {
    if (method == CopyMethod::sm && !path(i, j).peer_access) return;
    const std::string &a = gpus_[i].name, &b = gpus_[j].name;
    group(fmt::format("{} {}", a, b), "both-ways", {{a, b, bytes}, {b, a, bytes}}, method,
          path(i, j).peer_access);
  }

  void peer_copies() {
    constexpr CopyMethod kMethods[] = {CopyMethod::copy_engine, CopyMethod::sm};
    for (const auto& [i, j] : pairs_) {
      for (const CopyMethod method : kMethods) peer(i, j, kPairSize, method);
    }
    for (const auto& [kind, ends] : kinds_) {
      for (const CopyMethod method : kMethods) {
        for (const Bytes bytes : sizes_) {
          if (bytes != kPairSize) peer(ends.first, ends.second, bytes, method);
        }
        if (!options_.quick) both_ways(ends.first, ends.second, 1_MiB, method);
      }
    }
    for (const auto& [i, j] : pairs_) {
      if (i < j || gpus_.size() > kEveryPair) both_ways(i, j, kPairSize, CopyMethod::copy_engine);
    }
  }

  void latencies() {
    if (!machine_.no_flags.empty()) cannot("latency by flag", machine_.no_flags);
    for (const auto& [i, j] : pairs_) {
      const std::string &a = gpus_[i].name, &b = gpus_[j].name;
      if (path(i, j).peer_access && machine_.no_flags.empty() && i < j)
        add(fmt::format("latency flag {} {}", a, b), LatencyTest{a, b, PingMethod::flag, 8_B},
            1e-3);
      add(fmt::format("latency copy {} > {}", a, b), LatencyTest{a, b, PingMethod::copy, 8_B},
          1e-3);
    }
  }

  CopyEnds ends(std::size_t i, std::size_t j, Bytes bytes) const {
    return {gpus_[i].name, gpus_[j].name, bytes};
  }

  void contention() {
    const std::size_t n = gpus_.size();
    const Bytes bytes = 16_MiB;
    const std::string all = fmt::format("{} GPUs", n);
    const auto method = CopyMethod::copy_engine;
    const auto reach = [&](std::size_t i, std::size_t j) {
      return i != j && !path(i, j).kind.empty();
    };
    for (std::size_t shift = 1; shift < n; shift = n <= kEveryPair ? shift + 1 : shift * 2) {
      std::vector<CopyEnds> transfers;
      for (std::size_t i = 0; i < n; ++i) {
        if (reach(i, (i + shift) % n)) transfers.push_back(ends(i, (i + shift) % n, bytes));
      }
      group(fmt::format("{} by {}", all, shift), "permutation", std::move(transfers), method);
    }
    // Within the reach of one another: a target hears from at most kAllToAll others.
    const std::size_t step = std::max<std::size_t>(1, n / kEveryPair);
    for (std::size_t one = 0; one < n; one += step) {
      std::vector<CopyEnds> in, out;
      for (std::size_t d = 1; d < std::min(n, kAllToAll); ++d) {
        const std::size_t other = (one + d) % n;
        if (reach(other, one)) in.push_back(ends(other, one, bytes));
        if (reach(one, other)) out.push_back(ends(one, other, bytes));
      }
      group(gpus_[one].name, "all-to-one", std::move(in), method);
      group(gpus_[one].name, "one-to-all", std::move(out), method);
      if (options_.quick) break;
    }
    if (n > kAllToAll) return;
    std::vector<CopyEnds> transfers;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (reach(i, j)) transfers.push_back(ends(i, j, bytes));
      }
    }
    group(all, "all-to-all", std::move(transfers), method);
  }

  // Copies between the host and GPUs that hang together: pairs behind one switch, all of one memory, all.
  void host_contention() {
    const auto both = [&](const std::string& what, const std::string& pattern,
                          const std::vector<std::size_t>& members) {
      std::vector<CopyEnds> up, down;
      for (const std::size_t i : members) {
        up.push_back({gpus_[i].near, gpus_[i].name, kPairSize});
        down.push_back({gpus_[i].name, gpus_[i].near, kPairSize});
      }
      group(what, pattern + "-from-host", std::move(up), CopyMethod::copy_engine);
      group(what, pattern + "-to-host", std::move(down), CopyMethod::copy_engine);
    };
    for (const auto& [i, j] : pairs_) {
      const std::string& kind = path(i, j).kind;
      if (i < j && (kind == "PIX" || kind == "PXB" || j == i + 1))
        both(fmt::format("{} {}", gpus_[i].name, gpus_[j].name), "pair", {i, j});
    }
    std::map<std::string, std::vector<std::size_t>> by_memory;
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      by_memory[gpus_[i].near].push_back(i);
      all.push_back(i);
    }
    if (by_memory.size() > 1) {
      for (const auto& [memory, members] : by_memory) both(memory, "memory", members);
    }
    both(fmt::format("{} GPUs", gpus_.size()), "all", all);
  }

  // ---- NCCL

  // 2, 4, 8 ... and all.
  std::vector<std::size_t> group_sizes() const {
    std::vector<std::size_t> out;
    for (std::size_t n = 2; n < gpus_.size(); n *= 2) out.push_back(n);
    out.push_back(gpus_.size());
    if (options_.quick && out.size() > 1) out = {out.front(), out.back()};
    return out;
  }

  std::vector<std::string> first_gpus(std::size_t count) const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(gpus_[i].name);
    return out;
  }

  static double collective_seconds(Bytes bytes) {
    return 5 * kCall + 2 * bytes.value() / kPeerRate;
  }

  void collective(const std::string& name, std::size_t ranks, Bytes bytes,
                  const std::string& algorithm = {}, const std::string& protocol = {}) {
    std::string forced = algorithm;
    if (!protocol.empty()) forced += (forced.empty() ? "" : "/") + protocol;
    add(fmt::format("{} {} ranks {}{}{}", name, ranks, to_text(bytes), forced.empty() ? "" : " ",
                    forced),
        CollectiveTest{name, first_gpus(ranks), bytes, algorithm, protocol},
        collective_seconds(bytes));
  }

  void collectives() {
    if (!machine_.no_collectives.empty()) return cannot("collectives", machine_.no_collectives);
    const Sizes sizes = options_.quick ? Sizes{32_KiB, 1_MiB, 256_MiB} : sweep(1_KiB, 1_GiB, 4);
    const std::vector<std::string> names =
        options_.quick ? std::vector<std::string>{"all_reduce", "all_gather"}
                       : std::vector<std::string>{"all_reduce", "all_gather", "reduce_scatter",
                                                  "broadcast",  "all_to_all", "send_recv"};
    for (const std::string& name : names) {
      for (const std::size_t ranks : group_sizes()) {
        for (const Bytes bytes : sizes) collective(name, ranks, bytes);
      }
    }
    rails();
    if (options_.quick) return;
    for (const std::string& algorithm : machine_.algorithms) {
      for (const std::string& protocol : machine_.protocols) {
        for (const Bytes bytes : {8_KiB, 256_KiB, 8_MiB, 256_MiB})
          collective("all_reduce", gpus_.size(), bytes, algorithm, protocol);
      }
    }
  }

  // GPU i of the first server with GPU i of the next: what each of them has of the network.
  void rails() {
    for (std::size_t i = 0; i < gpus_.size() && gpus_[i].server == gpus_[0].server; ++i) {
      std::size_t other = i + 1;
      while (other < gpus_.size() && gpus_[other].server == gpus_[0].server) ++other;
      other += i;
      if (other >= gpus_.size()) return;
      for (const Bytes bytes : {64_KiB, kPairSize}) {
        add(fmt::format("send_recv {} {} {}", gpus_[i].name, gpus_[other].name, to_text(bytes)),
            CollectiveTest{"send_recv", {gpus_[i].name, gpus_[other].name}, bytes, {}, {}},
            collective_seconds(bytes));
      }
    }
  }

  void overlaps() {
    if (!machine_.no_collectives.empty() || !machine_.no_products.empty())
      return cannot("overlap", machine_.no_collectives.empty() ? machine_.no_products
                                                               : machine_.no_collectives);
    if (gpus_[0].types.empty()) return;
    const std::string& type = gpus_[0].types[0];
    for (const char* name : {"all_reduce", "all_gather"}) {
      for (const Bytes bytes : options_.quick ? Sizes{kPairSize} : Sizes{16_MiB, 256_MiB}) {
        OverlapTest test{{name, first_gpus(gpus_.size()), bytes, {}, {}}, type, 8192, 8192, 4096};
        add(fmt::format("overlap {} {} matmul {} beside {} {}", gpus_[0].name, gpus_.size(), type,
                        name, to_text(bytes)),
            std::move(test), 4 * (0.01 + collective_seconds(bytes)));
      }
    }
  }

  void messages() {
    if (!machine_.no_messages.empty()) return cannot("messages between NICs", machine_.no_messages);
    for (std::size_t i = 0; i < machine_.nics.size(); ++i) {
      const std::string& nic = machine_.nics[i];
      for (const char* program : {"ib_write_bw", "ib_write_lat"})
        add(fmt::format("{} {}", program, nic), MessageToolTest{program, nic, {}}, 0, kToolSeconds);
      if (i >= machine_.nic_gpus.size() || machine_.nic_gpus[i].empty()) continue;
      const std::string& gpu = machine_.nic_gpus[i];
      add(fmt::format("ib_write_bw {} {}", nic, gpu), MessageToolTest{"ib_write_bw", nic, gpu}, 0,
          kToolSeconds);
    }
  }

  const ProbeMachine& machine_;
  const PlanOptions& options_;
  const std::vector<ProbeGpu>& gpus_;
  ProbePlan plan_;
  Sizes sizes_;
  std::map<std::string, std::pair<std::size_t, std::size_t>> kinds_;  // and a pair of each
  std::vector<std::pair<std::size_t, std::size_t>> pairs_;
};

}  // namespace

double ProbePlan::seconds() const {
  double sum = 0;
  for (const PlannedTest& test : tests) sum += test.seconds;
  return sum;
}

ProbePlan make_plan(const ProbeMachine& machine, const PlanOptions& options) {
  return Planner(machine, options).run();
}

std::string plan_text(const ProbePlan& plan) {
  std::string out;
  for (const PlannedTest& test : plan.tests)
    out += fmt::format("{:8.2f} s  {}\n", test.seconds, test.name);
  for (const ProbeTest& test : plan.impossible)
    out += fmt::format("      --    {}: {}\n", test.test, test.reason);
  out += fmt::format("{} tests, about {:.0f} s\n", plan.tests.size(), plan.seconds());
  return out;
}

}  // namespace weft
