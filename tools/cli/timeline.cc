// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/timeline.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/run/executor.hpp"
#include "sim/run/jobs.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostSharesOfAPath = 64;
constexpr std::size_t kMostCounterSteps = 4000;
constexpr std::int64_t kLeastPixels = 500;

class Builder {
 public:
  Builder(const RunTrail& trail, Time blur, std::size_t most)
      : trail_(trail), blur_(blur), most_(most) {}

  Timeline build() {
    out_.labels = trail_.workload.labels;
    for (std::uint32_t j = 0; j < trail_.jobs.size(); ++j) {
      out_.jobs.push_back(trail_.jobs[j].spec->name);
      add_job(j);
    }
    order_groups();
    std::ranges::sort(raw_, {}, [](const Raw& r) {
      return std::tuple{r.group, r.slice.start, r.slice.operation};
    });
    merge();
    while (raw_.size() > most_ && blur_.ps > 0 && blur_ < coarsest()) {
      blur_ = blur_ * 2;
      merge();
    }
    keep_longest();
    spread();
    std::ranges::stable_sort(out_.slices, {}, [](const Timeline::Slice& s) {
      return std::pair{s.lane, s.start};
    });
    return std::move(out_);
  }

 private:
  struct Raw {
    std::uint32_t group = 0;
    Timeline::Slice slice;
  };

  std::uint32_t group(std::uint32_t job, std::string name) {
    const auto [found, fresh] =
        known_.try_emplace({job, name}, static_cast<std::uint32_t>(groups_.size()));
    if (fresh) groups_.push_back({std::move(name), job});
    return found->second;
  }

  void add_job(std::uint32_t j) {
    const JobPlan& job = trail_.jobs[j];
    std::map<std::uint32_t, std::uint32_t> track_of;
    if (job.modelled) {
      for (const Track& track : job.modelled->tracks()) {
        const std::uint32_t g = group(j, track.name);
        computes_.insert(g);
        for (const OpId op : track.operations) track_of[op.v] = g;
      }
    }
    std::vector<std::uint32_t> groups(job.run.end_op - job.run.first_op, 0);
    for (std::uint32_t i = job.run.first_op; i < job.run.end_op; ++i) {
      const OpId op{i};
      const Operation& operation = trail_.workload.operations[op];
      const OperationTimes& times = trail_.executor.times(op);
      if (times.finished.ps < 0) continue;
      const OpId cause = times.cause;
      const bool known_cause =
          cause.valid() && cause.v >= job.run.first_op && cause.v < job.run.end_op;
      const auto track = track_of.find(i);
      Timeline::Kind kind = Timeline::Kind::communication;
      std::uint32_t& g = groups[i - job.run.first_op];
      if (track != track_of.end()) {
        g = track->second;
        kind = Timeline::Kind::compute;
      } else if (operation.kind == Operation::Kind::flow) {
        g = flow_group(j, op);
      } else {
        const bool after_flow =
            known_cause && trail_.workload.operations[cause].kind == Operation::Kind::flow;
        // What a model starts belongs to its communication, anything else to what it follows.
        g = job.modelled  ? flow_group(j, op)
            : known_cause ? groups[cause.v - job.run.first_op]
                          : group(j, "start");
        kind = after_flow ? Timeline::Kind::latency : Timeline::Kind::software;
        if (operation.kind == Operation::Kind::barrier && !after_flow) continue;
      }
      // The arrival of a sent flow counts from when its last byte has left.
      Time start = times.started;
      if (operation.kind == Operation::Kind::barrier)
        start = std::max(start, trail_.executor.times(cause).finished);
      if (times.finished <= start) continue;
      raw_.push_back(
          {g,
           {.label = operation.label,
            .kind = kind,
            .start = start,
            .duration = times.finished - start,
            .operation = op,
            .cause = cause,
            .bytes = operation.kind == Operation::Kind::flow ? operation.size.count : 0}});
    }
  }

  std::uint32_t flow_group(std::uint32_t j, OpId op) {
    const JobPlan& job = trail_.jobs[j];
    const Operation& operation = trail_.workload.operations[op];
    if (job.modelled) {
      // "train: tp" is the lane tp of the job train.
      const std::string& label = trail_.workload.labels[operation.label];
      const std::string prefix = out_.jobs[j] + ": ";
      return group(j, label.starts_with(prefix) ? label.substr(prefix.size()) : label);
    }
    const auto shares = trail_.workload.shares_of(operation.way);
    std::uint32_t first = kNoResource;
    std::size_t from_gpus = 0;
    for (const Share& share : shares) {
      if (share.resource >= trail_.fabric.link_count()) continue;
      if (first == kNoResource) first = share.resource;
      const NodeId from = trail_.fabric.link(LinkId{share.resource}).from;
      from_gpus += trail_.fabric.node(from).kind == NodeKind::gpu ? 1U : 0U;
    }
    if (first == kNoResource) return group(j, "inside one GPU");
    if (shares.size() > kMostSharesOfAPath || from_gpus > 1) {
      const auto within = [&](const GroupPlan& plan) {
        return op >= plan.first && op <= plan.last;
      };
      auto plan = std::ranges::find_if(job.groups, within);
      if (plan == job.groups.end() && job.groups.size() == 1) plan = job.groups.begin();
      if (plan != job.groups.end() && !plan->gpus.empty()) {
        return group(j, fmt::format("{} ... {}", trail_.fabric.name(plan->gpus.front()),
                                    trail_.fabric.name(plan->gpus.back())));
      }
    }
    return group(j, trail_.fabric.name(trail_.fabric.link(LinkId{first}).from));
  }

  // By job, tracks of computing first, then by name, gpu2 before gpu10.
  void order_groups() {
    std::vector<std::uint32_t> order(groups_.size()), rank(groups_.size());
    for (std::uint32_t g = 0; g < order.size(); ++g) order[g] = g;
    std::ranges::stable_sort(order, {}, [&](std::uint32_t g) {
      const auto& [name, job] = groups_[g];
      return std::tuple{job, !computes_.contains(g), natural_key(name)};
    });
    std::vector<Timeline::Lane> sorted;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      rank[order[i]] = i;
      sorted.push_back(groups_[order[i]]);
    }
    groups_ = std::move(sorted);
    for (Raw& r : raw_) r.group = rank[r.group];
  }

  // Numbers padded, so that they sort by value.
  static std::string natural_key(const std::string& name) {
    std::string out, digits;
    for (const char c : name + '\0') {
      if (c >= '0' && c <= '9') {
        digits += c;
        continue;
      }
      if (!digits.empty())
        out += std::string(20 - std::min<std::size_t>(20, digits.size()), '0') + digits;
      digits.clear();
      out += c;
    }
    return out;
  }

  // What may be drawn as one at most.
  Time coarsest() const { return Time{trail_.executor.makespan().ps / kLeastPixels}; }

  void merge() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < raw_.size(); ++i) {
      if (kept > 0 && blur_.ps > 0) {
        Raw& last = raw_[kept - 1];
        const Timeline::Slice &a = last.slice, &b = raw_[i].slice;
        const Time end = a.start + a.duration;
        if (last.group == raw_[i].group && a.kind == b.kind && a.label == b.label &&
            b.start >= end && b.start - end <= blur_) {
          last.slice.duration = b.start + b.duration - a.start;
          last.slice.bytes += b.bytes;
          continue;
        }
      }
      raw_[kept++] = raw_[i];
    }
    raw_.resize(kept);
  }

  void keep_longest() {
    if (raw_.size() <= most_ || most_ == 0) return;
    std::vector<Time> lengths;
    for (const Raw& r : raw_) lengths.push_back(r.slice.duration);
    std::ranges::sort(lengths, std::ranges::greater{});
    const Time least = lengths[most_ - 1];
    // Of those that are just long enough, every so many-th: not only the first.
    const auto ties = static_cast<std::size_t>(std::ranges::count(lengths, least));
    const auto longer =
        static_cast<std::size_t>(std::ranges::find(lengths, least) - lengths.begin());
    const std::size_t room = most_ - longer;
    std::size_t kept = 0, tie = 0;
    for (const Raw& r : raw_) {
      const bool stays = r.slice.duration > least ||
                         (r.slice.duration == least && (tie + 1) * room / ties > tie * room / ties);
      if (r.slice.duration == least) ++tie;
      if (stays) raw_[kept++] = r;
    }
    out_.left_out = raw_.size() - kept;
    raw_.resize(kept);
  }

  // Each group's slices onto the fewest lanes without overlap.
  void spread() {
    std::vector<Time> free_at;
    std::uint32_t base = 0;
    for (std::size_t i = 0; i < raw_.size(); ++i) {
      if (i == 0 || raw_[i].group != raw_[i - 1].group) {
        base = static_cast<std::uint32_t>(out_.lanes.size());
        free_at.clear();
      }
      Timeline::Slice slice = raw_[i].slice;
      const auto found = std::ranges::find_if(free_at, [&](Time t) { return t <= slice.start; });
      const auto at = static_cast<std::size_t>(found - free_at.begin());
      if (found == free_at.end()) {
        free_at.emplace_back();
        out_.lanes.push_back(groups_[raw_[i].group]);
      }
      free_at[at] = slice.start + slice.duration;
      slice.lane = base + static_cast<std::uint32_t>(at);
      out_.slices.push_back(slice);
    }
  }

  const RunTrail& trail_;
  Time blur_;
  std::size_t most_;
  Timeline out_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> known_;
  std::vector<Timeline::Lane> groups_;
  std::set<std::uint32_t> computes_;  // groups that are tracks of computing
  std::vector<Raw> raw_;
};

// Microseconds with all picoseconds.
std::string micros(Time time) {
  return fmt::format("{}.{:06}", time.ps / 1'000'000, time.ps % 1'000'000);
}

std::string quoted(const std::string& text) { return to_text(Json(text), 0); }

void add_arrows(const Timeline& timeline, std::string& out) {
  std::map<std::uint32_t, const Timeline::Slice*> by_operation;
  for (const Timeline::Slice& slice : timeline.slices) by_operation[slice.operation.v] = &slice;
  for (const Timeline::Slice& slice : timeline.slices) {
    if (!slice.cause.valid()) continue;
    const auto cause = by_operation.find(slice.cause.v);
    if (cause == by_operation.end() || cause->second->lane == slice.lane) continue;
    const Timeline::Slice& from = *cause->second;
    const auto arrow = [&](char phase, const Timeline::Slice& at, Time when) {
      out += fmt::format(
          ",\n{{\"ph\":\"{}\",\"id\":{},\"name\":\"sets free\",\"cat\":\"cause\",\"pid\":{},"
          "\"tid\":{},\"ts\":{}{}}}",
          phase, slice.operation.v, timeline.lanes[at.lane].job, at.lane, micros(when),
          phase == 'f' ? ",\"bp\":\"e\"" : "");
    };
    arrow('s', from, from.start + from.duration - Time{1});
    arrow('f', slice, slice.start);
  }
}

void add_counters(const Timeline& timeline, std::string& out) {
  for (std::uint32_t job = 0; job < timeline.jobs.size(); ++job) {
    std::map<Time, std::array<std::int64_t, 2>> steps;  // transfers, bytes
    for (const Timeline::Slice& slice : timeline.slices) {
      if (timeline.lanes[slice.lane].job != job || slice.bytes == 0) continue;
      auto &begin = steps[slice.start], &end = steps[slice.start + slice.duration];
      ++begin[0];
      --end[0];
      begin[1] += slice.bytes;
      end[1] -= slice.bytes;
    }
    const std::size_t stride = 1 + steps.size() / kMostCounterSteps;
    std::array<std::int64_t, 2> now{};
    std::size_t i = 0;
    for (const auto& [when, change] : steps) {
      now[0] += change[0];
      now[1] += change[1];
      if (i++ % stride != 0 && i != steps.size()) continue;
      out += fmt::format(
          ",\n{{\"ph\":\"C\",\"name\":\"under "
          "way\",\"pid\":{},\"ts\":{},\"args\":{{\"transfers\":{},"
          "\"bytes\":{}}}}}",
          job, micros(when), now[0], now[1]);
    }
  }
}

}  // namespace

std::string_view Timeline::name(Kind kind) {
  constexpr std::string_view kNames[] = {"compute", "communication", "latency", "software"};
  return kNames[static_cast<std::size_t>(kind)];
}

Timeline make_timeline(const RunTrail& trail, Time blur, std::size_t most) {
  return Builder(trail, blur, most).build();
}

Json to_json(const Timeline& timeline) {
  Json out = Json::object();
  const auto texts = [&](std::string_view key, const std::vector<std::string>& values) {
    Json& list = out.set(key, Json::array());
    for (const std::string& value : values) list.push(value);
  };
  texts("jobs", timeline.jobs);
  texts("labels", timeline.labels);
  texts("kinds", {"compute", "communication", "latency", "software"});
  Json& lanes = out.set("lanes", Json::array());
  for (const Timeline::Lane& lane : timeline.lanes) {
    Json l = Json::object();
    l.set("name", lane.name);
    l.set("job", lane.job);
    lanes.push(std::move(l));
  }
  const auto column = [&](std::string_view key, auto value) {
    Json& cells = out.set(key, Json::array());
    for (const Timeline::Slice& slice : timeline.slices) cells.push(value(slice));
  };
  column("lane", [](const Timeline::Slice& s) { return s.lane; });
  column("start_s", [](const Timeline::Slice& s) { return s.start.seconds(); });
  column("duration_s", [](const Timeline::Slice& s) { return s.duration.seconds(); });
  column("kind", [](const Timeline::Slice& s) { return static_cast<std::uint32_t>(s.kind); });
  column("label", [](const Timeline::Slice& s) { return s.label; });
  out.set("left_out", std::uint64_t{timeline.left_out});
  return out;
}

std::string chrome_trace(const Timeline& timeline) {
  std::string out = fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"program\":\"weft\",\"left_out\":{}}},\n"
      "\"traceEvents\":[\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{{\"name\":{}"
      "}}}}",
      timeline.left_out, quoted(timeline.jobs.empty() ? "nothing ran" : timeline.jobs.front()));
  for (std::size_t j = 1; j < timeline.jobs.size(); ++j) {
    out += fmt::format(
        ",\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":{}}}}}", j,
        quoted(timeline.jobs[j]));
  }
  for (std::size_t l = 0; l < timeline.lanes.size(); ++l) {
    out += fmt::format(
        ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}"
        "}",
        timeline.lanes[l].job, l, quoted(timeline.lanes[l].name));
  }
  for (const Timeline::Slice& slice : timeline.slices) {
    out += fmt::format(
        ",\n{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},"
        "\"args\":{{\"operation\":{},\"bytes\":{}}}}}",
        quoted(timeline.labels[slice.label]), Timeline::name(slice.kind),
        timeline.lanes[slice.lane].job, slice.lane, micros(slice.start), micros(slice.duration),
        slice.operation.v, slice.bytes);
  }
  add_arrows(timeline, out);
  add_counters(timeline, out);
  return out + "\n]}\n";
}

}  // namespace weft
