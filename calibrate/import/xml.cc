// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/xml.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <pugixml.hpp>

namespace weft {
namespace {

constexpr int kMostDepth = 64;
constexpr std::size_t kMostElements = 100'000;

class Reader {
 public:
  Reader(std::string_view text, const std::string& file, Diagnostics& diagnostics)
      : text_(text), file_(diagnostics.add_file(file)), diagnostics_(diagnostics) {
    for (std::size_t at = text.find('\n'); at != std::string_view::npos;
         at = text.find('\n', at + 1))
      line_ends_.push_back(at);
  }

  std::optional<XmlDocument> read() {
    pugi::xml_document document;
    const pugi::xml_parse_result result =
        document.load_buffer(text_.data(), text_.size(), pugi::parse_default | pugi::parse_comments,
                             pugi::encoding_utf8);
    if (!result) {
      const bool cut = static_cast<std::size_t>(result.offset) + 1 >= text_.size();
      error(place(result.offset),
            fmt::format("this is not well-formed XML: {}", result.description()),
            cut ? "the file may have been cut off" : "mend it or dump it again");
      return std::nullopt;
    }
    XmlDocument out;
    for (const pugi::xml_node& node : document.children()) {
      if (node.type() == pugi::node_comment) ++out.comments;
      if (node.type() != pugi::node_element) continue;
      if (!out.elements.empty()) {
        error(place(node.offset_debug()), fmt::format("a second root element <{}>", node.name()),
              "import one file at a time");
        return std::nullopt;
      }
      add(node, 0, out);
    }
    if (out.elements.empty())
      error({file_, 1, 1}, "there is no XML element", "dump the file again");
    if (!diagnostics_.ok()) return std::nullopt;
    return out;
  }

 private:
  Place place(std::ptrdiff_t offset) const {
    const auto at = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, offset));
    const auto line = std::ranges::lower_bound(line_ends_, at);
    const std::size_t start = line == line_ends_.begin() ? 0 : *(line - 1) + 1;
    return {file_, static_cast<std::uint32_t>(line - line_ends_.begin()) + 1,
            static_cast<std::uint32_t>(at - start) + 1};
  }
  void error(Place at, std::string fact, std::string cure) {
    diagnostics_.error(at, {}, std::move(fact), std::move(cure));
  }

  std::size_t add(const pugi::xml_node& node, int depth, XmlDocument& out) {
    const std::size_t index = out.elements.size();
    // The offset is that of the name, one behind the bracket.
    const Place at = place(node.offset_debug() - 1);
    out.elements.push_back({node.name(), {}, {}, at});
    for (const pugi::xml_attribute& attribute : node.attributes())
      out.elements[index].attributes.emplace_back(attribute.name(), attribute.value());
    for (const pugi::xml_node& child : node.children()) {
      if (child.type() == pugi::node_comment) ++out.comments;
      if (child.type() == pugi::node_pcdata) ++out.texts;
      if (child.type() != pugi::node_element) continue;
      if (depth == kMostDepth || out.elements.size() == kMostElements) {
        if (diagnostics_.ok())
          error(at, "the elements are nested too deeply or too many", "this is no file of NCCL");
        break;
      }
      const std::size_t added = add(child, depth + 1, out);
      out.elements[index].children.push_back(added);
    }
    return index;
  }

  std::string_view text_;
  std::uint32_t file_;
  Diagnostics& diagnostics_;
  std::vector<std::size_t> line_ends_;
};

}  // namespace

const std::string& XmlElement::attribute(std::string_view key) const {
  static const std::string none;
  for (const auto& [name_of_it, value] : attributes) {
    if (name_of_it == key) return value;
  }
  return none;
}

bool XmlElement::has(std::string_view key) const {
  return std::ranges::any_of(attributes, [&](const auto& entry) { return entry.first == key; });
}

std::optional<XmlDocument> read_xml(std::string_view text, const std::string& file,
                                    Diagnostics& diagnostics) {
  return Reader(text, file, diagnostics).read();
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

}  // namespace weft
