// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/measured_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include <fmt/format.h>

#include "calibrate/fit/parameters.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

std::vector<std::string> words_of_name(const std::string& name) {
  std::vector<std::string> out{""};
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0)
      out.back() += static_cast<char>(std::tolower(u));
    else if (!out.back().empty())
      out.emplace_back();
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

// sxm5 -> sxm; empty where a name does not say how the GPU is built in.
std::string form_of(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    for (const char* form : {"sxm", "pcie", "nvl"})
      if (word.starts_with(form)) return form;
  }
  return {};
}

// The first word with a digit: h100, 4090, gb200.
std::string number_of(const std::vector<std::string>& words) {
  const auto found = std::ranges::find_if(words, [](const std::string& word) {
    return word.size() > 1 &&
           std::ranges::any_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
  });
  return found == words.end() ? std::string{} : *found;
}

class Check {
 public:
  Check(const MeasuredFile& file, const Fabric& fabric, Diagnostics& out)
      : file_(file), m_(file.measurement), fabric_(fabric), out_(out) {}

  void gpus(bool other_gpus, std::vector<std::string>& notes) {
    std::set<std::string> models;
    for (const ServerType& type : fabric_.types()) {
      for (const GpuSpec& gpu : type.gpu_specs) models.insert(gpu.name);
    }
    std::map<std::string, std::string> seen;  // product -> where it is said first
    for (std::size_t h = 0; h < m_.hosts.size(); ++h) {
      for (std::size_t g = 0; g < m_.hosts[h].gpus.size(); ++g)
        seen.try_emplace(m_.hosts[h].gpus[g].product,
                         fmt::format("/hosts/{}/gpus/{}/product", h, g));
    }
    for (std::size_t d = 0; d < m_.devices.size(); ++d)
      seen.try_emplace(m_.devices[d].product, fmt::format("/devices/{}/product", d));
    for (const auto& [product, pointer] : seen) {
      if (product.empty() || models.empty() ||
          std::ranges::any_of(
              models, [&, &name = product](const auto& model) { return same_gpu(name, model); }))
        continue;
      const std::string fact =
          fmt::format("it was measured on \"{}\", the fabric has {}", product,
                      join(std::vector<std::string>(models.begin(), models.end()), ", "));
      if (other_gpus)
        notes.push_back(fact + ": fitted as asked");
      else
        out_.error(file_.at(pointer), pointer, fact,
                   "name the fabric that was measured; --other-gpus fits it all the same");
    }
  }

  // Numbers of one server's GPUs; what ran on which of them.
  void numbers() {
    std::set<std::int64_t> servers;
    for (std::size_t h = 0; h < m_.hosts.size(); ++h) {
      if (!servers.insert(m_.hosts[h].server).second)
        tell(fmt::format("/hosts/{}/server", h),
             fmt::format("server {} is there twice", m_.hosts[h].server), "servers count from 0");
      if (m_.hosts[h].server >= kMostServers)
        tell(fmt::format("/hosts/{}/server", h),
             fmt::format("server {}: more than {} servers", m_.hosts[h].server, kMostServers),
             "servers count from 0");
      std::set<int> numbers;
      for (std::size_t g = 0; g < m_.hosts[h].gpus.size(); ++g) {
        const int device = m_.hosts[h].gpus[g].device;
        if (!numbers.insert(device).second)
          tell(fmt::format("/hosts/{}/gpus/{}/device", h, g),
               fmt::format("device {} is there twice", device), "number the GPUs of a server");
      }
    }
    for (std::size_t i = 0; i < m_.runs.size(); ++i) {
      const MeasuredRun& run = m_.runs[i];
      const std::string at = fmt::format("/runs/{}/gpus", i);
      std::set<std::string> names;
      for (std::size_t k = 0; k < run.gpus.size(); ++k) {
        if (!names.insert(run.gpus[k]).second)
          tell(fmt::format("{}/{}", at, k), fmt::format("\"{}\" is there twice", run.gpus[k]),
               "a rank is a GPU of its own");
      }
      if (run.ranks > 0 && !run.gpus.empty() &&
          static_cast<std::size_t>(run.ranks) != run.gpus.size())
        tell(at, fmt::format("{} are named, and there were {} ranks", run.gpus.size(), run.ranks),
             "name one GPU per rank, or none");
    }
  }

  void devices() {
    for (std::size_t i = 0; i < m_.copies.size(); ++i) {
      known(m_.copies[i].from, fmt::format("/copies/{}/from", i));
      known(m_.copies[i].to, fmt::format("/copies/{}/to", i));
      size(m_.copies[i].bytes, fmt::format("/copies/{}/bytes", i));
    }
    for (std::size_t i = 0; i < m_.kernels.size(); ++i) {
      known_gpu(m_.kernels[i].gpu, fmt::format("/kernels/{}/gpu", i));
      size(m_.kernels[i].bytes, fmt::format("/kernels/{}/bytes", i));
    }
    for (std::size_t i = 0; i < m_.matrices.size(); ++i) {
      for (std::size_t k = 0; k < m_.matrices[i].pairs.size(); ++k) {
        known(m_.matrices[i].pairs[k].from, fmt::format("/matrices/{}/pairs/{}/from", i, k));
        known(m_.matrices[i].pairs[k].to, fmt::format("/matrices/{}/pairs/{}/to", i, k));
      }
    }
    for (std::size_t i = 0; i < m_.runs.size(); ++i) {
      for (std::size_t k = 0; k < m_.runs[i].gpus.size(); ++k)
        known_gpu(m_.runs[i].gpus[k], fmt::format("/runs/{}/gpus/{}", i, k));
      for (std::size_t k = 0; k < m_.runs[i].samples.size(); ++k)
        size(m_.runs[i].samples[k].bytes, fmt::format("/runs/{}/samples/{}/bytes", i, k),
             m_.runs[i].samples[k].line);
    }
  }

 private:
  void tell(const std::string& pointer, const std::string& fact, const std::string& cure) {
    out_.error(file_.at(pointer), pointer, fact, cure);
  }

  void known_gpu(const std::string& name, const std::string& pointer) {
    auto node = fabric_.find_node(name);
    if (!node) node = fabric_.find_node("server0/" + name.substr(name.find('/') + 1));
    if (!node || fabric_.node(*node).kind == NodeKind::gpu) return known(name, pointer);
    tell(pointer, fmt::format("\"{}\" is no GPU", name), "e.g. gpu0");
  }

  void known(const std::string& name, const std::string& pointer) {
    if (!told_.insert(name).second) return;
    const bool served = name.find('/') != std::string::npos;
    const std::string inner = served ? name.substr(name.find('/') + 1) : name;
    const bool server = !served || name.starts_with("server");
    if (fabric_.find_node(name) ||
        (server && (fabric_.find_node("server0/" + inner) ||
                    (served && fabric_.spec().network && fabric_.find_node(inner)))))
      return;
    std::vector<std::string> names;
    for (const NodeId gpu : fabric_.gpus()) {
      names.push_back(fabric_.name(gpu));
      if (names.size() >= kMostNamed) break;
    }
    out_.error(file_.at(pointer), pointer, fmt::format("the fabric has no \"{}\"", name),
               fmt::format("it has {}{}", join(names, ", "),
                           fabric_.gpus().size() > names.size() ? ", ..." : ""));
  }

  void size(Bytes bytes, const std::string& pointer, int line = 0) {
    if (bytes <= kMostBytes) return;
    Place place = file_.at(pointer);
    if (place.line == 0 && line > 0)
      place.line = static_cast<std::uint32_t>(line), place.column = 1;
    out_.error(place, pointer,
               fmt::format("{} is more than {}", to_text(bytes), to_text(kMostBytes)),
               "no memory of a GPU holds that: is the number right?");
  }

  static constexpr std::size_t kMostNamed = 16;
  const MeasuredFile& file_;
  const Measurement& m_;
  const Fabric& fabric_;
  Diagnostics& out_;
  std::set<std::string> told_;
};

}  // namespace

Place MeasuredFile::at(const std::string& pointer) const {
  return nearest_place(document, pointer).value_or(Place{.file = file});
}

bool same_gpu(const std::string& product, const std::string& model) {
  const auto p = words_of_name(product), m = words_of_name(model);
  const std::string number = number_of(m);
  if (number.empty() || number_of(p).empty()) return true;
  if (std::ranges::find(p, number) == p.end()) return false;
  const std::string a = form_of(p), b = form_of(m);
  return a.empty() || b.empty() || a == b;
}

bool is_about(const MeasuredFile& file, const Fabric& fabric, bool other_gpus,
              std::vector<std::string>& notes, Diagnostics& out) {
  const std::size_t before = out.error_count();
  Check check(file, fabric, out);
  check.gpus(other_gpus, notes);
  check.numbers();
  check.devices();
  return out.error_count() == before;
}

}  // namespace weft
