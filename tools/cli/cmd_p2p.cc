// SPDX-License-Identifier: Apache-2.0
// weft p2p: bandwidth and latency of every pair of GPUs, one pair at a time.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "models/catalog.hpp"
#include "sim/core/check.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/run/p2p.hpp"
#include "tools/cli/cli.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostPairs = 20'000;
constexpr std::size_t kMatrixByDefault = 16;  // GPUs

struct Pair : CopyAnswer {
  NodeId src, dst;
};

class P2p final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("fabric", fabric_, "a fabric or server")->required();
    app.add_option("-s,--size", size_, "of a copy, default 256 MiB");
    app.add_flag("--bidirectional", bidirectional_, "copies both ways at once; the sum is shown");
    app.add_option("--via", via_,
                   "direct, relay (through a GPU) or host (through host memory); default: what the "
                   "runtime does");
    app.add_option("--peer-access", peer_access_, "on or off")->check(CLI::IsMember({"on", "off"}));
    add_set_option(app, sets_);
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    Diagnostics diagnostics;
    const std::optional<Bytes> size = parse_bytes(size_);
    if (!size || size->count <= 0)
      diagnostics.error({}, "--size", fmt::format("\"{}\" is not a size", size_),
                        "e.g. \"64 MiB\"");
    CopyQuestion question;
    question.bidirectional = bidirectional_;
    TransferOptions& options = question.transfer;
    options.copy_call = true;
    options.peer_access = peer_access_ == "on";
    if (!via_.empty()) {
      Via via{};
      read_config(Json(via_), "--via", via, diagnostics);
      options.via = via;
    }
    diagnostics.throw_if_errors();
    const LoadedFabric loaded = load_fabric(fabric_, sets_, diagnostics);
    const Fabric& fabric = loaded.fabric;
    options.routing = fabric.routing();
    question.size = *size;
    const std::size_t n = fabric.gpus().size();
    if (n * n > kMostPairs) {
      throw LimitReached(fmt::format(
          "{} GPUs have {} pairs, more than the {} that this command shows", n, n * n, kMostPairs));
    }
    Routes routes(fabric);
    std::vector<Pair> pairs;
    for (const NodeId src : fabric.gpus()) {
      for (const NodeId dst : fabric.gpus()) {
        if (src == dst) continue;
        auto answer =
            time_copy(routes, src, dst, question, [](std::span<const Bandwidth> capacities) {
              return make_network(Fidelity::fluid, capacities, {});
            });
        if (answer) pairs.push_back({std::move(*answer), src, dst});
      }
    }
    io.out = json_ ? to_text(to_json(fabric, pairs)) + "\n" : text(fabric, pairs, *size);
    return kOk;
  }

 private:
  Json to_json(const Fabric& fabric, const std::vector<Pair>& pairs) const {
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("fabric", fabric.spec().name);
    Json& list = out.set("pairs", Json::array());
    for (const Pair& pair : pairs) {
      Json p = Json::object();
      p.set("src", fabric.name(pair.src));
      p.set("dst", fabric.name(pair.dst));
      p.set("via", write_config(pair.via));
      p.set("path", pair.path);
      p.set("bandwidth_gbs", pair.bandwidth_gbs);
      p.set("latency_us", pair.latency.us());
      list.push(std::move(p));
    }
    return out;
  }

  std::string text(const Fabric& fabric, const std::vector<Pair>& pairs, Bytes size) const {
    std::string out =
        fmt::format("{}: copies of {}, {}\n\n", fabric.spec().name, weft::to_text(size),
                    bidirectional_ ? "both ways at once (sum)" : "one way, one pair at a time");
    if (pairs.empty()) return out + "no pair of GPUs can copy this way\n";
    if (fabric.gpus().size() > kMatrixByDefault) {
      Table table({"from", "to", "via", "GB/s", "us"});
      for (const Pair& pair : pairs) {
        table.row({fabric.name(pair.src), fabric.name(pair.dst), write_config(pair.via).text,
                   fmt::format("{:.2f}", pair.bandwidth_gbs),
                   fmt::format("{:.2f}", pair.latency.us())});
      }
      return out + table.text();
    }
    const auto matrix = [&](const char* title, auto&& cell) {
      std::vector<std::string> header{title};
      for (const NodeId dst : fabric.gpus()) header.push_back(fabric.name(dst));
      Table table(header);
      for (const NodeId src : fabric.gpus()) {
        std::vector<std::string> row{fabric.name(src)};
        for (const NodeId dst : fabric.gpus()) {
          const auto found = std::ranges::find_if(
              pairs, [&](const Pair& p) { return p.src == src && p.dst == dst; });
          row.push_back(found == pairs.end() ? (src == dst ? "" : "no way") : cell(*found));
        }
        table.row(std::move(row));
      }
      out += table.text() + "\n";
    };
    matrix("GB/s", [](const Pair& p) { return fmt::format("{:.2f}", p.bandwidth_gbs); });
    matrix("us", [](const Pair& p) { return fmt::format("{:.2f}", p.latency.us()); });
    matrix("via", [](const Pair& p) { return write_config(p.via).text; });
    return out;
  }

  std::string fabric_, size_ = "256 MiB", via_, peer_access_ = "on";
  Settings sets_;
  bool bidirectional_ = false, json_ = false;
};

}  // namespace

extern const Verb kP2p;
const Verb kP2p{"p2p", "bandwidth and latency of every pair of GPUs", make_command<P2p>};

}  // namespace weft
