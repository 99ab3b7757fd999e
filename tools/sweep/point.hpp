// SPDX-License-Identifier: Apache-2.0
// One point of a sweep: its scenario, its key and its result.
//
// The key is a hash of the resolved scenario in a canonical form (keys sorted; names, questions and expectations, which change
// no number, left out), of the pointers that are read from the report, and of the engine's version. Points with equal keys are the
// same question and are answered once, within a sweep and across sweeps that share a store.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sim/run/run.hpp"
#include "tools/sweep/sweep.hpp"

namespace weft {

// What is kept of a point, see record.hpp for its form on disk.
struct Record {
  std::string key;
  bool ok = false;
  std::string error;  // of a failed point: what a person would have been told
  Json results;       // name -> value, null where the report has none
  double wall_s = 0;
};

// Somebody wants the sweep to stop; the point was not finished.
struct Interrupted {};

// Runs points one after the other; each thread has one of its own. Keeps the files it has read and the last fabric it has built.
class PointRunner {
 public:
  // `stop` is asked now and then during a run; when it says true the run ends with Interrupted.
  PointRunner(const Sweep& sweep, FileSource& files, std::function<bool()> stop);

  std::string key(std::size_t point);
  Record run(std::size_t point);

  // The scenario of a point; what cannot be set goes to `out`, which names the sweep's files.
  Json document(std::size_t point, Diagnostics& out);
  // Throws what a run throws.
  Json report(const Json& document, Diagnostics& out);

 private:
  class CachedFiles final : public FileSource {
   public:
    explicit CachedFiles(FileSource& files) : files_(files) {}
    std::optional<std::string> read(const std::string& path) override;
    std::optional<std::string> find(std::string_view kind, const std::string& name) override;
    std::vector<std::string> names(std::string_view kind) override { return files_.names(kind); }

   private:
    FileSource& files_;
    std::map<std::string, std::optional<std::string>> texts_;
    std::map<std::string, std::optional<std::string>> paths_;
  };

  std::string key_of(const Json& document, const Diagnostics& out) const;
  Report simulate(const Json& document, Diagnostics& out);

  const Sweep& sweep_;
  CachedFiles files_;
  std::function<bool()> stop_;
  RunContext context_;
  bool keep_effective_ = false, keep_lists_ = false;
  std::optional<Fabric> fabric_;
  std::string fabric_key_;
};

// What `weft check` asks of a sweep beyond its file: whether its pointers lead somewhere. The first point is put together and read;
// an axis that is wrong there with its first and with its last value is an error, other problems of this one point are warnings.
// Then it runs, for a few seconds at most, and outputs that its report does not have are warned about.
void check_first_point(const Sweep& sweep, FileSource& files, Diagnostics& out);

}  // namespace weft
