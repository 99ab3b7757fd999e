// SPDX-License-Identifier: Apache-2.0
// What the fuzzers share. A fuzzer states a property of every input: no crash, no hang, no memory blow-up, and what it says
// itself with FUZZ_CHECK. Exceptions that stand for bad input are answers; any other escapes and counts as a crash.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/check.hpp"
#include "sim/core/loader.hpp"
#include "tools/cli/file_source.hpp"

#define FUZZ_CHECK(condition)                                                      \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)

namespace weft::fuzz {

inline std::string_view view(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Takes the text up to the first line break off the front.
inline std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(line.size() + (line.size() < text.size() ? 1 : 0));
  return line;
}

// The shipped catalogue, read once, and one file "input.json". Nothing else on disk can be reached.
class CatalogueAndInput final : public FileSource {
 public:
  explicit CatalogueAndInput(std::string input) : input_(std::move(input)) {}

  std::optional<std::string> read(const std::string& path) override {
    if (path == "input.json") return input_;
    if (!path.starts_with(catalogue().root() + "/")) return std::nullopt;
    static std::map<std::string, std::string> known;
    auto at = known.find(path);
    if (at == known.end()) {
      const auto text = catalogue().read(path);
      if (!text) return std::nullopt;
      at = known.emplace(path, *text).first;
    }
    return at->second;
  }
  std::optional<std::string> find(std::string_view kind, const std::string& name) override {
    return catalogue().find(kind, name);
  }
  std::vector<std::string> names(std::string_view kind) override { return catalogue().names(kind); }

 private:
  static Configs& catalogue() {
    static Configs configs(find_configs_root());
    return configs;
  }
  std::string input_;
};

// What every reported problem must look like.
inline void check_problems(const Diagnostics& out) {
  for (const Problem& problem : out.problems()) {
    FUZZ_CHECK(!problem.fact.empty());
    FUZZ_CHECK((problem.place.line == 0) == (problem.place.column == 0));
    FUZZ_CHECK(!out.text_of(problem).empty());
  }
  FUZZ_CHECK(out.ok() == (out.error_count() == 0));
  FUZZ_CHECK(out.text().empty() == out.problems().empty());
}

}  // namespace weft::fuzz
