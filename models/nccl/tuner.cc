// SPDX-License-Identifier: Apache-2.0
#include "models/nccl/tuner.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace weft {
namespace {

using enum CollectiveKind;
using Use = NcclFilter::Use;

constexpr double kTree2Ll128 = 120.0 / 128;  // several nodes
constexpr double kTree1Ll128 = 7.0 / 9;      // one node
constexpr double kNvlsEfficiency[] = {0, 0, 0.85,
                                      0.74};  // Volta, Ampere, Hopper, Blackwell; 2.28 on
constexpr double kA100Most = 235;             // GB/s, releases 2.8 to 2.13

std::size_t index(NcclAlgorithm algorithm) { return static_cast<std::size_t>(algorithm); }
std::size_t index(NcclProtocol protocol) { return static_cast<std::size_t>(protocol); }
std::size_t index(CollectiveKind kind) { return static_cast<std::size_t>(kind); }

double floor_log2(std::size_t n) { return n < 2 ? 0 : static_cast<double>(std::bit_width(n) - 1); }

// One collective over one communicator, seen by one release.
class Costs {
 public:
  Costs(const NcclTopology& topology, const NcclRelease& release, CollectiveKind kind, Bytes bytes)
      : t_(topology), r_(release), kind_(kind), bytes_(static_cast<double>(bytes.count)) {
    arch_ = nccl_arch_row(t_.min_compute_capability);
    nodes_ = static_cast<double>(t_.nodes);
    ranks_ = static_cast<double>(t_.ranks);
    per_node_ = ranks_ / nodes_;
    scale_ = nccl_scale_column(t_.nodes);
    steps_ = kind == all_reduce                             ? 2 * (ranks_ - 1)
             : kind == all_gather || kind == reduce_scatter ? ranks_ - 1
                                                            : ranks_;
  }

  // us; nullopt when the combination does not exist here.
  std::optional<double> operator()(NcclAlgorithm a, NcclProtocol p) const {
    const NcclGraph* graph = graph_of(a);
    if (graph == nullptr || graph->channels.empty() || !offered(a, p)) return std::nullopt;
    double bandwidth = bus(a, p, *graph) * ratio(a);
    if (!(bandwidth > 0)) return std::nullopt;
    double latency = latency_of(a, p, *graph);
    const double units = bytes_ / 64;
    if (a == NcclAlgorithm::tree && kind_ == all_reduce && units >= 1) {
      const auto power = static_cast<std::size_t>(std::log2(units));
      const auto& correction = r_.tree_correction[index(p)];
      if (power < correction.size()) bandwidth *= correction[power];
    }
    const double total_channels = static_cast<double>(t_.connections.rings.size());
    if (a == NcclAlgorithm::ring && p == NcclProtocol::simple && t_.nodes > 1 &&
        kind_ == all_reduce && bytes_ >= 64 * total_channels * ranks_)
      latency *= t_.min_compute_capability < 80 ? 1.9 : 1.4;
    return latency + bytes_ / (1000 * bandwidth);
  }

 private:
  bool since(int minor) const { return r_.version >= NcclVersion{2, minor, 0}; }

  const NcclGraph* graph_of(NcclAlgorithm a) const {
    NcclPattern pattern = NcclPattern::ring;
    switch (a) {
      case NcclAlgorithm::tree:
        pattern = NcclPattern::tree;
        break;
      case NcclAlgorithm::ring:
      case NcclAlgorithm::pat:
        break;
      case NcclAlgorithm::collnet_direct:
        pattern = NcclPattern::collnet_direct;
        break;
      case NcclAlgorithm::collnet_chain:
        pattern = NcclPattern::collnet_chain;
        break;
      case NcclAlgorithm::nvls:
      case NcclAlgorithm::nvls_tree:
        pattern = NcclPattern::nvls;
        break;
    }
    const auto found = t_.graphs.find(pattern);
    return found == t_.graphs.end() ? nullptr : &found->second;
  }

  bool offered(NcclAlgorithm a, NcclProtocol p) const {
    const bool scattered = kind_ == all_gather || kind_ == reduce_scatter;
    if ((kind_ == broadcast || kind_ == reduce) && a != NcclAlgorithm::ring) return false;
    switch (a) {
      case NcclAlgorithm::ring:
        return true;
      case NcclAlgorithm::tree:
        return kind_ == all_reduce;
      case NcclAlgorithm::collnet_chain:
        return t_.collnet && kind_ == all_reduce && p == NcclProtocol::simple;
      case NcclAlgorithm::collnet_direct:
        return t_.collnet && t_.nvswitch && p == NcclProtocol::simple &&
               (kind_ == all_reduce || (scattered && since(21)));
      case NcclAlgorithm::nvls:
        // All-gather and reduce-scatter through the switch came with 2.21; over nodes it needs CollNet.
        return since(17) && t_.nvls && p == NcclProtocol::simple && (t_.nodes == 1 || t_.collnet) &&
               (kind_ == all_reduce || (scattered && since(21) && per_node_ <= 32));
      case NcclAlgorithm::nvls_tree:
        return since(18) && t_.nvls && t_.nodes > 1 && kind_ == all_reduce &&
               p == NcclProtocol::simple;
      case NcclAlgorithm::pat:
        return since(23) && scattered && p == NcclProtocol::simple && t_.nodes == t_.ranks &&
               t_.nodes > 1;
    }
    return false;
  }

  // GB/s on the bus, before it becomes bandwidth of the operation.
  double bus(NcclAlgorithm a, NcclProtocol p, const NcclGraph& g) const {
    const auto channels = static_cast<double>(g.channels.size());
    const bool collnet = a == NcclAlgorithm::collnet_direct || a == NcclAlgorithm::collnet_chain;
    double bw = t_.nodes <= 2 || collnet ? g.bw_intra : g.bw_inter;
    if (a == NcclAlgorithm::nvls || a == NcclAlgorithm::nvls_tree) bw = switch_rate(a, g);
    double bus = channels * bw;
    if (since(8) && !since(14) && arch_ == 1) bus = std::min(bus, kA100Most);
    const bool ll = p == NcclProtocol::ll, ll128 = p == NcclProtocol::ll128;
    const std::size_t cpu = t_.nodes == 1 ? arch_ : t_.amd_cpu ? 1 : 0;
    const double ll_max = r_.ll_max[cpu][scale_];
    if (a == NcclAlgorithm::ring && ll) {
      const bool reduces = kind_ == all_reduce || kind_ == reduce;
      const double share = since(21) ? 0.5 : t_.nodes > 1 || reduces ? 0.25 : 1.0 / 3;
      bus = std::min(bus * share, ll_max);
    }
    if (a == NcclAlgorithm::ring && ll128) {
      const double share = since(22) || per_node_ >= 2 ? 0.92 : 0.7;
      bus = std::min(bus * share, channels * r_.ring_ll128_max[arch_][scale_]);
    }
    if (a == NcclAlgorithm::tree) {
      bus = std::min(bus * 0.92, channels * r_.tree_max[arch_][scale_]);
      if (ll) bus = std::min(bus / 3.8, ll_max);
      if (ll128) {
        bus = std::min(bus * (t_.nodes == 1 ? kTree1Ll128 : kTree2Ll128),
                       channels * r_.tree_ll128_max[arch_][scale_]);
      }
    }
    if (a == NcclAlgorithm::pat) bus *= 0.75;
    if (a == NcclAlgorithm::collnet_direct) bus = collnet_direct(bus, channels, g);
    return bus;
  }

  double switch_rate(NcclAlgorithm a, const NcclGraph& g) const {
    const auto channels = static_cast<double>(g.channels.size());
    const bool tree = a == NcclAlgorithm::nvls_tree;
    if (since(28)) {
      if (channels < 2) return 0;
      double intra = g.bw_intra * kNvlsEfficiency[arch_] * (channels - 1) / channels;
      intra *= kind_ == all_reduce ? 2 : (per_node_ - 1) / per_node_;
      if (t_.nodes == 1) return intra;
      const double inter = g.bw_inter * (t_.nodes <= 2 && tree ? 2 : 1);
      const double most = r_.nvls_tree_max[arch_][scale_];
      return std::min({intra, inter, tree && most > 0 ? most : std::numeric_limits<double>::max()});
    }
    const double inter = t_.nodes == 1 ? g.bw_intra : g.bw_inter;
    if (tree) return std::min(g.bw_intra, t_.nodes <= 2 ? inter : inter / 2);
    if (kind_ == all_reduce || !since(23)) return std::min(g.bw_intra, inter);
    return std::min(g.bw_intra * (per_node_ - 1) / per_node_, inter * (t_.nodes == 1 ? 1 : 0.9));
  }

  double collnet_direct(double bus, double channels, const NcclGraph& g) const {
    if (kind_ != all_reduce) return per_node_ * std::min(g.bw_intra, g.bw_inter * 0.9);
    double factor = per_node_ / channels;  // GPUs per NIC
    factor -= (factor - 1) / 2;
    return bus / factor * (arch_ >= 2 ? 0.85 : 1);
  }

  // From bus bandwidth to that of the operation.
  double ratio(NcclAlgorithm a) const {
    const bool in_switch = a == NcclAlgorithm::nvls || a == NcclAlgorithm::nvls_tree;
    const bool scattered = kind_ == all_gather || kind_ == reduce_scatter;
    if (a == NcclAlgorithm::ring) return ranks_ / steps_;
    if (scattered && (since(23) || a == NcclAlgorithm::collnet_direct)) return 1;
    if (in_switch && since(28)) return ranks_ / steps_;
    if (a == NcclAlgorithm::nvls_tree && !since(20)) return 0.7 * nodes_ / (2 * (nodes_ - 1));
    return in_switch ? 5.0 / 6 : 0.5;
  }

  double latency_of(NcclAlgorithm a, NcclProtocol p, const NcclGraph& g) const {
    const std::size_t i = index(a), j = index(p);
    const std::size_t inside = g.type_intra <= NcclPath::nvl ? 0 : 1;
    double base = r_.base[i][j];
    double intra = r_.hop[inside][i][j];
    if (t_.nodes > 1 && p == NcclProtocol::ll && !since(14)) intra *= 1.8;
    const bool exposed = per_node_ == 1 && since(22);
    double inter = r_.hop[2][exposed ? index(NcclAlgorithm::tree) : i][j] + g.latency_inter;
    if (p == NcclProtocol::simple) inter += g.latency_inter;
    const double levels = floor_log2(t_.nodes);
    switch (a) {
      case NcclAlgorithm::ring: {
        if (kind_ == broadcast || kind_ == reduce) {
          const std::size_t hop = t_.nodes == 1 ? inside : 2;
          if (g.same_channels) return base + r_.hop[hop][i][j];
          const std::size_t like =
              p == NcclProtocol::simple ? index(NcclAlgorithm::tree) : index(NcclAlgorithm::ring);
          return base + steps_ * r_.hop[hop][like][j];
        }
        double post = 0;
        if (t_.nodes > 1 && since(14))
          post = (t_.amd_cpu ? 2 : 1) * (p == NcclProtocol::simple ? 3 : 1);
        double across = t_.nodes == 1 ? 0 : kind_ == all_reduce ? 2 * (nodes_ - 1) : nodes_ - 1;
        if (since(10) && !since(23) && t_.nodes > 1 && kind_ == all_reduce) across = 2 * nodes_;
        return base + (steps_ - across) * std::max(intra, post) + across * inter;
      }
      case NcclAlgorithm::tree:
        return base + 2 * ((per_node_ - 1) * intra + levels * inter);
      case NcclAlgorithm::collnet_direct:
        return base + 2 * (std::min(1.0, per_node_ - 1) * intra + (per_node_ - 1) * 0.4) + inter;
      case NcclAlgorithm::collnet_chain:
        return base + 2 * (per_node_ - 1) * intra + inter;
      case NcclAlgorithm::nvls:
        return (since(19) ? intra : base) + (t_.nodes > 1 ? inter : 0);
      case NcclAlgorithm::nvls_tree:
        if (!since(19)) return base + 2 * (nodes_ - 1) * r_.hop[2][i][j];
        return base + intra + 2 * levels * inter;
      case NcclAlgorithm::pat:
        return 8 + levels * inter / 3.5 + ranks_ * 2.8;
    }
    return base;
  }

  const NcclTopology& t_;
  const NcclRelease& r_;
  CollectiveKind kind_;
  double bytes_;
  std::size_t arch_ = 0, scale_ = 0;
  double nodes_ = 1, ranks_ = 1, per_node_ = 1, steps_ = 1;
};

// LL128 needs NVLink inside (its lines must arrive whole), near NICs outside, and alike GPUs.
bool ll128_is_safe(const NcclTopology& topology, const NcclGraph& graph) {
  const NcclPath most = topology.min_compute_capability >= 90 ? NcclPath::pxn : NcclPath::pxb;
  return topology.min_compute_capability >= 70 &&
         topology.min_compute_capability == topology.max_compute_capability &&
         graph.type_intra <= NcclPath::nvb && (topology.nodes == 1 || graph.type_inter <= most);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// NCCL writes "CollnetDirect", "NVLSTree", "LL128": compared without case and underscores.
template <class Enum>
std::optional<std::size_t> find_word(std::string_view word) {
  const auto names = enum_names(Enum{});
  std::string wanted = lower(word);
  std::erase(wanted, '_');
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string name(names[i].name);
    std::erase(name, '_');
    if (name == wanted) return i;
  }
  return std::nullopt;
}

std::optional<CollectiveKind> find_function(std::string_view word) {
  const std::string wanted = lower(word);
  if (wanted == "allreduce") return all_reduce;
  if (wanted == "allgather") return all_gather;
  if (wanted == "reducescatter") return reduce_scatter;
  if (wanted == "broadcast") return broadcast;
  if (wanted == "reduce") return reduce;
  return std::nullopt;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out{""};
  for (const char c : text) {
    if (c == separator)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

template <class Enum, std::size_t N>
void narrow(std::string_view variable, std::string_view text,
            std::array<std::array<Use, N>, 9>& table, Diagnostics& out) {
  const auto wrong = [&](std::string fact, std::string cure) {
    out.error({}, {}, fmt::format("{}={}: {}", variable, text, fact), std::move(cure));
  };
  bool first = true;
  for (const std::string& entry : split(text, ';')) {
    if (entry.empty()) continue;
    const std::size_t colon = entry.find(':');
    std::optional<CollectiveKind> only;
    if (colon != std::string::npos) {
      only = find_function(std::string_view(entry).substr(0, colon));
      if (!only)
        return wrong(fmt::format("\"{}\" is not a collective", entry.substr(0, colon)),
                     "allreduce, allgather, reducescatter, broadcast or reduce");
    } else if (!first) {
      return wrong("only the first entry may stand without a collective",
                   "write e.g. \"ring;allreduce:tree\"");
    }
    first = false;
    std::string_view words = colon == std::string::npos ? std::string_view(entry)
                                                        : std::string_view(entry).substr(colon + 1);
    const bool excludes = words.starts_with('^');
    if (excludes) words.remove_prefix(1);
    std::array<Use, N> row;
    row.fill(excludes ? Use::on : Use::off);
    for (const std::string& word : split(words, ',')) {
      const auto found = find_word<Enum>(word);
      if (!found) {
        std::vector<std::string> names;
        for (const auto& name : enum_names(Enum{})) names.emplace_back(name.name);
        return wrong(fmt::format("\"{}\" is not known{}", word, did_you_mean(word, names)),
                     "one of " + join(names, ", "));
      }
      row[*found] = excludes ? Use::off : Use::on;
    }
    for (std::size_t k = 0; k < table.size(); ++k)
      if (!only || k == index(*only)) table[k] = row;
  }
}

}  // namespace

NcclFilter nccl_filter(const NcclEnvironment& environment, Diagnostics& out) {
  NcclFilter filter;
  for (auto& row : filter.algorithms) row.fill(Use::on);
  for (auto& row : filter.protocols) row = {Use::on, Use::where_safe, Use::on};
  if (const std::string* text = environment.find("NCCL_ALGO"))
    narrow<NcclAlgorithm>("NCCL_ALGO", *text, filter.algorithms, out);
  if (const std::string* text = environment.find("NCCL_PROTO"))
    narrow<NcclProtocol>("NCCL_PROTO", *text, filter.protocols, out);
  return filter;
}

std::vector<NcclChoice> nccl_choices(const NcclTopology& topology, const NcclRelease& release,
                                     const NcclFilter& filter, CollectiveKind kind, Bytes bytes) {
  std::vector<NcclChoice> out;
  if (topology.ranks < 2) return out;
  const Costs costs(topology, release, kind, bytes);
  for (std::size_t a = 0; a < kNcclAlgorithms; ++a) {
    if (filter.algorithms[index(kind)][a] == Use::off) continue;
    const auto algorithm = static_cast<NcclAlgorithm>(a);
    for (std::size_t p = 0; p < kNcclProtocols; ++p) {
      const auto protocol = static_cast<NcclProtocol>(p);
      const Use use = filter.protocols[index(kind)][p];
      if (use == Use::off) continue;
      if (use == Use::where_safe) {
        const NcclPattern pattern =
            algorithm == NcclAlgorithm::tree ? NcclPattern::tree : NcclPattern::ring;
        const auto graph = topology.graphs.find(pattern);
        if (graph == topology.graphs.end() || !ll128_is_safe(topology, graph->second)) continue;
      }
      if (const auto time = costs(algorithm, protocol)) out.push_back({algorithm, protocol, *time});
    }
  }
  std::ranges::stable_sort(out, {}, &NcclChoice::believed_us);
  return out;
}

}  // namespace weft
