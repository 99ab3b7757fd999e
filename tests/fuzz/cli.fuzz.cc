// SPDX-License-Identifier: Apache-2.0
// Command lines, one argument per line: the program answers with a documented exit code, and standard output is empty unless
// it has an answer. Only verbs that read, only names of the catalogue and files of the checkout, only small sizes.
#include "tools/cli/cli.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>

#include "sim/core/json.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

bool has_large_number(std::string_view text) {
  std::size_t digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (digits > 0 && (text[i] == 'e' || text[i] == 'E')) return true;
    digits = digit ? digits + 1 : 0;
    if (digits > 2) return true;
  }
  return false;
}

bool is_harmless(const std::vector<std::string>& args) {
  static const std::vector<std::string> verbs{"check", "list", "explain", "topo", "help"};
  if (args.empty() || args.size() > 12) return false;
  if (!args.front().starts_with('-') && std::ranges::find(verbs, args.front()) == verbs.end())
    return false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg.find("--o") != std::string::npos || arg.find("..") != std::string::npos ||
        arg.find('\0') != std::string::npos)
      return false;
    const bool set = i > 0 && args[i - 1] == "--set";
    const std::string_view value =
        std::string_view(arg).substr(std::min(arg.size(), arg.find('=') + 1));
    if ((set || arg.starts_with("--set")) && has_large_number(value)) return false;
    if (!set && arg.starts_with('/')) return false;
    // "@" leads CLI11 to no file, but other parsers take it for one.
    if (arg.starts_with('@')) return false;
  }
  return true;
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  std::filesystem::current_path(WEFT_SOURCE_DIR);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  std::string_view text = fuzz::view(data, size);
  std::vector<std::string> args;
  while (!text.empty()) args.emplace_back(fuzz::take_line(text));
  if (!is_harmless(args)) return -1;
  std::ostringstream out, err;
  const int code = run_cli(args, out, err);
  FUZZ_CHECK(code == kOk || code == kBadInput || code == kLimit);
  const bool json = std::ranges::find(args, "--json") != args.end();
  if (code == kOk) FUZZ_CHECK(!out.str().empty());
  const bool answers_in_json = args.front() == "check" && json;
  if (code != kOk && !answers_in_json && args.front() != "check") FUZZ_CHECK(out.str().empty());
  if (code != kOk && !answers_in_json) FUZZ_CHECK(!err.str().empty());
  // "-hx" is "-h" too.
  const bool help = args.front() == "help" || args.front().starts_with('-') ||
                    std::ranges::any_of(args, [](const std::string& arg) {
                      return arg.starts_with("-h") || arg.starts_with("--help");
                    });
  if (code == kOk && json && !help) {
    Diagnostics diagnostics;
    parse_json(out.str(), "stdout", diagnostics);
    FUZZ_CHECK(diagnostics.ok());
  }
  return 0;
}
