// SPDX-License-Identifier: Apache-2.0
// What every file of the catalogue starts with, and the costs of a library of collectives: kernels by GPU generation, proxies
// by kind of network.
#pragma once

#include <map>
#include <string>

#include "sim/core/config.hpp"

namespace weft {

// What a file may ask of one part. Far beyond any hardware, and small enough that sums along a path or over a bundle fit.
inline constexpr Bandwidth kMostRate{1'000'000'000'000'000};
inline constexpr Time kMostDelay = 10_s;
inline constexpr Bytes kMostPacket = 1_GiB;

// What every file starts with.
struct SchemaVersion {
  int schema = 1;
  template <class V>
  void visit(V&& v) {
    v("schema", schema, "version of the file format", between(1, 1));
  }
};

struct ComponentHead {
  SchemaVersion weft;
  std::string kind, name, summary;
  std::map<std::string, std::string> sources;
  template <class V>
  void visit_head(V&& v) {
    v("weft", weft, "the file format");
    v("kind", kind, "gpu, kernels, nic, proxy, switch, link, server, fabric or llm");
    v("name", name, "the file's stem");
    v("summary", summary, "one line for people");
    v("sources", sources, "JSON pointer prefix -> measured: ..., datasheet: ... or assumed: ...");
  }
};

// What a GPU's communication kernels cost, as a library of collectives runs them: fitted per GPU generation.
// LL:      8-byte words, 4 data and 4 flag, stored and polled: half of the wire, the lowest latency.
// LL128:   128-byte lines, 120 data and 8 flag.
// Simple:  bulk copies with a fence and a flag per slice.
struct KernelsSpec : ComponentHead {
  Time ll_step = 600_ns, ll128_step = 1900_ns, simple_step = 3400_ns;
  double efficiency = 0.9, ll128_share = 0.92;
  Bandwidth channel_rate{0};
  Time nvls_round{0};
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("ll_step", ll_step, "one hop of LL inside a server, without the wire", at_most(kMostDelay));
    v("ll128_step", ll128_step, "the same for LL128", at_most(kMostDelay));
    v("simple_step", simple_step, "the same for Simple: fence, flag and poll of a step",
      at_most(kMostDelay));
    v("efficiency", efficiency, "share of a scale-up link's payload that kernels reach",
      between(0.01, 1));
    v("ll128_share", ll128_share, "share of that which LL128 moves, flags included",
      between(0.01, 1));
    v("channel_rate", channel_rate, "most that one channel (thread block) moves; 0: no limit",
      at_most(kMostRate));
    v("nvls_round", nvls_round,
      "what every round of chunks through a reducing switch costs beside its bytes",
      at_most(kMostDelay));
  }
};

// What a hop through a NIC costs a library of collectives: the proxy thread that posts it, the adapter, the completion.
struct ProxySpec : ComponentHead {
  Time ll_step = 5_us, bulk_step = 14_us;
  double efficiency = 0.95;
  Time chunk_time{0};
  template <class V>
  void visit(V&& v) {
    visit_head(v);
    v("ll_step", ll_step, "one hop of LL between servers, without the wire", at_most(kMostDelay));
    v("bulk_step", bulk_step, "the same for LL128 and Simple", at_most(kMostDelay));
    v("efficiency", efficiency, "share of the port's payload that connections reach",
      between(0.01, 1));
    v("chunk_time", chunk_time,
      "what each 128 KiB of a connection costs one after the other; 0: chunks overlap",
      at_most(kMostDelay));
  }
};

}  // namespace weft
