// SPDX-License-Identifier: Apache-2.0
// JSON: every place lies inside the text, and what is accepted is written and read back to the same document.
#include "sim/core/json.hpp"

#include <algorithm>

#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

struct Text {
  std::vector<std::size_t> widths;  // of the lines
  explicit Text(std::string_view text) {
    for (;;) {
      const std::size_t end = text.find('\n');
      widths.push_back(std::min(end, text.size()));
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
  }
  bool holds(Place place) const {
    return place.line >= 1 && place.line <= widths.size() && place.column >= 1 &&
           place.column <= widths[place.line - 1] + 1;
  }
};

void check_places(const Json& json, const Text& text) {
  FUZZ_CHECK(text.holds(json.place));
  for (const Json& item : json.items) check_places(item, text);
  for (const JsonMember& member : json.members) {
    FUZZ_CHECK(text.holds(member.place));
    check_places(member.value, text);
  }
}

bool same(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return a.number == b.number;
  if (a.kind != b.kind || a.boolean != b.boolean || a.text != b.text) return false;
  const auto same_member = [](const JsonMember& x, const JsonMember& y) {
    return x.key == y.key && same(x.value, y.value);
  };
  return std::ranges::equal(a.items, b.items, same) &&
         std::ranges::equal(a.members, b.members, same_member);
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string_view input = fuzz::view(data, size);
  Diagnostics out;
  const Json json = parse_json(input, "input.json", out);
  const Text text(input);
  for (const Problem& problem : out.problems()) FUZZ_CHECK(text.holds(problem.place));
  fuzz::check_problems(out);
  if (!out.ok()) return 0;
  check_places(json, text);
  for (const int indent : {0, 2}) {
    const std::string written = to_text(json, indent);
    if (indent == 0) FUZZ_CHECK(written.find('\n') == std::string::npos);
    Diagnostics again_out;
    const Json again = parse_json(written, "written.json", again_out);
    FUZZ_CHECK(again_out.ok());
    FUZZ_CHECK(same(json, again));
    FUZZ_CHECK(to_text(again, indent) == written);
  }
  return 0;
}
