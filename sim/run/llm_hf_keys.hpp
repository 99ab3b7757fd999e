// SPDX-License-Identifier: Apache-2.0
// The keys of a config.json beyond the sizes that a family reads. Some say that the layers are other than the family's: those
// are refused, each at its place. Many change nothing that is counted here (constants of norms and dropout, rotation, tokens,
// generation). Whatever is in neither list and was not read gets a warning, so that no key is passed over in silence.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/json.hpp"

namespace weft {

struct HfProblem {
  Place place;
  std::string pointer, fact, cure;
};

// What the file calls itself: its model_type, else its first architecture.
std::string hf_type(const Json& document);
// The part with the layers: `text_config` of a model that also sees.
const Json& hf_layers(const Json& document);
std::string_view hf_layers_pointer(const Json& document);

// Functions of one number, as files name them; a gate is no part of them.
bool is_hf_activation(std::string_view name);

// Keys that contradict the layers of the family named `type`.
std::vector<HfProblem> hf_contradictions(const Json& document, std::string_view type);

// Where a config.json says what our own form has at `key`, and what to do about it; without a fact.
HfProblem hf_problem(const Json& document, std::string_view key);

// Keys of the part with the layers that are in `read` as little as among those that change nothing.
std::vector<const JsonMember*> hf_unread(const Json& document, std::string_view type,
                                         const std::set<std::string, std::less<>>& read);

}  // namespace weft
