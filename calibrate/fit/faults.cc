// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/faults.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "models/catalog.hpp"
#include "sim/core/text.hpp"
#include "sim/fabric/link_law.hpp"

namespace weft {
namespace {

// Source: assumed; judged by made-up machines, half of them with a planted fault (tests/calibrate/probed.test.cc): each fault must
// be named and none invented.
constexpr double kMost = 6;           // a residual counts as this many standard deviations at most
constexpr double kNoise = 2;          // of a row's loss
constexpr double kSd = 0.035;         // of a copy: noise, and what weft is off by
constexpr double kOdd = 0.12;         // without two copies so far off there is nothing to explain
constexpr std::size_t kRefitted = 6;  // candidates for which the shared values are fitted again
constexpr double kLeastGain = 0.25;   // of the squared residuals, and
constexpr double kLeastPoints = 60;   // their sum in squared standard deviations
// Rates of a sockets' link that are tried, one after the other: steps of about kOdd, down to a twelfth. Source: assumed.
constexpr double kSocketStep = 0.85, kSocketLeast = 0.08;
constexpr double kSpoilt = 0.2;  // most copies that it makes odd, of those that it mends

// One entry per pair of nodes, as the builder joins them.
std::vector<LinkEntry> single_links(const ServerSpec& server) {
  std::vector<LinkEntry> out;
  for (const LinkEntry& entry : server.links) {
    const auto a = expand_range(entry.a), b = expand_range(entry.b);
    if (!a || !b) continue;
    const auto add = [&](const std::string& from, const std::string& to) {
      LinkEntry one = entry;
      one.a = from;
      one.b = to;
      one.pair = Pairing::all;
      out.push_back(std::move(one));
    };
    switch (entry.pair) {
      case Pairing::each:
        for (std::size_t i = 0; i < std::min(a->size(), b->size()); ++i) add((*a)[i], (*b)[i]);
        break;
      case Pairing::block: {
        const std::size_t block = std::max<std::size_t>(1, a->size() / b->size());
        for (std::size_t i = 0; i < a->size(); ++i)
          add((*a)[i], (*b)[std::min(i / block, b->size() - 1)]);
        break;
      }
      case Pairing::all:
        for (std::size_t i = 0; i < a->size(); ++i)
          for (std::size_t k = *a == *b ? i + 1 : 0; k < b->size(); ++k) add((*a)[i], (*b)[k]);
    }
  }
  return out;
}

struct Candidate {
  FoundFault fault;
  std::function<void(std::vector<LinkEntry>&)> change;
};

class Finder {
 public:
  Finder(const FitMachine& machine, const FitData& data, const FitResult& fitted, bool alone)
      : machine_(machine), fitted_(fitted) {
    data_.servers = data.servers;
    std::size_t at = 0;
    for (const FitTable& table : data.tables) at += table.rows.size();
    for (std::size_t i = 0; i < data.copies.size(); ++i, ++at) {
      if (!fitted.residuals[at].fitted) continue;
      if (alone && data.copies[i].together > 0) continue;
      data_.copies.push_back(data.copies[i]);
      measured_.push_back(data.copies[i].value);
    }
  }

  std::vector<FoundFault> run() {
    std::vector<FoundFault> out;
    if (data_.copies.size() < 4) return out;
    // Shared values are pulled by a fault: candidates are ranked with them as they are, and the best judged after a fit of the
    // copies alone to each.
    const std::vector<double> now = machine_.predict(data_, fitted_.changes());
    before_ = misfit(now);
    std::size_t odd = 0;
    for (std::size_t i = 0; i < now.size(); ++i)
      odd += std::abs(std::log(now[i] / measured_[i])) > kOdd ? 1 : 0;
    if (before_ < kLeastPoints || odd < 2) return out;
    links_ = single_links(first_server());
    std::vector<std::pair<double, Candidate>> ranked;
    for (Candidate& candidate : candidates()) {
      const double after = try_out(candidate);
      ranked.emplace_back(after, std::move(candidate));
    }
    std::ranges::stable_sort(ranked, {}, &std::pair<double, Candidate>::first);
    if (ranked.size() > kRefitted) ranked.resize(kRefitted);
    const std::vector<double> without = refitted({});
    const double sound = misfit(without);
    for (const auto& [unused, candidate] : ranked) {
      FoundFault fault = candidate.fault;
      fault.tweak = tweak_of(candidate.change);
      const std::vector<double> with = refitted(fault.tweak);
      const double after = misfit(with);
      fault.explains = 1 - after / sound;
      if (fault.explains >= kLeastGain && sound - after >= kLeastPoints && mends(without, with))
        out.push_back(std::move(fault));
    }
    std::ranges::stable_sort(out, std::ranges::greater{}, &FoundFault::explains);
    return out;
  }

 private:
  ServerSpec first_server() const {
    Diagnostics quiet;
    const FabricSpec spec = read_fabric(machine_.document(), {}, quiet);
    return spec.groups.front().server;
  }

  // Cauchy's loss of the residuals in standard deviations, beyond what noise makes of it.
  double misfit(const std::vector<double>& predicted) const {
    double sum = 0;
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      const double r = std::abs(std::log(predicted[i] / measured_[i])) / kSd;
      sum += std::max(0.0, kMost * kMost * std::log1p(r * r / (kMost * kMost)) - kNoise);
    }
    return sum;
  }

  // In the first server. Fitted values are in the description that is built, so its links are read there.
  static std::function<void(FabricSpec&)> tweak_of(
      const std::function<void(std::vector<LinkEntry>&)>& change) {
    return [change](FabricSpec& spec) {
      ServerGroup rest = spec.groups.front();
      std::vector<LinkEntry> links = single_links(rest.server);
      change(links);
      spec.groups.front().server.links = std::move(links);
      if (rest.count > 1) {
        spec.groups.front().count = 1;
        --rest.count;
        spec.groups.insert(spec.groups.begin() + 1, std::move(rest));
      }
    };
  }

  double try_out(const Candidate& candidate) const {
    FitMachine changed(machine_.document());
    changed.tweak = tweak_of(candidate.change);
    try {
      return misfit(changed.predict(data_, fitted_.changes()));
    } catch (const InputError&) {
      return before_;  // such a machine could not do what was measured
    }
  }

  // Predictions after a fit to such a machine; as they are where it could not do what was measured.
  std::vector<double> refitted(const std::function<void(FabricSpec&)>& tweak) const {
    FitMachine changed(machine_.document());
    changed.tweak = tweak;
    try {
      return changed.predict(data_, fit(changed, data_, {.bootstrap = 0}).changes());
    } catch (const InputError&) {
      return machine_.predict(data_, fitted_.changes());
    }
  }

  // A part that is really faulty explains copies without making others wrong that were right.
  bool mends(const std::vector<double>& without, const std::vector<double>& with) const {
    std::size_t mended = 0, spoilt = 0;
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      const bool was = std::abs(std::log(without[i] / measured_[i])) > kOdd,
                 is = std::abs(std::log(with[i] / measured_[i])) > kOdd;
      mended += was && !is ? 1 : 0;
      spoilt += !was && is ? 1 : 0;
    }
    return static_cast<double>(spoilt) <= kSpoilt * static_cast<double>(mended);
  }

  static void slow(LinkEntry& entry, double factor) {
    Diagnostics quiet;
    const LinkLaw law = link_law(entry.link, link_classes(), quiet);
    entry.link.efficiency = std::max(0.01, law.efficiency() * factor);
  }

  static bool is(const std::string& node, std::string_view stem) { return node.starts_with(stem); }

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> out;
    std::set<std::string> switched;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const LinkEntry& link = links_[i];
      const bool nvlink = link.link.link_class == LinkClass::nvlink;
      const bool gpu = is(link.a, "gpu") || is(link.b, "gpu");
      if (nvlink && (is(link.a, "nvs") || is(link.b, "nvs"))) {
        if (gpu) switched.insert(is(link.a, "gpu") ? link.a : link.b);
        continue;
      }
      if (link.link.link_class == LinkClass::socket) add_socket(i, out);
      if (!nvlink && link.link.link_class != LinkClass::pcie) continue;
      for (const double factor : {0.5, 0.25, 0.75}) {
        const bool width = !nvlink && gpu && factor != 0.75;
        out.push_back({{.kind = width ? "half-width" : "slow-link",
                        .parts = link.a + ":" + link.b,
                        .factor = factor},
                       [i, factor](std::vector<LinkEntry>& all) { slow(all[i], factor); }});
      }
    }
    for (const std::string& name : switched) {
      for (const double factor : {0.5, 0.25, 0.75}) {
        out.push_back({{.kind = "slow-link", .parts = "the NVLinks of " + name, .factor = factor},
                       [name, factor](std::vector<LinkEntry>& all) {
                         for (LinkEntry& one : all)
                           if (one.link.link_class == LinkClass::nvlink &&
                               (one.a == name || one.b == name))
                             slow(one, factor);
                       }});
      }
    }
    add_moves(out);
    return out;
  }

  // What root complexes forward between sockets for peers may be a small part of what the sockets' link carries.
  void add_socket(std::size_t i, std::vector<Candidate>& out) const {
    for (double factor = kSocketStep; factor > kSocketLeast; factor *= kSocketStep) {
      const double rounded = std::round(factor * 100) / 100;
      out.push_back(
          {{.kind = "slow-link", .parts = links_[i].a + ":" + links_[i].b, .factor = rounded},
           [i, rounded](std::vector<LinkEntry>& all) { slow(all[i], rounded); }});
    }
  }

  // Devices of one kind on PCIe that sit elsewhere: two exchanged, or one moved.
  void add_moves(std::vector<Candidate>& out) const {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].link.link_class != LinkClass::pcie) continue;
      const std::string stem = links_[i].a.substr(0, 3);
      if (stem != "gpu" && stem != "nic") continue;
      std::set<std::string> others;
      for (std::size_t k = 0; k < links_.size(); ++k) {
        if (links_[k].link.link_class != LinkClass::pcie || !is(links_[k].a, stem)) continue;
        if (links_[k].b == links_[i].b) continue;
        if (stem == "nic") {
          if (!others.insert(links_[k].b).second) continue;
          const std::string to = links_[k].b;
          out.push_back(
              {{.kind = "wrong-affinity",
                .parts = fmt::format("{} is on {}, not on {}", links_[i].a, to, links_[i].b)},
               [i, to](std::vector<LinkEntry>& all) { all[i].b = to; }});
        } else if (k > i) {
          out.push_back({{.kind = "wrong-affinity",
                          .parts = fmt::format("{} is on {} and {} on {}", links_[i].a, links_[k].b,
                                               links_[k].a, links_[i].b)},
                         [i, k](std::vector<LinkEntry>& all) { std::swap(all[i].b, all[k].b); }});
        }
      }
    }
  }

  const FitMachine& machine_;
  const FitResult& fitted_;
  FitData data_;  // the copies that were fitted
  std::vector<double> measured_;
  std::vector<LinkEntry> links_;
  double before_ = 0;
};

}  // namespace

std::string FoundFault::what() const {
  return kind == "wrong-affinity" ? fmt::format("{}: {}", kind, parts)
                                  : fmt::format("{}: {} at {} of the rate", kind, parts, factor);
}

std::string FoundFault::text() const {
  return fmt::format("{}; it takes away {:.0f} % of the misfit of the copies", what(),
                     100 * explains);
}

std::vector<FoundFault> find_faults(const FitMachine& machine, const FitData& data,
                                    const FitResult& fitted) {
  // Copies alone first: what starts together with one over a slow part is slow, too. What shares a switch shows in groups only.
  std::vector<FoundFault> found = Finder(machine, data, fitted, true).run();
  return found.empty() ? Finder(machine, data, fitted, false).run() : found;
}

FitMachine faulty_machine(const FitMachine& machine, const FoundFault& fault) {
  FitMachine out(machine.document());
  out.tweak = fault.tweak;
  return out;
}

FitData without_victims(const FitData& data, const FoundFault& fault) {
  FitData out = data;
  const auto touches = [&](const FitCopy& copy) {
    for (const std::string& end : {copy.from, copy.to}) {
      const std::string name =
          end.substr(end.find('/') == std::string::npos ? 0 : end.find('/') + 1);
      const auto at = fault.parts.find(name);
      if (at == std::string::npos) continue;
      const std::size_t after = at + name.size();
      if (after >= fault.parts.size() ||
          std::isdigit(static_cast<unsigned char>(fault.parts[after])) == 0)
        return true;
    }
    return false;
  };
  std::set<int> groups;
  for (const FitCopy& copy : data.copies)
    if (copy.together > 0 && touches(copy)) groups.insert(copy.together);
  for (FitCopy& copy : out.copies)
    if (groups.contains(copy.together) && copy.refused.empty())
      copy.refused = "started together with one over the faulty part";
  return out;
}

FitResult fit_and_find_faults(const FitMachine& machine, const FitData& data,
                              const FitOptions& options, std::vector<FoundFault>& faults) {
  FitResult found = fit(machine, data, options);
  faults = find_faults(machine, data, found);
  if (faults.empty()) return found;
  found =
      fit(faulty_machine(machine, faults.front()), without_victims(data, faults.front()), options);
  found.notes.insert(found.notes.begin(),
                     "fault: " + faults.front().text() +
                         ". The values are those of the sound parts; the patch does not hold it");
  return found;
}

}  // namespace weft
