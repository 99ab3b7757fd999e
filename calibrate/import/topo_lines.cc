// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/topo_lines.hpp"

#include <algorithm>

#include "calibrate/import/lines.hpp"

namespace weft {
namespace {

constexpr std::string_view kNoBreakSpace = "\xC2\xA0";

std::vector<std::string_view> raw_lines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), out.back().size() + 1));
  }
  return out;
}

}  // namespace

std::vector<TopoLine> topo_lines(std::string_view text) {
  const std::vector<std::string_view> raw = raw_lines(text);
  std::vector<TopoLine> out;
  for (const LogLine& line : clean_lines(text)) {
    TopoLine& into = out.emplace_back();
    into.number = line.number;
    into.damaged = line.damaged;
    std::uint32_t tabs = 0, shown = 0;
    std::size_t at = 0;
    for (const Word& word : words_of(line.text)) {
      for (; at < word.at; ++at) {
        tabs += line.text[at] == '\t' ? 1 : 0;
        shown += line.text[at] == '\t' ? 8 - shown % 8 : 1;
      }
      into.words.push_back({std::string(word.text), line.number,
                            static_cast<std::uint32_t>(line.offset + word.at + 1), tabs, shown});
    }
    // "NIC0: mlx5_0" of the legend looks like a tag and a word.
    if (!line.tagged || into.words.size() != 1 || line.number > raw.size()) continue;
    const std::vector<Word> words = words_of(raw[line.number - 1]);
    if (words.size() < 2 || !words[words.size() - 2].text.ends_with(':')) continue;
    Word name = words[words.size() - 2];
    if (const std::size_t blank = name.text.rfind(kNoBreakSpace); blank != std::string_view::npos)
      name.text.remove_prefix(blank + kNoBreakSpace.size());
    into.words.insert(into.words.begin(), {std::string(name.text), line.number,
                                           static_cast<std::uint32_t>(name.at + 1), 0, 0});
  }
  return out;
}

}  // namespace weft
