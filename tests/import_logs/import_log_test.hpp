// SPDX-License-Identifier: Apache-2.0
// Helpers of the tests of importers: read a capture from data/, import it, look at facts by JSON pointer.
#pragma once

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "calibrate/import/import.hpp"
#include "calibrate/measurement.hpp"
#include "sim/core/text.hpp"

namespace weft::import_test {

inline std::string data(const std::string& name) {
  const std::string path = std::string(WEFT_SOURCE_DIR) + "/tests/import_logs/data/" + name;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Result {
  Imported imported;
  Diagnostics diagnostics;
  Measurement measurement;  // read back from what the importer wrote

  bool ok() const { return diagnostics.ok(); }
  std::string text() const { return diagnostics.text(); }

  const Json* find(std::string_view pointer) const {
    const Json* at = &imported.facts;
    const auto keys = parse_pointer(pointer);
    for (const std::string& key : keys.value_or(std::vector<std::string>{})) {
      if (at == nullptr) return nullptr;
      if (at->is_array()) {
        const auto index = static_cast<std::size_t>(std::stoul(key));
        at = index < at->items.size() ? &at->items[index] : nullptr;
      } else {
        at = at->find(key);
      }
    }
    return at;
  }
  double number(std::string_view pointer) const {
    const Json* found = find(pointer);
    if (found != nullptr && found->is_number()) return found->number;
    ADD_FAILURE() << "no number at " << pointer << " in\n" << to_text(imported.facts) << text();
    return std::nan("");
  }
  std::string word(std::string_view pointer) const {
    const Json* found = find(pointer);
    if (found != nullptr && found->is_string()) return found->text;
    ADD_FAILURE() << "no text at " << pointer << " in\n" << to_text(imported.facts) << text();
    return {};
  }
  bool is_null(std::string_view pointer) const {
    const Json* found = find(pointer);
    return found != nullptr && found->kind == Json::Kind::null;
  }
  bool flag(std::string_view pointer) const {
    const Json* found = find(pointer);
    if (found != nullptr && found->kind == Json::Kind::boolean) return found->boolean;
    ADD_FAILURE() << "no flag at " << pointer;
    return false;
  }
  // Whether a note of this kind contains the words.
  bool notes(ImportNote::Kind kind, std::string_view words) const {
    for (const ImportNote& note : imported.notes) {
      if (note.kind == kind && note.text.find(words) != std::string::npos) return true;
    }
    return false;
  }
  const MeasuredRun& run(std::size_t i = 0) const { return measurement.runs.at(i); }
};

inline Result import_text(std::string_view kind, std::string_view text,
                          const ImportOptions& options = {}) {
  Result result;
  for (const Importer* importer : importers()) {
    if (importer->name != kind) continue;
    result.imported = importer->read(text, "capture.log", options, result.diagnostics);
    if (result.imported.measurement.is_object()) {
      EXPECT_TRUE(result.ok()) << "a measurement in spite of\n" << result.text();
      // Through text, as it would be written and read.
      Diagnostics problems;
      const std::string written = to_text(result.imported.measurement);
      result.measurement =
          read_measurement(parse_json(written, "measurement.json", problems), problems);
      EXPECT_TRUE(problems.ok()) << problems.text();
      EXPECT_EQ(to_text(write_measurement(result.measurement)), written);
    }
    return result;
  }
  ADD_FAILURE() << "no importer " << kind;
  return result;
}

inline Result import_case(std::string_view kind, const std::string& name,
                          const ImportOptions& options = {}) {
  return import_text(kind, data(name), options);
}

}  // namespace weft::import_test
