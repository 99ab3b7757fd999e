// SPDX-License-Identifier: Apache-2.0
// Globs against a plain recursive matcher, ranges, pointers, nearest names. The input is two texts, split at the first line
// break.
#include "sim/core/text.hpp"

#include <algorithm>

#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    return matches(pattern.substr(1), text) || (!text.empty() && matches(pattern, text.substr(1)));
  }
  if (text.empty() || (pattern.front() != '?' && pattern.front() != text.front())) return false;
  return matches(pattern.substr(1), text.substr(1));
}

void check_pointer(std::string_view text) {
  const auto keys = parse_pointer(text);
  if (!keys) return;
  std::string again;
  for (const std::string& key : *keys) again += "/" + json_pointer_escape(key);
  FUZZ_CHECK(again == text);
}

void check_range(std::string_view text) {
  const auto names = expand_range(text);
  if (!names) return;
  FUZZ_CHECK(!names->empty() && names->size() <= kMostNames);
  auto sorted = *names;
  std::ranges::sort(sorted);
  FUZZ_CHECK(std::ranges::adjacent_find(sorted) == sorted.end());
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  if (size > 4096) return -1;
  std::string_view b = fuzz::view(data, size);
  const std::string_view a = fuzz::take_line(b);
  const bool match = glob_match(a, b);
  if (a.size() <= 12 && b.size() <= 12) FUZZ_CHECK(match == matches(a, b));
  check_range(a);
  check_range(b);
  check_pointer(a);
  check_pointer(b);
  const auto back = json_pointer_unescape(json_pointer_escape(a));
  FUZZ_CHECK(back && *back == a);
  if (a.size() <= 64 && b.size() <= 64) {
    const std::size_t distance = edit_distance(a, b);
    FUZZ_CHECK(distance == edit_distance(b, a));
    FUZZ_CHECK((distance == 0) == (a == b));
    FUZZ_CHECK(distance <= std::max(a.size(), b.size()));
  }
  const std::vector<std::string> names{std::string(b), "collective", "oversubscription"};
  const auto nearest = nearest_name(a, names);
  if (nearest) FUZZ_CHECK(std::ranges::find(names, *nearest) != names.end());
  return 0;
}
