// SPDX-License-Identifier: Apache-2.0
// Small work on names: the nearest known name to a misspelt one, globs, ranges, JSON pointers (RFC 6901).
//
// Example:  nearest_name("colective", {"collective", "compute"}) is "collective".
//           expand_range("gpu[0-2]") is {"gpu0", "gpu1", "gpu2"}; expand_range("nic") is {"nic"}.
//           parse_pointer("/network/a~1b") is {"network", "a/b"}.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`, each letter touched at most once
// (optimal string alignment). Case counts.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The name that `word` most likely means: at most about a third of its letters are wrong. A difference in case alone is
// always near enough; among equals the earliest name wins.
std::optional<std::string> nearest_name(std::string_view word,
                                        const std::vector<std::string>& names);
// `, did you mean "NEAREST"?`, the tail of a message about an unknown word; empty when nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

// Whole-text match: `*` is any run of characters (slashes too), `?` is one character, all else is itself.
// Time is at most |pattern| * |text|, without recursion.
bool glob_match(std::string_view pattern, std::string_view text);

std::string join(const std::vector<std::string>& items, std::string_view separator);

// The names of `stem[first-last]`, or the one name given. The range may be followed by more text ("rail[0-3]/leaf") but
// there is only one. nullopt when brackets are malformed, first > last, or the range has more than kMostNames names.
inline constexpr std::size_t kMostNames = 65536;
std::optional<std::vector<std::string>> expand_range(std::string_view text);

std::string json_pointer_escape(std::string_view key);                     // "a/b" -> "a~1b"
std::optional<std::string> json_pointer_unescape(std::string_view token);  // nullopt on a stray '~'

// The keys of a pointer; "" has none. nullopt when it does not begin with '/' or an escape is malformed.
std::optional<std::vector<std::string>> parse_pointer(std::string_view pointer);

}  // namespace weft
