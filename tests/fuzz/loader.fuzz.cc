// SPDX-License-Identifier: Apache-2.0
// Files that use each other: inclusion ends, changes reach what they name or say why not. A line "=== PATH" begins a file of
// the input, the one before the first such line is main.json; "gpu/x.json" is the catalogue's GPU x. After a line "+++", each
// line is POINTER VALUE: changes as the command line makes them.
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostValues =
    20'000;  // as many as the sanitizers can carry many times a second

class Files final : public FileSource {
 public:
  std::optional<std::string> read(const std::string& path) override {
    const auto found = texts.find(path);
    if (found == texts.end()) return std::nullopt;
    return found->second;
  }
  std::optional<std::string> find(std::string_view kind, const std::string& name) override {
    const std::string path = std::string(kind) + "/" + name + ".json";
    if (!texts.contains(path)) return std::nullopt;
    return path;
  }
  std::vector<std::string> names(std::string_view kind) override {
    std::vector<std::string> out;
    for (const auto& [path, text] : texts) {
      if (path.starts_with(std::string(kind) + "/") && path.ends_with(".json")) {
        out.push_back(path.substr(kind.size() + 1, path.size() - kind.size() - 6));
      }
    }
    return out;
  }
  std::map<std::string, std::string> texts;
};

// No reference is left once everything is resolved.
void check_resolved(const Json& json, std::string_view field) {
  if (!component_kinds(field).empty()) FUZZ_CHECK(!json.is_string());
  for (const JsonMember& member : json.members) {
    if (member.key != "sources") check_resolved(member.value, member.key);
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  std::string_view text = fuzz::view(data, size);
  Files files;
  std::vector<std::string> sets;
  std::string* open = &files.texts["main.json"];
  bool changes = false;
  while (!text.empty()) {
    const std::string line(fuzz::take_line(text));
    if (changes) {
      sets.push_back(line);
    } else if (line == "+++") {
      changes = true;
    } else if (line.starts_with("=== ")) {
      open = &files.texts[line.substr(4)];
    } else {
      *open += line + "\n";
    }
  }
  Diagnostics out;
  Loader loader(files, out, kMostValues);
  Json document = loader.load_file("main.json");
  for (const std::string& set : sets) {
    const std::size_t space = set.find(' ');
    if (space == std::string::npos) continue;
    Diagnostics trial;
    Json value = parse_json(set.substr(space + 1), "--set", trial);
    if (!trial.ok()) value = Json(set.substr(space + 1));
    value.place = {};
    loader.set(document, set.substr(0, space), std::move(value));
  }
  fuzz::check_problems(out);
  if (out.ok()) check_resolved(document, {});
  count_evidence(document);
  Diagnostics more;
  Loader(files, more, kMostValues).load_component("link", "main.json");
  fuzz::check_problems(more);
  return 0;
}
