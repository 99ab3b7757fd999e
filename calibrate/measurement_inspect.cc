// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measurement_inspect.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "calibrate/import/lines.hpp"
#include "calibrate/log_facts.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

std::string sizes_text(const std::set<std::int64_t>& sizes) {
  if (sizes.empty()) return "no size";
  const std::string first = to_text(Bytes{*sizes.begin()}), last = to_text(Bytes{*sizes.rbegin()});
  return sizes.size() == 1 ? first
                           : fmt::format("{} sizes from {} to {}", sizes.size(), first, last);
}

bool is_gpu(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return name.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with("gpu");
}

template <class E>
std::string word(E value) {
  return write_config(value).text;
}

class Inspector {
 public:
  explicit Inspector(const Measurement& measurement) : m_(measurement) {}

  MeasurementContents run() {
    machine();
    copies();
    latencies();
    kernels();
    collectives();
    others();
    doubts();
    return std::move(out_);
  }

 private:
  void holds(std::string what, std::string detail) {
    out_.holds.push_back({std::move(what), std::move(detail)});
  }
  void misses(std::string what, std::string detail) {
    out_.missing.push_back({std::move(what), std::move(detail)});
  }

  void machine() {
    for (const MeasuredHost& host : m_.hosts) {
      std::map<std::string, int> products;
      for (const MeasuredGpu& gpu : host.gpus) {
        ++products[gpu.product.empty() ? "GPU" : gpu.product];
        gpus_.insert(m_.hosts.size() > 1 ? fmt::format("server{}/gpu{}", host.server, gpu.device)
                                         : fmt::format("gpu{}", gpu.device));
      }
      std::vector<std::string> parts;
      for (const auto& [product, count] : products)
        parts.push_back(fmt::format("{} x {}", count, product));
      for (const auto& [name, version] :
           {std::pair{"driver", host.driver}, {"CUDA", host.cuda}, {"NCCL", host.nccl}}) {
        if (!version.empty()) parts.push_back(fmt::format("{} {}", name, version));
      }
      if (!parts.empty()) holds(fmt::format("server{}", host.server), join(parts, ", "));
    }
    if (gpus_.empty())
      misses("machine", "no facts about the GPUs: which fabric it is must be told");
    for (const CopySample& copy : m_.copies) {
      for (const std::string& end : {copy.from, copy.to}) {
        if (is_gpu(end)) gpus_.insert(end);
      }
    }
    for (const KernelSample& kernel : m_.kernels) gpus_.insert(kernel.gpu);
  }

  void copies() {
    struct Kind {
      std::set<std::pair<std::string, std::string>> pairs;
      std::set<std::int64_t> sizes;
    };
    std::map<std::string, Kind> alone;
    std::map<std::string, std::set<int>> groups;
    std::set<std::pair<std::string, std::string>> peers;
    bool up = false, down = false;
    for (const CopySample& copy : m_.copies) {
      const bool from_gpu = is_gpu(copy.from), to_gpu = is_gpu(copy.to);
      up = up || (!from_gpu && to_gpu);
      down = down || (from_gpu && !to_gpu);
      if (copy.together != 0) {
        groups[copy.pattern.empty() ? "together" : copy.pattern].insert(copy.together);
        continue;
      }
      if (from_gpu && to_gpu) peers.emplace(copy.from, copy.to);
      const char* ends = from_gpu ? (to_gpu ? "between GPUs" : "to the host") : "from the host";
      Kind& kind = alone[fmt::format("copies {}, {}", ends, word(copy.method))];
      kind.pairs.emplace(copy.from, copy.to);
      kind.sizes.insert(copy.bytes.count);
    }
    for (const auto& [what, kind] : alone) {
      holds(what, fmt::format("{} alone, {}", counted(kind.pairs.size(), "pair"),
                              sizes_text(kind.sizes)));
    }
    for (const auto& [pattern, numbers] : groups)
      holds("contention", fmt::format("{}: {}", pattern, counted(numbers.size(), "group")));
    if (!up || !down)
      misses("host copies",
             fmt::format("none {} the host: the way to its memory stays at its prior",
                         up ? "to" : "from"));
    if (gpus_.size() < 2) return;
    const std::size_t all = gpus_.size() * (gpus_.size() - 1);
    if (peers.empty() && m_.matrices.empty()) {
      misses("copies between GPUs", "none: rates of the links between GPUs stay at their priors");
    } else if (!peers.empty() && peers.size() < all) {
      misses("copies between GPUs",
             fmt::format("{} of {} ordered pairs were not copied alone", all - peers.size(), all));
    }
    if (groups.empty() && std::ranges::none_of(m_.matrices, [](const MeasuredMatrix& matrix) {
          return matrix.traffic != CopyTraffic::alone;
        })) {
      misses("contention", "no transfers that start together: what pairs share cannot be told");
    }
  }

  void latencies() {
    std::map<std::string, std::set<std::pair<std::string, std::string>>> pairs;
    for (const LatencySample& sample : m_.latencies)
      pairs[word(sample.method)].emplace(sample.from, sample.to);
    for (const auto& [method, ends] : pairs)
      holds("latency by " + method, counted(ends.size(), "pair"));
    if (pairs.empty() && gpus_.size() > 1) misses("latency", "no small messages between GPUs");
  }

  void kernels() {
    std::map<std::string, std::set<std::string>> tests;
    std::set<KernelTest> kinds;
    for (const KernelSample& sample : m_.kernels) {
      kinds.insert(sample.test);
      tests[fmt::format("{}{}", word(sample.test), sample.type.empty() ? "" : " " + sample.type)]
          .insert(fmt::format("{} {} {} {}", sample.m, sample.n, sample.k, sample.bytes.count));
    }
    for (const auto& [what, shapes] : tests) holds(what, counted(shapes.size(), "shape"));
    for (const auto& [kind, why] :
         {std::pair{KernelTest::matmul, "matrix rates stay at their priors"},
          {KernelTest::triad, "memory bandwidth stays at its prior"},
          {KernelTest::launch, "the start of a kernel stays at its prior"}}) {
      if (!kinds.contains(kind)) misses(word(kind), fmt::format("none: {}", why));
    }
  }

  void collectives() {
    std::map<std::string, std::set<std::int64_t>> sizes;
    std::map<std::string, std::set<int>> ranks;
    for (const MeasuredRun& run : m_.runs) {
      const std::string what = run.collective.empty() ? "collective" : run.collective;
      if (run.ranks > 0) ranks[what].insert(run.ranks);
      for (const CollectiveSample& sample : run.samples) sizes[what].insert(sample.bytes.count);
    }
    for (const auto& [what, bytes] : sizes) {
      std::vector<std::string> groups;
      for (const int n : ranks[what]) groups.push_back(fmt::format("{}", n));
      holds(what, fmt::format("{}, {}", sizes_text(bytes),
                              groups.empty() ? "ranks not told" : join(groups, ", ") + " ranks"));
      if (groups.size() == 1 && gpus_.size() > 2)
        misses(what, "one group size: what grows with the ranks cannot be told from what does not");
      if (groups.empty()) misses(what, "ranks not told");
    }
    if (sizes.empty() && gpus_.size() > 1)
      misses("collectives", "none: the costs of NCCL stay at their priors");
    if (!m_.overlaps.empty()) {
      holds("products beside collectives", counted(m_.overlaps.size(), "sample"));
    } else if (gpus_.size() > 1) {
      misses("overlap", "no matrix product beside a collective");
    }
  }

  void others() {
    for (const MeasuredMatrix& matrix : m_.matrices)
      holds(matrix.name, counted(matrix.pairs.size(), "pair"));
    for (const MessageTest& test : m_.messages)
      holds(test.name, counted(test.samples.size(), "size"));
    if (!m_.experts.empty()) holds("expert layers", counted(m_.experts.size(), "sample"));
    std::size_t waiting = 0;
    for (const ProbeTest& test : m_.tests) {
      if (test.state == TestState::impossible) misses(test.test, test.reason);
      waiting += test.state == TestState::not_run ? 1 : 0;
    }
    if (waiting > 0)
      misses("plan",
             fmt::format("{} not run yet: weft-probe --resume goes on", counted(waiting, "test")));
  }

  void doubts() {
    for (const ProbeTest& test : m_.tests) {
      if (test.state == TestState::failed) out_.doubtful.push_back({test.test, test.reason});
    }
    std::size_t outliers = 0, repeats = 0;
    const auto look = [&](const SampleRepeats& repeated, const std::string& what) {
      outliers += repeated.outliers.size();
      repeats += static_cast<std::size_t>(repeated.repeats);
      if (repeated.unsettled.value_or(false))
        out_.doubtful.push_back({what, "its repeats do not agree"});
    };
    for (const CopySample& s : m_.copies)
      look(s.repeated, fmt::format("copy {} to {}, {}", s.from, s.to, to_text(s.bytes)));
    for (const LatencySample& s : m_.latencies)
      look(s.repeated, fmt::format("latency {} to {}", s.from, s.to));
    for (const KernelSample& s : m_.kernels)
      look(s.repeated, fmt::format("{} on {}", word(s.test), s.gpu));
    for (const OverlapSample& s : m_.overlaps) look(s.repeated, "overlap on " + s.gpu);
    for (const MeasuredRun& run : m_.runs) {
      for (const CollectiveSample& s : run.samples)
        look(s.repeated, fmt::format("{}, {}", run.collective, to_text(s.bytes)));
      for (const Anomaly& anomaly : anomalies(run))
        out_.doubtful.push_back({run.collective, anomaly.text});
    }
    if (outliers > 0)
      out_.doubtful.push_back({"outliers", fmt::format("{} of {} repeats", outliers, repeats)});
    for (const std::string& problem : m_.problems) out_.doubtful.push_back({"problem", problem});
  }

  const Measurement& m_;
  MeasurementContents out_;
  std::set<std::string> gpus_;
};

}  // namespace

MeasurementContents inspect_measurement(const Measurement& measurement) {
  return Inspector(measurement).run();
}

}  // namespace weft
