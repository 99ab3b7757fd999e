// SPDX-License-Identifier: Apache-2.0
// From files to one resolved document. A component field (see component_kinds) may hold a name of the catalogue, an object
// {"use": NAME or "relative/path.json", "set": {POINTER: VALUE}}, or the component itself; the loader replaces the first two
// by what they stand for. Nested references are resolved first, `set` is applied after, so "/network/link/rate" reaches into
// a link that the file names by a string. Every value keeps the place where it was written.
//
// A whole file may be {"kind": "patch", "use": ..., "set": ..., "sources": ..., "calibration": ...}: a component with values that
// somebody measured; its sources count for the values that it sets.
//
// Refused: unknown names (with the nearest), cycles of `use`, keys beside `use` and `set`, a `set` that points nowhere, and
// documents that grow beyond kMostValues by inclusion.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/core/json.hpp"

namespace weft {

// Where files come from; sim itself never opens one.
class FileSource {
 public:
  virtual ~FileSource() = default;
  // The text of a file, or nullopt when it cannot be read.
  virtual std::optional<std::string> read(const std::string& path) = 0;
  // The path of a component of the catalogue, e.g. ("gpu", "h100-sxm5"); nullopt when there is none.
  virtual std::optional<std::string> find(std::string_view kind, const std::string& name) = 0;
  // All names of one kind, sorted.
  virtual std::vector<std::string> names(std::string_view kind) = 0;
};

// The kinds of component that a field of this name accepts ("fabric" -> fabric, server); empty for other fields.
const std::vector<std::string_view>& component_kinds(std::string_view field);

class Loader {
 public:
  static constexpr std::size_t kMostValues = 1'000'000;

  Loader(FileSource& files, Diagnostics& out, std::size_t most_values = kMostValues)
      : files_(files), out_(out), most_values_(most_values) {}

  // A file, resolved. Null when it cannot be read or parsed (the problem is reported).
  Json load_file(const std::string& path);

  // What a field named `field` that holds `reference` stands for: a catalogue name or a path ending in .json.
  Json load_component(std::string_view field, const std::string& reference);

  // Replaces the value at `pointer` (which starts with "/"); its last key may be new. Reports to the place of `value`.
  void set(Json& document, const std::string& pointer, Json value);

 private:
  struct Target {
    std::string path;
    bool found = false;
  };
  Target locate(std::string_view field, const std::string& reference, Place place,
                const std::string& pointer);
  struct File {
    Json document;  // resolved; null when it is not JSON
    std::size_t values = 0, depth = 0;
  };
  // nullptr when there is no such file, or it is being resolved already.
  const File* load(const std::string& path, std::string_view field, Place place,
                   const std::string& pointer);
  void resolve(Json& value, std::string_view field, const std::string& pointer);
  void include(Json& value, std::string_view field, const std::string& reference, Place place,
               const std::string& pointer);

  FileSource& files_;
  Diagnostics& out_;
  std::size_t most_values_;
  std::map<std::string, File> resolved_;  // by path
  std::vector<std::string> open_;         // paths being resolved, outermost first
  std::size_t values_ = 0;
};

// How many values of a resolved document rest on a measurement, a datasheet or an assumption: every text with a unit is
// looked up in the nearest enclosing `sources`; a value set from outside its file counts as assumed.
struct Evidence {
  std::size_t measured = 0, datasheet = 0, assumed = 0;
};
Evidence count_evidence(const Json& document);

}  // namespace weft
