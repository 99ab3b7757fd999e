// SPDX-License-Identifier: Apache-2.0
// A small XML document: elements with attributes and places. Comments, text and processing instructions are counted only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/diagnostics.hpp"

namespace weft {

struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<std::size_t> children;  // into XmlDocument::elements
  Place place{};

  // The attribute's text, empty when it is not there.
  const std::string& attribute(std::string_view key) const;
  bool has(std::string_view key) const;
};

struct XmlDocument {
  std::vector<XmlElement> elements;  // the first is the root; parents come before children
  std::size_t comments = 0, texts = 0;
};

// nullopt when the text is no well-formed XML with one root; the problem is reported with its place.
std::optional<XmlDocument> read_xml(std::string_view text, const std::string& file,
                                    Diagnostics& diagnostics);

// The whole text is one integer.
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace weft
