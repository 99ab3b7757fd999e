// SPDX-License-Identifier: Apache-2.0
// Language models of the catalogue for tests: llm("mpt-7b", {{"/context", 512}}) is the file with values set.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/llm/architecture.hpp"
#include "tests/support/fabric_text.hpp"

namespace weft::testing {

inline Architecture llm(const std::string& name,
                        const std::vector<std::pair<std::string, std::int64_t>>& set = {}) {
  MemoryFiles files;
  files.catalogue = true;
  Diagnostics out;
  Loader loader(files, out);
  Json document = loader.load_component("model", name);
  for (const auto& [pointer, value] : set) loader.set(document, pointer, value);
  LlmSpec spec = read_llm(document, {}, out);
  EXPECT_TRUE(out.ok()) << out.text();
  return Architecture(std::move(spec));
}

}  // namespace weft::testing
