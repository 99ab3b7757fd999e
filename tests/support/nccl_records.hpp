// SPDX-License-Identifier: Apache-2.0
// The published tables of nccl-tests in tests/validation.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "calibrate/validate_case.hpp"

namespace weft::test {

struct NcclRecords {
  Dataset dataset;
  std::map<std::string, Json> published;  // as written, by id
};

inline const NcclRecords& nccl_records() {
  static const NcclRecords all = [] {
    NcclRecords out;
    Diagnostics diagnostics;
    const std::filesystem::path folder = std::string(WEFT_SOURCE_DIR) + "/tests/validation";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("nccl_") || entry.path().extension() != ".json") continue;
      std::ifstream file(entry.path());
      std::ostringstream text;
      text << file.rdbuf();
      const Json document = parse_json(text.str(), name, diagnostics);
      read_validation_file(document, out.dataset, diagnostics);
      for (const Json& record : document.find("records")->items)
        out.published[record.find("id")->text] = record;
    }
    EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
    return out;
  }();
  return all;
}

}  // namespace weft::test
