// SPDX-License-Identifier: Apache-2.0
// Keys of the congestion controls: `models.packet.dcqcn` and its siblings. What is absent takes the default of the scheme's
// paper, as its doc text says. The report lists all that were used. What each scheme does with them: models/packet/congestion.
#pragma once

#include <array>
#include <optional>

#include "sim/core/config.hpp"

namespace weft {

enum class CongestionScheme {
  automatic,
  none,
  dcqcn,
  hpcc,
  timely,
  swift,
  dctcp,
  cubic,
  receiver,
  fecn
};
constexpr auto enum_names(CongestionScheme) {
  using enum CongestionScheme;
  return std::array<EnumName<CongestionScheme>, 10>{{{automatic, "automatic"},
                                                     {none, "none"},
                                                     {dcqcn, "dcqcn"},
                                                     {hpcc, "hpcc"},
                                                     {timely, "timely"},
                                                     {swift, "swift"},
                                                     {dctcp, "dctcp"},
                                                     {cubic, "cubic"},
                                                     {receiver, "receiver"},
                                                     {fecn, "fecn"}}};
}

inline constexpr Time kLongestTimer = {3'600'000'000'000'000};  // an hour

enum class DcqcnPreset { paper, nvidia };
constexpr auto enum_names(DcqcnPreset) {
  using enum DcqcnPreset;
  return std::array<EnumName<DcqcnPreset>, 2>{{{paper, "paper"}, {nvidia, "nvidia"}}};
}

struct DcqcnSpec {
  DcqcnPreset preset = DcqcnPreset::paper;
  std::optional<double> g, initial_alpha, max_decrease;
  std::optional<Time> alpha_timer, rate_timer, decrease_interval, cnp_interval;
  std::optional<Bytes> byte_counter;
  std::optional<std::int64_t> fast_recovery;
  std::optional<Bandwidth> additive, hyper, min_rate;
  template <class V>
  void visit(V&& v) {
    v("preset", preset, "what absent keys take: the paper's values or ConnectX firmware defaults");
    v("g", g, "weight of a fresh mark in alpha; paper 1/256, nvidia 5/1024", between(0, 1));
    v("initial_alpha", initial_alpha, "before the first CNP; paper 1, nvidia 1023/1024",
      between(0, 1));
    v("max_decrease", max_decrease, "largest share of the rate that one CNP takes; 0.5",
      between(0, 1));
    v("alpha_timer", alpha_timer,
      "alpha decays once per so long without CNP; paper 55 us, nvidia "
      "1 us",
      positive, at_most(kLongestTimer));
    v("rate_timer", rate_timer, "between increases; paper 55 us, nvidia 300 us", positive,
      at_most(kLongestTimer));
    v("decrease_interval", decrease_interval,
      "at most one decrease in so long; paper 50 us, nvidia 4 us", at_most(kLongestTimer));
    v("cnp_interval", cnp_interval,
      "at most one CNP of a flow in so long; paper 50 us, nvidia 4 us", positive,
      at_most(kLongestTimer));
    v("byte_counter", byte_counter,
      "also an increase after so much was sent; paper 10 MB, nvidia "
      "2 MiB (32767 x 64 B)",
      positive);
    v("fast_recovery", fast_recovery,
      "increases towards the target before it grows; paper 5, "
      "nvidia 1",
      between(0, 1'000'000));
    v("additive", additive, "step of the target; paper 40 Mb/s, nvidia 5 Mb/s", positive);
    v("hyper", hyper,
      "step when timer and byte counter are both beyond fast recovery; paper 200 "
      "Mb/s, nvidia 50 Mb/s",
      positive);
    v("min_rate", min_rate, "paper 100 Mb/s, nvidia 1 Mb/s", positive);
  }
};

struct HpccSpec {
  std::optional<double> utilisation;
  std::optional<std::int64_t> stages;
  std::optional<Bandwidth> additive;
  template <class V>
  void visit(V&& v) {
    v("utilisation", utilisation, "aimed at, eta; default 0.95", between(0.1, 1));
    v("stages", stages, "additive steps before the window is set by utilisation; default 5",
      between(0, 1000));
    v("additive", additive, "added per update; default 50 Mb/s per 100 Gb/s of line rate",
      positive);
  }
};

struct TimelySpec {
  std::optional<Time> low, high, min_rtt;
  std::optional<double> gain, decrease;
  std::optional<Bandwidth> additive;
  std::optional<Bytes> segment;
  std::optional<std::int64_t> hyper_after;
  template <class V>
  void visit(V&& v) {
    v("low", low, "below it the rate only grows; default 50 us", positive, at_most(kLongestTimer));
    v("high", high, "above it the rate falls whatever the gradient; default 500 us", positive,
      at_most(kLongestTimer));
    v("min_rtt", min_rtt, "the gradient's unit; default 20 us", positive, at_most(kLongestTimer));
    v("gain", gain, "weight of a fresh difference; default 0.875", between(0, 1));
    v("decrease", decrease, "beta; default 0.8", between(0, 1));
    v("additive", additive, "delta; default 10 Mb/s per 10 Gb/s of line rate", positive);
    v("segment", segment, "acknowledged bytes per decision; default 16 KB", positive);
    v("hyper_after", hyper_after,
      "falling gradients before the step is five times as large; "
      "default 5",
      between(1, 1000));
  }
};

struct SwiftSpec {
  std::optional<Time> target, scaling_range;
  std::optional<double> additive, decrease, max_decrease, scaling_min, scaling_max;
  template <class V>
  void visit(V&& v) {
    v("target", target, "delay of a flow with a large window; default 1.5 idle round trips",
      positive, at_most(kLongestTimer));
    v("scaling_range", scaling_range, "most that small windows add to it; default 4 targets",
      at_most(kLongestTimer));
    v("scaling_min", scaling_min, "window in packets at which all of it is added; default 0.1",
      between(0.001, 1000));
    v("scaling_max", scaling_max, "and none; default 100", between(0.001, 1e6));
    v("additive", additive, "packets added per round trip; default 1", between(0.001, 1000));
    v("decrease", decrease, "beta; default 0.8", between(0, 1));
    v("max_decrease", max_decrease, "largest share that one round trip takes; default 0.5",
      between(0, 1));
  }
};

struct DctcpSpec {
  std::optional<double> g;
  std::optional<std::int64_t> initial_window;
  template <class V>
  void visit(V&& v) {
    v("g", g, "weight of a fresh window in alpha; default 1/16", between(0, 1));
    v("initial_window", initial_window, "packets; default 10", between(1, 1'000'000));
  }
};

struct CubicSpec {
  std::optional<double> scale, decrease;
  std::optional<std::int64_t> initial_window;
  template <class V>
  void visit(V&& v) {
    v("scale", scale, "C, packets per cubic second; default 0.4", between(0.001, 1e6));
    v("decrease", decrease, "what a loss leaves of the window; default 0.7", between(0, 1));
    v("initial_window", initial_window, "packets; default 10", between(1, 1'000'000));
  }
};

struct ReceiverSpec {
  std::optional<std::int64_t> initial_window;
  template <class V>
  void visit(V&& v) {
    v("initial_window", initial_window, "packets; default one idle round trip at line rate",
      between(1, 1'000'000));
  }
};

inline constexpr std::int64_t kFecnLimit = 127;

struct FecnSpec {
  std::optional<std::int64_t> increase, limit, least;
  std::optional<Time> timer, becn_interval;
  std::optional<double> step;
  template <class V>
  void visit(V&& v) {
    v("increase", increase, "CCTI_Increase, entries of the table per BECN; default 1",
      between(1, 65535));
    v("limit", limit, "CCTI_Limit, the last entry; default 127", between(1, 65535));
    v("least", least, "CCTI_Min, the first entry; default 0", between(0, 65535));
    v("timer", timer, "CCTI_Timer, back by one entry in so long; default 153.6 us", positive,
      at_most(kLongestTimer));
    v("step", step,
      "wait after a packet, in times that it takes on the line, per entry; default 1/8",
      between(0.001, 1000));
    v("becn_interval", becn_interval, "at most one BECN of a connection in so long; default 50 us",
      positive, at_most(kLongestTimer));
  }
};

struct CongestionSpec {
  std::optional<DcqcnSpec> dcqcn;
  std::optional<HpccSpec> hpcc;
  std::optional<TimelySpec> timely;
  std::optional<SwiftSpec> swift;
  std::optional<DctcpSpec> dctcp;
  std::optional<CubicSpec> cubic;
  std::optional<ReceiverSpec> receiver;
  std::optional<FecnSpec> fecn;
  template <class V>
  void visit(V&& v) {
    v("dcqcn", dcqcn, "parameters of DCQCN");
    v("hpcc", hpcc, "parameters of HPCC");
    v("timely", timely, "parameters of TIMELY");
    v("swift", swift, "parameters of Swift");
    v("dctcp", dctcp, "parameters of DCTCP");
    v("cubic", cubic, "parameters of TCP CUBIC");
    v("receiver", receiver, "parameters of the receiver-driven scheme");
    v("fecn", fecn, "parameters of InfiniBand's congestion control");
  }
};

}  // namespace weft
