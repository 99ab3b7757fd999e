// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/tables.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "calibrate/explain_log.hpp"
#include "calibrate/import/lines.hpp"
#include "models/nccl/library.hpp"
#include "sim/core/text.hpp"
#include "sim/run/run.hpp"

namespace weft {
namespace {

std::string setup_of(const Measurement& measurement, const char* key) {
  const auto found = measurement.setup.find(key);
  return found == measurement.setup.end() ? std::string{} : found->second;
}

NcclHarness harness_of(const Measurement& measurement, int ranks) {
  const std::string graph = setup_of(measurement, "graph"),
                    per_thread = setup_of(measurement, "nGpus");
  if (!graph.empty() && graph != "0") return NcclHarness::graph;
  if (per_thread.empty()) return NcclHarness::unknown;
  return per_thread != "1" && ranks > 1 ? NcclHarness::one_process : NcclHarness::process_per_gpu;
}

class Reader {
 public:
  Reader(const MeasuredFile& file, const Fabric& fabric, const FitAnswers& answers, FitData& data,
         std::vector<std::string>& notes, Diagnostics& out)
      : file_(file),
        measurement_(file.measurement),
        fabric_(fabric),
        per_server_(static_cast<std::int64_t>(fabric.types().front().gpus.size())),
        answers_(answers),
        data_(data),
        notes_(notes),
        out_(out) {}

  void run() {
    if (measurement_.forced && !answers_.force) {
      refuse("/forced", "it failed its own check and was kept on request",
             "measure again; --force fits it all the same");
      return;
    }
    if (!is_about(file_, fabric_, answers_.other_gpus, notes_, out_)) return;
    for (std::size_t i = 0; i < measurement_.runs.size(); ++i) {
      at_ = fmt::format("/runs/{}", i);
      add_run(measurement_.runs[i]);
    }
    for (const MeasuredMatrix& matrix : measurement_.matrices) add_matrix(matrix);
    add_copies();
    for (const KernelSample& sample : measurement_.kernels) add_kernel(sample);
    if (!measurement_.latencies.empty())
      notes_.push_back(
          "latencies of flags and of single calls are kept apart: how long the host or a "
          "poll takes is not modelled");
    if (kernel_copies_ + pageable_ + launches_ > 0)
      notes_.push_back(
          fmt::format("not modelled and left out: {} copies by kernels, {} of pageable "
                      "memory, {} launches",
                      kernel_copies_, pageable_, launches_));
    const auto unasked = [&](std::size_t count, const char* what) {
      if (count > 0)
        notes_.push_back(fmt::format("{}: {}: nothing of a fit depends on them yet, left out",
                                     measurement_.name, what));
    };
    unasked(measurement_.messages.size(), "messages between NICs");
    unasked(measurement_.experts.size(), "dispatch and combine of experts");
    if (!measurement_.overlaps.empty()) {
      notes_.push_back(fmt::format(
          "{}: products beside collectives take {:.3g} times what they take alone, median of {}. "
          "`beside_collectives` is left alone: the catalogue's `sustained` was fitted to whole "
          "steps of training and holds that loss, which would count twice. Set both, with a "
          "`sustained` of long products without collectives",
          measurement_.name, beside_collectives(), measurement_.overlaps.size()));
    }
    if (within_ > 0)
      notes_.push_back(
          fmt::format("{} within one device: weft has no prediction for them, left out",
                      within_ == 1 ? "a copy" : fmt::format("{} copies", within_)));
    if (unsized_ > 0)
      notes_.push_back(fmt::format(
          "{} without a size or in a type that weft does not model, the first is {}: left out",
          unsized_ == 1 ? "a kernel" : fmt::format("{} kernels", unsized_), first_unsized_));
    for (const MeasuredHost& host : measurement_.hosts)
      data_.servers = std::max<std::int64_t>(data_.servers, host.server + 1);
    const std::string nccl = setup_of(measurement_, "nccl");
    std::string instrument = measurement_.tool;
    if (!measurement_.version.empty()) instrument += " " + measurement_.version;
    if (!nccl.empty()) instrument += ", NCCL " + nccl;
    if (data_.instrument.find(instrument) == std::string::npos)
      data_.instrument += (data_.instrument.empty() ? "" : "; ") + instrument;
  }

 private:
  double beside_collectives() const {
    std::vector<double> ratios;
    for (const OverlapSample& sample : measurement_.overlaps)
      ratios.push_back(sample.kernel.seconds() / sample.kernel_alone.seconds());
    const auto middle = ratios.begin() + std::ssize(ratios) / 2;
    std::ranges::nth_element(ratios, middle);
    return *middle;
  }
  void add_run(const MeasuredRun& run) {
    FitTable table;
    const std::string collective = run.collective.empty() ? answers_.collective : run.collective;
    const std::int64_t ranks = run.ranks > 0 ? run.ranks : answers_.ranks.value_or(0);
    if (collective.empty())
      refuse(at_, "a table does not say which collective it is of", "add --collective NAME");
    if (ranks == 0) refuse(at_, "a table does not say how many ranks there were", "add --ranks N");
    if (!out_.ok()) return;
    if (wrong(run))
      return refuse(at_,
                    fmt::format("{} of {} ranks gave wrong data: such a run measures nothing",
                                collective, ranks),
                    "find the fault first; --force fits it all the same");
    Diagnostics problems;
    read_config(Json(collective), {}, table.collective, problems);
    if (!problems.ok()) {
      notes_.push_back(fmt::format("{} is not modelled: left out", collective));
      return;
    }
    table.ranks = ranks;
    if (run.ranks_inferred)
      notes_.push_back(
          fmt::format("{} ranks: inferred from busbw over algbw, --ranks says otherwise", ranks));
    if (run.collective_inferred)
      notes_.push_back(fmt::format("{}: inferred from the columns", collective));
    for (const std::string& gpu : run.gpus) table.gpus.push_back(gpu);
    std::int64_t nodes = answers_.nodes.value_or(run.nodes);
    // Named ranks need the servers up to the last one that is named.
    for (const std::string& gpu : run.gpus) {
      std::int64_t server = 0;
      const auto slash = gpu.find('/');
      if (gpu.starts_with("server") && slash != std::string::npos)
        std::from_chars(gpu.data() + 6, gpu.data() + slash, server);
      nodes = std::max(nodes, server + 1);
    }
    if (nodes <= 0) {
      const std::int64_t each = answers_.per_node.value_or(per_server_);
      nodes = (ranks + each - 1) / each;
      if (nodes > 1)
        notes_.push_back(fmt::format("{} ranks: taken to be on {} servers", ranks, nodes));
    }
    if (!fits(ranks, nodes, run.gpus.empty())) return;
    table.nodes = nodes;
    table.name = fmt::format("{} of {}{}", collective, ranks,
                             nodes > 1 ? fmt::format(" on {}", nodes) : std::string{});
    if (!run.algorithm.empty() || !run.protocol.empty())
      table.name +=
          fmt::format(" by {}{}{}", run.algorithm, run.protocol.empty() ? "" : "/", run.protocol);
    for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
      if (const auto found = run.environment.find(name); found != run.environment.end())
        table.name += fmt::format(" with {}={}", name, found->second);
    }
    if (!known_choices(run)) return;
    read_setup(run, table.setup);
    for (const LogPoint& point : log_points(run))
      table.rows.push_back({.bytes = point.bytes, .us = point.us, .spread = 0, .refused = {}});
    if (table.rows.empty()) {
      notes_.push_back(table.name + " has no row with a time: left out");
      return;
    }
    refuse_rows(table, run);
    std::map<std::string, int> places;
    for (const MeasuredDevice& device : measurement_.devices) {
      if (!device.bus.empty() && ++places[device.host + " " + device.bus] == 2)
        refuse_all(table, fmt::format("two ranks share the GPU at {}", device.bus));
    }
    data_.tables.push_back(std::move(table));
  }

  void refuse(const std::string& pointer, const std::string& fact, const std::string& cure) {
    out_.error(file_.at(pointer), pointer, fact, cure);
  }

  // Whether NCCL has the algorithm and protocol that the file says were forced.
  bool known_choices(const MeasuredRun& run) {
    NcclEnvironment forced;
    if (!run.algorithm.empty()) forced.variables["NCCL_ALGO"] = run.algorithm;
    if (!run.protocol.empty()) forced.variables["NCCL_PROTO"] = run.protocol;
    const auto problems = check_nccl_environment(forced);
    for (const NcclVariableProblem& problem : problems)
      refuse(at_ + (problem.name == "NCCL_ALGO" ? "/algorithm" : "/protocol"), problem.fact,
             problem.cure);
    return problems.empty();
  }

  // Whether the fabric can have so many ranks on so many servers.
  bool fits(std::int64_t ranks, std::int64_t nodes, bool unnamed) {
    if (nodes > 1 && !fabric_.spec().network) {
      refuse(at_,
             fmt::format("{} ranks on {} servers took part, the fabric is one server of {}", ranks,
                         nodes, counted(per_server_, "GPU")),
             "name a fabric with a network, see `weft list fabrics`; --nodes 1 when it was one");
      return false;
    }
    if (nodes > kMostServers) {
      refuse(at_, fmt::format("{} servers are more than {}", nodes, kMostServers),
             "--ranks, --nodes and --gpus-per-node say how many took part");
      return false;
    }
    if (!unnamed || (ranks + nodes - 1) / nodes <= per_server_) return true;
    refuse(at_,
           fmt::format("{} ranks on {} {} took part, a server has {}", ranks, nodes,
                       nodes == 1 ? "server" : "servers", counted(per_server_, "GPU")),
           "--nodes and --gpus-per-node say how many there were; is it the right fabric?");
    return false;
  }
  bool wrong(const MeasuredRun& run) const {
    if (answers_.force) return false;
    return std::ranges::any_of(run.samples,
                               [](const CollectiveSample& s) { return s.wrong.value_or(0) >= 1; });
  }

  static void refuse_all(FitTable& table, const std::string& why) {
    for (FitRow& row : table.rows)
      if (row.refused.empty()) row.refused = why;
  }

  void read_setup(const MeasuredRun& run, NcclSetup& setup) {
    std::string nccl = setup_of(measurement_, "nccl");
    if (nccl.empty() && !measurement_.hosts.empty()) nccl = measurement_.hosts.front().nccl;
    const auto logged = parse_nccl_version(nccl.substr(0, nccl.find('+')));
    if (answers_.release) {
      setup.version = *answers_.release;
    } else if (logged) {
      setup.version = *logged;
    } else {
      notes_.push_back(fmt::format("{}: which NCCL it was is not said: {} taken", measurement_.name,
                                   version_text(setup.version)));
    }
    setup.harness = answers_.harness.value_or(harness_of(measurement_, run.ranks));
    setup.environment = modelled_environment(run);
    for (const auto& [name, value] : answers_.environment.variables)
      setup.environment.variables[name] = value;
    setup.algorithm = answers_.algorithm.empty() ? run.algorithm : answers_.algorithm;
    setup.protocol = answers_.protocol.empty() ? run.protocol : answers_.protocol;
  }

  // Of what the log says was set, what changes something here and can be read.
  NcclEnvironment modelled_environment(const MeasuredRun& run) {
    NcclEnvironment out{run.environment};
    std::vector<std::string> known, unknown;
    for (const NcclVariableProblem& problem : check_nccl_environment(out)) {
      out.variables.erase(problem.name);
      if (answers_.environment.find(problem.name) == nullptr) unknown.push_back(problem.name);
    }
    for (const auto& [name, value] : out.variables) known.push_back(name + "=" + value);
    const auto tell = [&](const std::vector<std::string>& names, const char* what) {
      if (names.empty()) return;
      const std::string note =
          fmt::format("{}: {}: {}", measurement_.name, join(names, ", "), what);
      if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
    };
    tell(known, "as the log says it was set; --env says otherwise");
    tell(unknown, "set in the log and not modelled: it changes nothing here");
    return out;
  }

  // Copies between GPUs, or of a GPU and the host memory next to it, as nvbandwidth allocates it. Matrices in which other devices
  // copy too are another question.
  void add_matrix(const MeasuredMatrix& matrix) {
    const auto is_gpu = [](const std::string& name) {
      return name.find("gpu") != std::string::npos;
    };
    if (matrix.traffic == CopyTraffic::crowded) {
      notes_.push_back(matrix.name + ": other devices copy too, left out");
      return;
    }
    const bool peer = matrix.peer_access.value_or(true) && !matrix.staged;
    // A load or store of a running kernel is not started by a copy call.
    const bool kernel = matrix.method == CopyMethod::sm;
    std::size_t left_out = 0;
    for (const MeasuredPair& pair : matrix.pairs) {
      if (!is_gpu(pair.from) || !is_gpu(pair.to)) {
        const bool copied = matrix.method == CopyMethod::copy_engine && pair.bandwidth;
        if (!copied || is_gpu(pair.from) == is_gpu(pair.to)) {
          ++left_out;
          continue;
        }
        data_.copies.push_back({.from = is_gpu(pair.from) ? pair.from : kHost,
                                .to = is_gpu(pair.to) ? pair.to : kHost,
                                .bytes = kMatrixCopy,
                                .both_ways = matrix.traffic == CopyTraffic::opposed,
                                .value = pair.bandwidth->bytes_per_s() * 1e-9,
                                .group = matrix.name});
        continue;
      }
      if (pair.from == pair.to) {
        ++within_;
        continue;
      }
      FitCopy copy{.from = pair.from, .to = pair.to};
      copy.group = matrix.name;
      copy.peer_access = peer;
      copy.both_ways = matrix.traffic == CopyTraffic::opposed;
      if (pair.bandwidth) {
        copy.bytes = kMatrixCopy;
        copy.quantity = CopyQuantity::rate;
        copy.value = pair.bandwidth->bytes_per_s() * 1e-9;
        data_.copies.push_back(copy);
      }
      if (!pair.latency) continue;
      copy.bytes = Bytes{1};
      copy.both_ways = false;
      copy.quantity = CopyQuantity::latency;
      copy.value = us_of(*pair.latency);
      copy.copy_call = !kernel;
      if (kernel) copy.refused = "the time of a load, not of a copy: kept apart";
      data_.copies.push_back(copy);
    }
    if (left_out > 0)
      notes_.push_back(
          fmt::format("{}: {} pairs with a host are left out, no copies by copy engines",
                      matrix.name, left_out));
  }

  static double spread_of(const SampleRepeats& repeated, Time time) {
    // Of the median: the quartiles of n repeats lie 1.35 standard deviations apart.
    if (!repeated.spread || time.ps <= 0 || repeated.repeats < 1) return 0;
    return repeated.spread->seconds() / time.seconds() / 1.35 * 1.25 /
           std::sqrt(static_cast<double>(repeated.repeats));
  }

  // What started together stands together, under a number that no other file has.
  void add_copies() {
    int last = 0;
    for (const FitCopy& copy : data_.copies) last = std::max(last, copy.together);
    std::map<int, int> numbers;
    std::map<int, std::vector<const CopySample*>> groups;
    for (const CopySample& sample : measurement_.copies)
      if (sample.together > 0) groups[sample.together].push_back(&sample);
    for (const CopySample& sample : measurement_.copies) {
      if (sample.together == 0) {
        add_copy(sample, 0);
        continue;
      }
      if (!numbers.try_emplace(sample.together, ++last).second) continue;
      for (const CopySample* one : groups[sample.together]) add_copy(*one, last);
    }
  }

  void add_copy(const CopySample& sample, int together) {
    if (sample.method != CopyMethod::copy_engine) {
      ++(sample.method == CopyMethod::pageable ? pageable_ : kernel_copies_);
      return;
    }
    if (sample.from == sample.to) {
      ++within_;
      return;
    }
    FitCopy copy{.from = sample.from, .to = sample.to};
    copy.bytes = sample.bytes;
    copy.quantity = CopyQuantity::time;
    copy.value = us_of(sample.time);
    copy.peer_access = sample.peer_access.value_or(true);
    copy.spread = spread_of(sample.repeated, sample.time);
    copy.together = together;
    const bool host =
        sample.from.find("cpu") != std::string::npos || sample.to.find("cpu") != std::string::npos;
    copy.group = sample.pattern.empty() ? (host ? "host copy" : "copy") : sample.pattern;
    data_.copies.push_back(copy);
  }

  void add_kernel(const KernelSample& sample) {
    if (sample.test == KernelTest::launch || sample.test == KernelTest::graph_launch) {
      ++launches_;
      return;
    }
    const bool product = sample.test == KernelTest::matmul;
    const bool modelled = std::ranges::any_of(enum_names(Precision{}), [&](const auto& precision) {
      return precision.name == sample.type;
    });
    if (product ? sample.m < 1 || sample.n < 1 || sample.k < 1 || !modelled
                : sample.bytes.count < 1) {
      if (unsized_++ == 0)
        first_unsized_ = fmt::format("{} of {}", write_config(sample.test).text, sample.gpu);
      return;
    }
    data_.kernels.push_back({.gpu = sample.gpu,
                             .type = sample.type,
                             .test = sample.test,
                             .m = sample.m,
                             .n = sample.n,
                             .k = sample.k,
                             .bytes = sample.bytes,
                             .us = us_of(sample.time),
                             .spread = spread_of(sample.repeated, sample.time),
                             .refused = {}});
  }

  std::size_t kernel_copies_ = 0, pageable_ = 0, launches_ = 0, within_ = 0, unsized_ = 0;
  std::string first_unsized_, at_;
  static constexpr Bytes kMatrixCopy =
      256_MiB;  // what the tools copy by default, to the power of two

  const MeasuredFile& file_;
  const Measurement& measurement_;
  const Fabric& fabric_;
  std::int64_t per_server_;
  const FitAnswers& answers_;
  FitData& data_;
  std::vector<std::string>& notes_;
  Diagnostics& out_;
};

}  // namespace

void add_measurement(const MeasuredFile& file, const Fabric& fabric, const FitAnswers& answers,
                     FitData& data, std::vector<std::string>& notes, Diagnostics& out) {
  Reader(file, fabric, answers, data, notes, out).run();
}

std::vector<FitTable> tables_of(const ValidationRecord& record, std::size_t gpus_per_server) {
  std::vector<FitTable> out;
  if (record.kind != CaseKind::nccl) return out;
  const NcclCase& ask = record.nccl;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> at;
  for (const CaseRow& row : record.rows) {
    const auto [entry, fresh] =
        at.try_emplace({row.nodes, row.gpus_per_node.value_or(-1)}, out.size());
    if (fresh) {
      FitTable& table = out.emplace_back();
      table.name = record.id;
      table.collective = ask.collective;
      table.nodes = row.nodes;
      table.per_node = row.gpus_per_node;
      table.positions = ask.gpus;
      if (const auto version = parse_nccl_version(ask.nccl)) table.setup.version = *version;
      table.setup.harness = ask.harness;
      table.setup.algorithm = ask.algorithm;
      table.setup.protocol = ask.protocol;
      for (const auto& [name, value] : ask.env) table.setup.environment.variables[name] = value;
    }
    const std::size_t local = !ask.gpus.empty()   ? ask.gpus.size()
                              : row.gpus_per_node ? static_cast<std::size_t>(*row.gpus_per_node)
                                                  : gpus_per_server;
    const std::size_t ranks = local * static_cast<std::size_t>(row.nodes);
    const double bits =
        record.quantity == Quantity::busbw ? busbw_factor(ask.collective, ranks) : 1;
    FitRow fitted{.bytes = row.bytes, .us = row.measured, .spread = 0, .refused = {}};
    if (record.quantity != Quantity::time)
      fitted.us = bits * row.bytes.value() / row.measured * 1e-3;
    out[entry->second].rows.push_back(fitted);
  }
  return out;
}

}  // namespace weft
