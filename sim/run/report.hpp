// SPDX-License-Identifier: Apache-2.0
// What a run found, in the form that scripts rely on (all numbers SI without prefix unless the key says otherwise).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/json.hpp"
#include "sim/core/loader.hpp"
#include "sim/core/units.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/run/network_model.hpp"
#include "sim/run/observed.hpp"
#include "sim/run/repeat_memory.hpp"

namespace weft {

struct GroupReport {
  std::vector<std::string> gpus;  // first and last, for people
  std::size_t ranks = 0;
  double time_s = 0;
};

struct JobReport {
  std::string name, kind;
  std::string collective, algorithm;  // collective jobs
  std::size_t ranks = 0;
  std::size_t channels = 0;
  double bytes = 0;   // of the collective or of all flows
  double time_s = 0;  // mean of the iterations
  double start_s = 0, finish_s = 0;
  std::size_t iterations = 0;
  double algbw_gbs = 0, busbw_gbs = 0;
  double mean_rate_gbs = 0, least_rate_gbs = 0;  // of single flows
  Distribution completion_s, slowdown;           // of single flows
  std::vector<GroupReport> groups;               // more than one group
  std::optional<FastForward> fast_forward;       // of iterations that repeat
  std::vector<std::string> notes;                // "group of one: no traffic"
  // Of training and inference: the keys of their own, and the same as lines for people.
  Json details;
  std::vector<std::pair<std::string, std::string>> lines;
};

struct FlowReport {
  std::string id, src, dst;
  double bytes = 0, start_s = 0, finish_s = 0, rate_gbs = 0;
  double slowdown = 1;  // against the flow alone; 0: it did not end
  FlowObserved seen;    // packet level
};

struct LinkReport {
  std::string id, link_class, tier;
  double bytes = 0, utilisation = 0;
  std::optional<QueueReport> queue;  // packet level
};

struct CriticalStep {
  std::string op, resource;
  double start_s = 0, duration_s = 0;
};

struct Bottleneck {
  std::string resource;
  double share = 0;                          // of the time that it is in use
  std::optional<double> gain_if_infinite_s;  // unless the run was too large to be repeated
  std::optional<double> loss_if_halved_s;    // where nothing gains
};

struct Warning {
  std::string code, text;
};

struct Report {
  std::string version, scenario, question, fidelity, fabric, fingerprint;
  std::int64_t seed = 1;
  double time_s = 0, bound_s = 0;
  std::string bound_by;  // the resource that sets the bound
  std::uint64_t events = 0;
  double wall_s = 0;                // filled in by the caller, who has a clock
  std::int64_t peak_rss_bytes = 0;  // the same
  std::vector<JobReport> jobs;
  std::vector<FlowReport> flows;
  std::vector<LinkReport> links;
  std::size_t flows_cut = 0, links_cut = 0;  // left out by the cap
  std::vector<CriticalStep> critical_path;
  bool explained = false;                         // the gains below were computed
  std::vector<Bottleneck> bottlenecks;            // one per tier and class of links in use
  std::vector<std::pair<Tier, LinkClass>> tiers;  // of each bottleneck, before they are sorted
  Evidence evidence;
  NetworkCounters network;
  std::vector<Setting> settings;  // of the packet level, as used
  ObservedReport observed;
  std::vector<Warning> warnings;
  Json effective;  // the resolved scenario

  const JobReport& job(std::string_view name) const;
};

Json to_json(const Report& report);

// A page of text for a terminal.
std::string summary(const Report& report);

}  // namespace weft
