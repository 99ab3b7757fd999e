// SPDX-License-Identifier: Apache-2.0
#include "sim/core/loader.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/core/units.hpp"

namespace weft {
namespace {

void measure(const Json& json, std::size_t depth, std::size_t& values, std::size_t& deepest) {
  ++values;
  deepest = std::max(deepest, depth);
  for (const Json& item : json.items) measure(item, depth + 1, values, deepest);
  for (const JsonMember& member : json.members) measure(member.value, depth + 1, values, deepest);
}

std::string child(const std::string& pointer, std::string_view key) {
  return pointer + "/" + json_pointer_escape(key);
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string{} : path.substr(0, slash + 1);
}

// "a/./b" and "a/x/../b" are "a/b": a cycle is seen by the name of a file.
std::string plain_path(const std::string& path) {
  const bool absolute = path.starts_with('/');
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = std::string_view(path).substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (!absolute) {
      parts.push_back(part);
    }
  }
  std::string out = absolute ? "/" : "";
  for (std::size_t i = 0; i < parts.size(); ++i) out.append(i > 0 ? "/" : "").append(parts[i]);
  return out.empty() ? "." : out;
}

// What may stand beside "use" and "set" in a file of kind "patch": how the values were found.
constexpr std::string_view kPatchKeys[] = {"weft",    "kind",    "name",
                                           "summary", "sources", "calibration"};

// The sources of a patch, whose pointers start at the document.
void add_sources(Json& document, const Json& sources) {
  if (document.find("sources") == nullptr) document.set("sources", Json::object());
  Json& own = *document.find("sources");
  for (const JsonMember& member : sources.members) {
    own.set(member.key, member.value);
    std::ranges::find(own.members, member.key, &JsonMember::key)->place = member.place;
  }
}

constexpr std::size_t kMostOpen = 64;
constexpr std::size_t kMostDepth =
    256;  // of values, inclusion counted: documents are walked by recursion

std::string short_list(std::vector<std::string> names) {
  constexpr std::size_t kMost = 20;
  if (names.size() > kMost) {
    names.resize(kMost);
    names.emplace_back("...");
  }
  return join(names, ", ");
}

bool is_path(std::string_view reference) { return reference.ends_with(".json"); }

}  // namespace

const std::vector<std::string_view>& component_kinds(std::string_view field) {
  static const std::map<std::string, std::vector<std::string_view>, std::less<>> kinds{
      {"fabric", {"fabric", "server"}},
      {"server", {"server"}},
      {"model", {"gpu", "nic", "switch", "llm"}},
      {"switch", {"switch"}},
      {"link", {"link"}},
      {"link_global", {"link"}},
      {"kernels", {"kernels"}},
      {"computing", {"compute"}},  // "compute" is a precision in a job's dtype
      {"proxy", {"proxy"}},
  };
  static const std::vector<std::string_view> none;
  const auto found = kinds.find(field);
  return found == kinds.end() ? none : found->second;
}

Json Loader::load_file(const std::string& path) {
  const File* file = load(plain_path(path), {}, {}, {});
  return file != nullptr ? file->document : Json{};
}

Json Loader::load_component(std::string_view field, const std::string& reference) {
  Json value(reference);
  include(value, field, reference, {}, {});
  return value;
}

const Loader::File* Loader::load(const std::string& path, std::string_view field, Place place,
                                 const std::string& pointer) {
  if (const auto cached = resolved_.find(path); cached != resolved_.end()) return &cached->second;
  if (std::ranges::find(open_, path) != open_.end()) {
    std::string cycle;
    for (const std::string& open : open_) cycle += open + " -> ";
    out_.error(place, pointer, "files include each other in a cycle: " + cycle + path,
               "break the cycle");
    return nullptr;
  }
  if (open_.size() >= kMostOpen) {
    out_.error(place, pointer, fmt::format("files include each other more than {} deep", kMostOpen),
               "flatten the files");
    return nullptr;
  }
  const std::optional<std::string> text = files_.read(path);
  if (!text) {
    out_.error(place, pointer, fmt::format("cannot read \"{}\"", path),
               "check the name and that the file exists");
    return nullptr;
  }
  const std::size_t before = out_.error_count();
  File file;
  file.document = parse_json(*text, path, out_);
  if (out_.error_count() != before) {
    file.document = {};  // told once, however often the file is used
  } else {
    open_.push_back(path);
    resolve(file.document, field, {});  // the whole file may be a "use"
    open_.pop_back();
  }
  measure(file.document, 1, file.values, file.depth);
  return &resolved_.emplace(path, std::move(file)).first->second;
}

Loader::Target Loader::locate(std::string_view field, const std::string& reference, Place place,
                              const std::string& pointer) {
  if (is_path(reference)) {
    const bool absolute = reference.starts_with('/') || open_.empty();
    return {plain_path(absolute ? reference : folder_of(open_.back()) + reference), true};
  }
  const auto& kinds = component_kinds(field);
  std::vector<std::string> names;
  for (const std::string_view kind : kinds) {
    if (const auto path = files_.find(kind, reference)) return {*path, true};
    for (std::string& name : files_.names(kind)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  const std::string hint = did_you_mean(reference, names);
  out_.error(
      place, pointer,
      fmt::format("there is no {} named \"{}\"{}",
                  kinds.empty() || kinds.size() > 2 ? "component" : kinds.front(), reference, hint),
      kinds.empty() ? "this key does not take a component" : "see `weft list`");
  return {};
}

void Loader::include(Json& value, std::string_view field, const std::string& reference, Place place,
                     const std::string& pointer) {
  const Target target = locate(field, reference, place, pointer);
  if (!target.found) {
    value = Json::object();
    value.place = place;
    return;
  }
  const File* file = load(target.path, field, place, pointer);
  if (file != nullptr && values_ + file->values > most_values_) {
    out_.error(place, pointer, fmt::format("included files grow beyond {} values", most_values_),
               "include less");
    file = nullptr;
  } else if (file != nullptr && file->depth > kMostDepth) {
    out_.error(place, pointer, fmt::format("included files nest deeper than {} levels", kMostDepth),
               "flatten the files");
    file = nullptr;
  }
  if (file == nullptr || file->document.kind == Json::Kind::null) {
    value = Json::object();
    value.place = place;
    return;
  }
  values_ += file->values;
  value = file->document;
}

void Loader::resolve(Json& value, std::string_view field, const std::string& pointer) {
  const bool component = !component_kinds(field).empty();
  if (value.is_string()) {
    if (component) include(value, field, value.text, value.place, pointer);
    return;
  }
  if (const Json* use = value.find("use"); use != nullptr) {
    const Json* kind = value.find("kind");
    const bool patch = kind != nullptr && kind->is_string() && kind->text == "patch";
    const Json sources =
        patch && value.find("sources") != nullptr ? *value.find("sources") : Json::object();
    for (const JsonMember& member : value.members) {
      if (member.key == "use" || member.key == "set") continue;
      if (patch && std::ranges::find(kPatchKeys, member.key) != std::end(kPatchKeys)) continue;
      out_.error(member.place, child(pointer, member.key), "only \"set\" may stand beside \"use\"",
                 fmt::format("write \"set\": {{\"/{}\": ...}}", member.key));
    }
    if (!use->is_string()) {
      out_.error(use->place, child(pointer, "use"), "the name of a component is needed");
      value = Json::object();
      return;
    }
    const Json set = value.find("set") != nullptr ? *value.find("set") : Json::object();
    const std::string reference = use->text;
    const Place place = use->place;
    include(value, patch && field.empty() ? "fabric" : field, reference, place,
            child(pointer, "use"));
    if (!set.is_object()) {
      out_.error(set.place, child(pointer, "set"), "an object of pointers and values is needed",
                 R"(write "set": {"/servers": 16})");
      return;
    }
    for (const JsonMember& member : set.members) {
      Json changed = member.value;
      changed.place = member.value.place;
      this->set(value, member.key, std::move(changed));
    }
    if (patch && value.is_object() && sources.is_object()) add_sources(value, sources);
    return;
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    resolve(value.items[i], value.items[i].is_string() ? std::string_view{} : field,
            fmt::format("{}/{}", pointer, i));
  }
  for (JsonMember& member : value.members) {
    if (member.key == "sources") continue;
    resolve(member.value, member.key, child(pointer, member.key));
  }
}

void Loader::set(Json& document, const std::string& pointer, Json value) {
  const Place place = value.place;
  const auto path = parse_pointer(pointer);
  if (!path || path->empty()) {
    out_.error(place, pointer, "not a JSON pointer to a value",
               "start with \"/\", e.g. \"/network/oversubscription\"");
    return;
  }
  if (path->size() > static_cast<std::size_t>(Json::kMostDepth)) {
    out_.error(place, pointer.substr(0, 80) + "...",
               fmt::format("a pointer of more than {} keys", Json::kMostDepth),
               "flatten the document");
    return;
  }
  Json* at = &document;
  std::string walked;
  for (std::size_t i = 0; i < path->size(); ++i) {
    const std::string& key = (*path)[i];
    const bool last = i + 1 == path->size();
    Json* next = nullptr;
    if (at->is_array()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      const bool padded = key.size() > 1 && key.front() == '0';  // RFC 6901: one name per item
      if (error != std::errc{} || end != key.data() + key.size() || padded ||
          index >= at->items.size()) {
        out_.error(place, pointer,
                   fmt::format("{} has {} items, there is no item \"{}\"",
                               walked.empty() ? "/" : walked, at->items.size(), key),
                   at->items.empty()
                       ? "nothing can be set there"
                       : fmt::format("items count from 0 to {}", at->items.size() - 1));
        return;
      }
      next = &at->items[index];
    } else if (at->is_object()) {
      next = at->find(key);
      if (next == nullptr && last) {
        next = &at->set(key, Json{});
        at->members.back().place = place;  // of the key that is not known, where it is not
      }
    }
    if (next == nullptr) {
      std::vector<std::string> names;
      for (const JsonMember& member : at->members) names.push_back(member.key);
      const std::string hint = did_you_mean(key, names);
      out_.error(
          place, pointer,
          fmt::format("{} has no \"{}\"{}", walked.empty() ? "the document" : walked, key, hint),
          names.empty() ? "nothing below it can be set"
                        : "it has: " + short_list(std::move(names)));
      return;
    }
    at = next;
    walked = child(walked, key);
  }
  *at = std::move(value);
  resolve(*at, path->back(), pointer);
  if (at->is_object() || at->is_array()) return;
  at->place = place;
}

namespace {

bool has_unit(const std::string& text) {
  return parse_time(text) || parse_bytes(text) || parse_bandwidth(text) || parse_flop_rate(text) ||
         parse_power(text) || parse_frequency(text) || parse_rate(text);
}

// A `sources` around a value, and the value's pointer as it counts.
struct Around {
  const Json* sources;
  std::string pointer;
};

// The tag of a value: of the nearest `sources` when both were written in one file, else of a patch around it that names this very
// value.
std::string_view tag_of(const Json& json, const std::vector<Around>& around) {
  if (around.empty()) return {};
  const Around& nearest = around.back();
  const JsonMember* best = nullptr;
  for (const JsonMember& member : nearest.sources->members) {
    const bool covers =
        nearest.pointer.starts_with(member.key) &&
        (nearest.pointer.size() == member.key.size() || nearest.pointer[member.key.size()] == '/');
    if (covers && member.place.file == json.place.file &&
        (best == nullptr || member.key.size() > best->key.size()))
      best = &member;
  }
  for (auto outer = around.rbegin(); best == nullptr && outer != around.rend(); ++outer) {
    for (const JsonMember& member : outer->sources->members)
      if (member.key == outer->pointer && member.place.file == json.place.file) best = &member;
  }
  return best != nullptr ? std::string_view(best->value.text) : std::string_view{};
}

void count(const Json& json, std::vector<Around>& around, Evidence& out) {
  if (json.is_string()) {
    if (!has_unit(json.text)) return;
    const std::string_view tag = tag_of(json, around);
    if (tag.starts_with("measured"))
      ++out.measured;
    else if (tag.starts_with("datasheet"))
      ++out.datasheet;
    else
      ++out.assumed;
    return;
  }
  const auto inside = [&](std::string_view key, const Json& value) {
    std::vector<std::size_t> lengths;
    for (Around& one : around) {
      lengths.push_back(one.pointer.size());
      one.pointer = child(one.pointer, key);
    }
    count(value, around, out);
    for (std::size_t i = 0; i < lengths.size(); ++i) around[i].pointer.resize(lengths[i]);
  };
  const Json* own = json.find("sources");
  const bool opens = own != nullptr && own->is_object();
  if (opens) around.push_back({own, {}});
  for (std::size_t i = 0; i < json.items.size(); ++i) inside(std::to_string(i), json.items[i]);
  for (const JsonMember& member : json.members) {
    if (!opens || (member.key != "sources" && member.key != "summary"))
      inside(member.key, member.value);
  }
  if (opens) around.pop_back();
}

}  // namespace

Evidence count_evidence(const Json& document) {
  Evidence out;
  std::vector<Around> around;
  count(document, around, out);
  return out;
}

}  // namespace weft
