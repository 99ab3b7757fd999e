// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/session.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "calibrate/log_facts.hpp"

namespace weft {
namespace {

// A fragment of the file that is merged into the whole one: its head is never used.
Measurement fragment(const std::string& test, TestState state, std::string reason = {}) {
  Measurement out;
  out.kind = "measurement";
  out.name = "part";
  out.tool = "weft-probe";
  out.tests.push_back({test, std::move(reason), state});
  return out;
}

struct Parts {
  std::vector<RepeatedTime> times;

  Parts(const std::vector<std::vector<Time>>& runs, std::optional<Frequency> clock) {
    const std::size_t count = runs.empty() ? 0 : runs.front().size();
    for (std::size_t part = 0; part < count; ++part) {
      std::vector<Time> of_part;
      for (const std::vector<Time>& run : runs) of_part.push_back(run.at(part));
      times.push_back(*summarise(std::move(of_part)));
      times.back().repeats.clock = clock;
    }
  }
};

class Recorder {
 public:
  Recorder(Measurement& out, const Parts& parts) : out_(out), times_(parts.times) {}

  void operator()(const CopyTest& test) const {
    for (std::size_t i = 0; i < test.transfers.size(); ++i) {
      const CopyEnds& ends = test.transfers[i];
      out_.copies.push_back({.from = ends.from,
                             .to = ends.to,
                             .bytes = ends.bytes,
                             .method = test.method,
                             .peer_access = test.peer_access,
                             .time = times_.at(i).median,
                             .repeated = times_.at(i).repeats,
                             .together = test.transfers.size() > 1 ? 1 : 0,
                             .pattern = test.pattern});
    }
  }
  void operator()(const LatencyTest& test) const {
    out_.latencies.push_back({.from = test.from,
                              .to = test.to,
                              .method = test.method,
                              .bytes = test.bytes,
                              .time = first().median,
                              .repeated = first().repeats});
  }
  void operator()(const GpuKernelTest& test) const {
    out_.kernels.push_back({.gpu = test.gpu,
                            .type = test.type,
                            .test = test.test,
                            .m = test.m,
                            .n = test.n,
                            .k = test.k,
                            .kernels = test.kernels,
                            .bytes = test.bytes,
                            .time = first().median,
                            .repeated = first().repeats});
  }
  void operator()(const CollectiveTest& test) const {
    MeasuredRun run;
    run.collective = test.collective;
    run.ranks = static_cast<int>(test.gpus.size());
    run.algorithm = test.algorithm;
    run.protocol = test.protocol;
    run.gpus = test.gpus;
    CollectiveSample& sample = run.samples.emplace_back();
    sample.bytes = test.bytes;
    sample.type = "float";
    sample.count = test.bytes.count / 4;
    if (test.collective == "all_reduce" || test.collective == "reduce_scatter")
      sample.operation = "sum";
    if (test.collective == "broadcast") sample.root = 0;
    sample.time = first().median;
    sample.algbw = rate_over(test.bytes, first().median);
    const double factor = bus_factor(test.collective, run.ranks);
    sample.busbw =
        Bandwidth{static_cast<std::int64_t>(static_cast<double>(sample.algbw.bps) * factor)};
    sample.repeated = first().repeats;
    out_.runs.push_back(std::move(run));
  }
  void operator()(const OverlapTest& test) const {
    out_.overlaps.push_back({.gpu = test.collective.gpus.front(),
                             .type = test.type,
                             .collective = test.collective.collective,
                             .m = test.m,
                             .n = test.n,
                             .k = test.k,
                             .ranks = static_cast<int>(test.collective.gpus.size()),
                             .bytes = test.collective.bytes,
                             .kernel_alone = times_.at(0).median,
                             .collective_alone = times_.at(1).median,
                             .kernel = times_.at(2).median,
                             .collective_time = times_.at(3).median,
                             .repeated = times_.at(2).repeats});
  }
  void operator()(const MessageToolTest&) const {}

 private:
  const RepeatedTime& first() const { return times_.at(0); }

  Measurement& out_;
  const std::vector<RepeatedTime>& times_;
};

class Session {
 public:
  Session(const ProbePlan& plan, ProbeBackend& backend, ResultFile& file, const SessionHooks& hooks)
      : plan_(plan), backend_(backend), file_(file), hooks_(hooks) {}

  SessionResult run() {
    for (const ProbeTest& test : plan_.impossible) {
      if (!file_.has(test.test)) record(fragment(test.test, TestState::impossible, test.reason));
    }
    for (std::size_t i = 0; i < plan_.tests.size(); ++i) {
      const PlannedTest& test = plan_.tests[i];
      if (file_.has(test.name)) {
        ++result_.skipped;
        continue;
      }
      if (stopped()) return leave(SessionEnd::stopped, i);
      if (hooks_.progress) hooks_.progress(i, plan_.tests.size(), test);
      if (!measure(test)) return leave(SessionEnd::stopped, i);
      if (backend_.broken()) return leave(SessionEnd::broken, i + 1);
    }
    return result_;
  }

 private:
  bool stopped() const { return hooks_.stop && hooks_.stop(); }

  // False: stopped before the test was done.
  bool measure(const PlannedTest& test) {
    try {
      const auto prepared = backend_.prepare(test);
      if (std::holds_alternative<MessageToolTest>(test.what)) {
        Measurement out = fragment(test.name, TestState::done);
        out.messages = prepared->messages();
        if (out.messages.empty()) throw TestFailed("it printed no result");
        record(out);
        ++result_.done;
        return true;
      }
      for (int i = 0; i < plan_.rules.warm_up; ++i) {
        if (stopped()) return false;
        prepared->once();
      }
      std::vector<std::vector<Time>> runs;
      const double start = backend_.now();
      while (wants_more(plan_.rules, static_cast<int>(runs.size()), backend_.now() - start)) {
        if (stopped()) return false;
        runs.push_back(prepared->once());
      }
      const std::optional<Frequency> clock = prepared->clock();
      for (const Time time : runs.front()) {
        if (time.ps <= 0) throw TestFailed("the clock saw no time pass");
      }
      record(measurement_of(test, runs, clock));
      ++result_.done;
    } catch (const TestFailed& failure) {
      ++result_.failed;
      tell(fmt::format("{}: {}", test.name, failure.what()));
      record(fragment(test.name, TestState::failed, failure.what()));
    }
    return true;
  }

  void record(const Measurement& part) {
    file_.add(part);
    if (const std::string trouble = file_.take_trouble(); !trouble.empty())
      tell(fmt::format(
          "cannot write {}; results are kept in memory and written when it works again", trouble));
  }

  void tell(const std::string& line) const {
    if (hooks_.tell) hooks_.tell(line);
  }

  // What is left of the plan is listed.
  SessionResult leave(SessionEnd end, std::size_t from) {
    result_.end = end;
    Measurement left = fragment({}, TestState::not_run);
    left.tests.clear();
    for (std::size_t i = from; i < plan_.tests.size(); ++i) {
      if (!file_.has(plan_.tests[i].name))
        left.tests.push_back({plan_.tests[i].name, {}, TestState::not_run});
    }
    if (!left.tests.empty()) record(left);
    return result_;
  }

  const ProbePlan& plan_;
  ProbeBackend& backend_;
  ResultFile& file_;
  const SessionHooks& hooks_;
  SessionResult result_;
};

}  // namespace

Measurement measurement_of(const PlannedTest& test, const std::vector<std::vector<Time>>& runs,
                           std::optional<Frequency> clock) {
  Measurement out = fragment(test.name, TestState::done);
  const Parts parts(runs, clock);
  std::visit(Recorder(out, parts), test.what);
  return out;
}

SessionResult run_session(const ProbePlan& plan, ProbeBackend& backend, ResultFile& file,
                          const SessionHooks& hooks) {
  return Session(plan, backend, file, hooks).run();
}

}  // namespace weft
