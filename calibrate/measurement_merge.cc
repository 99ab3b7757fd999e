// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measurement_merge.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

template <class T>
std::string text_of(const T& value) {
  return to_text(write_config(value), 0);
}

std::string header_of(MeasuredRun run) {
  run.samples.clear();
  return text_of(run);
}

// What a sample is a number of.
std::string size_of(const CollectiveSample& sample) {
  return fmt::format("{} {} {} {} {}", sample.bytes.count, static_cast<int>(sample.buffers),
                     sample.type, sample.operation, sample.root.value_or(-1));
}

template <class T>
void fill(T& into, const T& more) {
  if (into == T{}) into = more;
}

void fill_host(MeasuredHost& into, const MeasuredHost& more) {
  fill(into.host, more.host);
  fill(into.processor, more.processor);
  fill(into.system, more.system);
  fill(into.driver, more.driver);
  fill(into.cuda, more.cuda);
  fill(into.nccl, more.nccl);
  fill(into.topology, more.topology);
  fill(into.sockets, more.sockets);
  fill(into.memory, more.memory);
  if (into.gpus.empty()) into.gpus = more.gpus;
  if (into.nics.empty()) into.nics = more.nics;
  into.paths.insert(more.paths.begin(), more.paths.end());
}

bool says(const std::string& all, const std::string& part) {
  return all.find(part) != std::string::npos;
}

}  // namespace

template <class T>
void MeasurementUnion::add_new(std::vector<T>& into, const std::vector<T>& more,
                               std::string_view list) {
  for (const T& item : more) {
    if (is_new(fmt::format("{} {}", list, text_of(item)))) into.push_back(item);
  }
}

void MeasurementUnion::add_copies(const std::vector<CopySample>& more) {
  std::map<int, std::vector<CopySample>> groups;
  for (const CopySample& copy : more) {
    if (copy.together == 0) continue;
    groups[copy.together].push_back(copy);
    groups[copy.together].back().together = 0;
  }
  for (const CopySample& copy : more) {
    if (copy.together == 0) {
      if (is_new("copy " + text_of(copy))) all_.copies.push_back(copy);
      continue;
    }
    // A group stands where its first transfer stands.
    std::vector<CopySample> group = std::exchange(groups[copy.together], {});
    std::string key = "group";
    for (const CopySample& one : group) key += " " + text_of(one);
    if (group.empty() || !is_new(std::move(key))) continue;
    ++groups_;
    for (CopySample& one : group) {
      one.together = groups_;
      all_.copies.push_back(std::move(one));
    }
  }
}

void MeasurementUnion::add_runs(const std::vector<MeasuredRun>& more) {
  for (const MeasuredRun& run : more) {
    const std::string header = header_of(run);
    std::vector<std::size_t>& same = runs_[header];
    for (const CollectiveSample& sample : run.samples) {
      if (!is_new(fmt::format("run {} {}", header, text_of(sample)))) continue;
      const std::string size = size_of(sample);
      auto place = std::ranges::find_if(
          same, [&](std::size_t index) { return !sizes_[index].contains(size); });
      if (place == same.end()) {
        all_.runs.push_back(run);
        all_.runs.back().samples.clear();
        sizes_.emplace_back();
        same.push_back(all_.runs.size() - 1);
        place = same.end() - 1;
      }
      sizes_[*place].insert(size);
      all_.runs[*place].samples.push_back(sample);
    }
  }
}

void MeasurementUnion::add_tests(const std::vector<ProbeTest>& more) {
  for (const ProbeTest& test : more) {
    const auto [place, fresh] = tests_.try_emplace(test.test, all_.tests.size());
    if (fresh) {
      all_.tests.push_back(test);
    } else if (ProbeTest& known = all_.tests[place->second]; known.state != TestState::done) {
      known = test.state == TestState::not_run ? known : test;
    }
  }
}

void MeasurementUnion::add_hosts(const std::vector<MeasuredHost>& more) {
  for (const MeasuredHost& host : more) {
    const auto known = std::ranges::find(all_.hosts, host.server, &MeasuredHost::server);
    if (known == all_.hosts.end()) {
      all_.hosts.push_back(host);
    } else {
      fill_host(*known, host);
    }
  }
  std::ranges::sort(all_.hosts, {}, &MeasuredHost::server);
}

void MeasurementUnion::add_head(const Measurement& more) {
  if (!begun_) {
    begun_ = true;
    static_cast<ComponentHead&>(all_) = more;
    all_.tool = more.tool;
    all_.version = more.version;
    all_.setup = more.setup;
    all_.date = more.date;
    all_.anonymised = more.anonymised;
    all_.forced = more.forced;
    return;
  }
  if (!says(all_.tool, more.tool)) {
    all_.tool += ", " + more.tool;
    all_.version.clear();  // of one tool only
  }
  for (const auto& [pointer, source] : more.sources) {
    std::string& known = all_.sources[pointer];
    const std::string bare = source.starts_with("measured: ") ? source.substr(10) : source;
    if (known.empty()) {
      known = source;
    } else if (!says(known, bare)) {
      known += "; " + bare;
    }
  }
  for (const auto& [key, value] : more.setup) {
    const auto [place, fresh] = all_.setup.try_emplace(key, value);
    if (!fresh && place->second != value) {
      all_.setup.insert_or_assign(fmt::format("{} of {}", key, more.name), value);
    }
  }
  if (!more.date.empty() && (all_.date.empty() || more.date < all_.date)) all_.date = more.date;
  all_.forced = all_.forced || more.forced;
  const bool names_hosts = !more.hosts.empty() || !more.devices.empty();
  if (names_hosts && !more.anonymised) all_.anonymised.reset();
}

void MeasurementUnion::add(const Measurement& more) {
  add_head(more);
  add_hosts(more.hosts);
  add_new(all_.devices, more.devices, "device");
  add_runs(more.runs);
  add_new(all_.matrices, more.matrices, "matrix");
  add_new(all_.messages, more.messages, "message");
  add_new(all_.experts, more.experts, "expert");
  add_copies(more.copies);
  add_new(all_.latencies, more.latencies, "latency");
  add_new(all_.kernels, more.kernels, "kernel");
  add_new(all_.overlaps, more.overlaps, "overlap");
  add_tests(more.tests);
  for (const std::string& problem : more.problems) {
    if (is_new("problem " + problem)) all_.problems.push_back(problem);
  }
}

namespace {

// Empty when the two may be one machine.
std::string other_machine(const MeasuredHost& a, const MeasuredHost& b) {
  if (a.gpus.empty() || b.gpus.empty()) return {};
  if (a.gpus.size() != b.gpus.size()) {
    return fmt::format("server {} has {} GPUs here and {} there", a.server, a.gpus.size(),
                       b.gpus.size());
  }
  for (std::size_t i = 0; i < a.gpus.size(); ++i) {
    const MeasuredGpu &x = a.gpus[i], &y = b.gpus[i];
    const auto differ = [](const std::string& s, const std::string& t) {
      return !s.empty() && !t.empty() && s != t;
    };
    if (differ(x.product, y.product)) {
      return fmt::format("gpu{} of server {} is {} here and {} there", i, a.server, x.product,
                         y.product);
    }
    if (differ(x.uuid, y.uuid) || differ(x.bus, y.bus)) {
      return fmt::format("gpu{} of server {} is another one of its kind", i, a.server);
    }
  }
  return {};
}

// The same of the GPUs that a tool lists: what sits at one address, or has one number on one host.
std::string other_devices(const Measurement& a, const Measurement& b) {
  std::map<std::string, const MeasuredDevice*> known;
  const auto places = [](const MeasuredDevice& d) {
    std::vector<std::string> out;
    if (!d.bus.empty()) out.push_back(d.host + " " + d.bus);
    if (d.device >= 0) out.push_back(fmt::format("{} {}", d.host, d.device));
    return out;
  };
  for (const MeasuredDevice& device : a.devices)
    for (const std::string& place : places(device)) known.emplace(place, &device);
  for (const MeasuredDevice& device : b.devices) {
    for (const std::string& place : places(device)) {
      const auto found = known.find(place);
      if (found == known.end() || found->second->product.empty() || device.product.empty() ||
          found->second->product == device.product)
        continue;
      return fmt::format("the GPU of rank {} is {} here and {} there", device.rank,
                         found->second->product, device.product);
    }
  }
  return {};
}

std::set<std::string> products_of(const Measurement& m) {
  std::set<std::string> out;
  for (const MeasuredHost& host : m.hosts)
    for (const MeasuredGpu& gpu : host.gpus) out.insert(gpu.product);
  for (const MeasuredDevice& device : m.devices) out.insert(device.product);
  out.erase("");
  return out;
}

// Tools spell a product as the driver does; one machine has no GPU of a kind that another run of it does not know.
std::string other_products(const Measurement& a, const Measurement& b) {
  const std::set<std::string> x = products_of(a), y = products_of(b);
  if (x.empty() || y.empty()) return {};
  const bool shared =
      std::ranges::any_of(x, [&](const std::string& product) { return y.contains(product); });
  return shared ? std::string{}
                : fmt::format("its GPUs are {}, those before are {}", *y.begin(), *x.begin());
}

void check_versions(const MeasuredHost& a, const MeasuredHost& b, Place place,
                    const std::string& name, Diagnostics& out) {
  const auto check = [&](std::string_view what, const std::string& x, const std::string& y) {
    if (x.empty() || y.empty() || x == y) return;
    out.warning(place, {}, fmt::format("{}: {} {} there, {} before", name, what, y, x),
                "what depends on the version is fitted to both together");
  };
  check("driver", a.driver, b.driver);
  check("CUDA", a.cuda, b.cuda);
  check("NCCL", a.nccl, b.nccl);
}

std::string other_machine(const Measurement& a, const Measurement& b) {
  for (const MeasuredHost& x : a.hosts) {
    for (const MeasuredHost& y : b.hosts) {
      if (x.server != y.server) continue;
      if (std::string why = other_machine(x, y); !why.empty()) return why;
    }
  }
  if (std::string why = other_devices(a, b); !why.empty()) return why;
  return other_products(a, b);
}

}  // namespace

void check_one_machine(std::span<const Measurement* const> parts, std::span<const Place> places,
                       Diagnostics& out) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Place place = i < places.size() ? places[i] : Place{};
    std::string why;
    for (std::size_t k = 0; k < i && why.empty(); ++k) why = other_machine(*parts[k], *parts[i]);
    if (!why.empty()) {
      out.error(place, {}, fmt::format("{} is of another machine: {}", parts[i]->name, why),
                "one file is one machine: take the files of each on their own");
      continue;
    }
    for (const MeasuredHost& host : parts[i]->hosts) {
      for (std::size_t k = i; k-- > 0;) {
        const auto before = std::ranges::find(parts[k]->hosts, host.server, &MeasuredHost::server);
        if (before == parts[k]->hosts.end()) continue;
        check_versions(*before, host, place, parts[i]->name, out);
        break;
      }
    }
  }
}

Measurement merge_measurements(std::span<const Measurement> parts, std::string name,
                               Diagnostics& out, std::span<const Place> places) {
  std::vector<const Measurement*> all_parts;
  MeasurementUnion all;
  for (const Measurement& part : parts) {
    all_parts.push_back(&part);
    all.add(part);
  }
  check_one_machine(all_parts, places, out);
  Measurement merged = std::move(all.result());
  if (!name.empty()) merged.name = std::move(name);
  return merged;
}

namespace {

// What each copy is known by; of a group, all of it.
std::vector<std::string> keys_of(const std::vector<CopySample>& copies) {
  std::vector<std::string> out;
  std::map<int, std::string> groups;
  for (CopySample copy : copies) {
    const int group = std::exchange(copy.together, 0);
    out.push_back("copy " + text_of(copy));
    if (group > 0) groups[group] += " " + out.back();
  }
  for (std::size_t i = 0; i < copies.size(); ++i)
    if (copies[i].together > 0) out[i] += " in" + groups[copies[i].together];
  return out;
}

class Repeated {
 public:
  std::size_t drop(Measurement& part) {
    dropped_ = 0;
    drop(part.copies, keys_of(part.copies));
    of_list(part.kernels, "kernel");
    of_list(part.latencies, "latency");
    of_list(part.matrices, "matrix");
    of_list(part.messages, "message");
    of_list(part.overlaps, "overlap");
    for (MeasuredRun& run : part.runs) of_list(run.samples, "run " + header_of(run));
    std::erase_if(part.runs, [](const MeasuredRun& run) { return run.samples.empty(); });
    seen_.merge(mine_);
    mine_.clear();
    return dropped_;
  }

 private:
  template <class T>
  void drop(std::vector<T>& list, const std::vector<std::string>& keys) {
    std::vector<T> kept;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (seen_.contains(keys[i])) {
        ++dropped_;
        continue;
      }
      mine_.insert(keys[i]);
      kept.push_back(std::move(list[i]));
    }
    list = std::move(kept);
  }
  template <class T>
  void of_list(std::vector<T>& list, const std::string& kind) {
    std::vector<std::string> keys;
    for (const T& item : list) keys.push_back(kind + " " + text_of(item));
    drop(list, keys);
  }

  std::unordered_set<std::string> seen_, mine_;
  std::size_t dropped_ = 0;
};

}  // namespace

std::vector<std::size_t> drop_repeated(std::span<Measurement* const> parts) {
  Repeated repeated;
  std::vector<std::size_t> out;
  for (Measurement* part : parts) out.push_back(repeated.drop(*part));
  return out;
}

namespace {

// attribute="..." -> attribute="0x0", wherever it occurs in the XML.
void blank_attribute(std::string& xml, std::string_view attribute) {
  const std::string begin = fmt::format("{}=\"", attribute);
  for (std::size_t at = xml.find(begin); at != std::string::npos; at = xml.find(begin, at)) {
    at += begin.size();
    const std::size_t end = xml.find('"', at);
    if (end == std::string::npos) return xml.erase(at), void();
    xml.replace(at, end - at, "0x0");
  }
}

}  // namespace

void anonymise(Measurement& measurement) {
  std::map<std::string, std::string> alias;
  const auto rename = [&](std::string& host) {
    if (host.empty()) return;
    const auto [place, fresh] = alias.try_emplace(host, fmt::format("host{}", alias.size()));
    host = place->second;
  };
  for (MeasuredHost& host : measurement.hosts) {
    rename(host.host);
    for (MeasuredGpu& gpu : host.gpus) gpu.uuid.clear();
    for (const std::string_view attribute : {"host_hash", "guid", "uuid", "serial"})
      blank_attribute(host.topology, attribute);
  }
  for (MeasuredDevice& device : measurement.devices) rename(device.host);
  for (std::string& problem : measurement.problems) {
    for (const auto& [host, stands_for] : alias) {
      for (std::size_t at = problem.find(host); at != std::string::npos;
           at = problem.find(host, at + stands_for.size())) {
        problem.replace(at, host.size(), stands_for);
      }
    }
  }
  for (ProbeTest& test : measurement.tests) {
    for (const auto& [host, stands_for] : alias) {
      if (says(test.reason, host)) test.reason = "not told";
    }
  }
  measurement.setup.clear();
  for (MessageTest& test : measurement.messages) {
    std::erase_if(test.setup, [](const auto& entry) {
      return says(entry.first, "address") || says(entry.first, "GID") || says(entry.first, "host");
    });
  }
  for (auto& [pointer, source] : measurement.sources) source = "measured: " + measurement.tool;
  measurement.anonymised = true;
}

}  // namespace weft
