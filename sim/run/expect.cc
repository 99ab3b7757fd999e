// SPDX-License-Identifier: Apache-2.0
#include "sim/run/expect.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr int kMostClaims = 19;

bool is_claim(std::string_view text) {
  int number = 0;
  if (!text.starts_with('C')) return false;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number >= 1 &&
         number <= kMostClaims;
}

// "~1" is a slash and "~0" a tilde (RFC 6901).
std::string unescape(std::string_view key) {
  std::string out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool escaped =
        key[i] == '~' && i + 1 < key.size() && (key[i + 1] == '0' || key[i + 1] == '1');
    out += escaped ? (key[++i] == '1' ? '/' : '~') : key[i];
  }
  return out;
}

// The number at `pointer`; else `problem` says what is wrong.
std::optional<double> number_at(const Json& report, const std::string& pointer,
                                std::string& problem) {
  const Json* found = find_at(report, pointer);
  if (found == nullptr) {
    problem = fmt::format("the report has no {}", pointer);
  } else if (!found->is_number()) {
    problem = fmt::format("{} of the report is {}, not a number", pointer, found->kind_name());
  } else {
    return found->number;
  }
  return std::nullopt;
}

// The element of a list whose "id" or "name" is `key`.
const Json* called(const Json& list, std::string_view key) {
  for (const Json& item : list.items) {
    for (const char* member : {"id", "name"}) {
      const Json* name = item.find(member);
      if (name != nullptr && name->is_string() && name->text == key) return &item;
    }
  }
  return nullptr;
}

}  // namespace

const Json* find_at(const Json& document, std::string_view pointer) {
  const Json* at = &document;
  while (at != nullptr && !pointer.empty()) {
    if (!pointer.starts_with('/')) return nullptr;
    pointer.remove_prefix(1);
    const std::string key = unescape(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(std::min(pointer.size(), pointer.find('/')));
    if (at->is_array()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      const bool padded = key.size() > 1 && key.front() == '0';  // RFC 6901: one name per item
      const bool number = error == std::errc{} && end == key.data() + key.size() && !padded;
      at = number ? (index < at->items.size() ? &at->items[index] : nullptr) : called(*at, key);
    } else {
      at = at->find(key);
    }
  }
  return at;
}

void check_expectations(const std::vector<ExpectSpec>& expect, Diagnostics& out) {
  for (const ExpectSpec& e : expect) {
    const auto pointer_error = [&](const std::string& key, const std::string& text) {
      if (text.empty() || text.starts_with('/')) return;
      out.error(e.place, e.pointer + key, fmt::format("\"{}\" is not a JSON pointer", text),
                "e.g. \"/jobs/0/time_s\"");
    };
    pointer_error("/pointer", e.number);
    if (!e.min && !e.max && !e.disputed) {
      out.error(e.place, e.pointer, "there is no band: neither \"min\" nor \"max\"",
                "give at least one of them");
    }
    if (e.min && e.max && *e.min > *e.max) {
      out.error(e.place, e.pointer + "/max",
                fmt::format("\"max\" {} is below \"min\" {}", *e.max, *e.min), "swap them");
    }
    if (!e.claim.empty() && !is_claim(e.claim)) {
      out.error(e.place, e.pointer + "/claim", fmt::format("there is no claim \"{}\"", e.claim),
                fmt::format("C1 to C{}", kMostClaims));
    }
    if (e.disputed && e.claim.empty()) {
      out.error(e.place, e.pointer + "/disputed", "disputed, but no \"claim\" is named",
                "add e.g. \"claim\": \"C1\"");
    }
    if (!e.against) continue;
    if (e.against->set.empty() && e.against->number.empty()) {
      out.error(e.against->place, e.pointer + "/against", "nothing to compare with",
                "give \"set\", \"pointer\" or both");
    }
    pointer_error("/against/pointer", e.against->number);
    for (const auto& [key, value] : e.against->set) {
      if (!key.starts_with('/')) {
        out.error(value.place, e.pointer + "/against/set",
                  fmt::format("\"{}\" is not a JSON pointer", key),
                  "pointers into the scenario start with \"/\", e.g. \"/fabric/servers\"");
      }
    }
  }
}

std::vector<Judgement> judge(const std::vector<ExpectSpec>& expect, const Json& report,
                             const RunChanged& run) {
  std::map<std::string, Json> reports;  // by the text of the changes
  const auto changed = [&](const std::map<std::string, Json>& set) -> const Json& {
    const std::string key = to_text(write_config(set), 0);
    const auto found = reports.find(key);
    return found != reports.end() ? found->second : reports.emplace(key, run(set)).first->second;
  };
  std::vector<Judgement> out;
  for (const ExpectSpec& e : expect) {
    Judgement& judgement = out.emplace_back();
    judgement.expected = &e;
    judgement.value = number_at(report, e.number, judgement.problem);
    if (judgement.value && e.against) {
      const Json& other = e.against->set.empty() ? report : changed(e.against->set);
      const std::string& pointer = e.against->number.empty() ? e.number : e.against->number;
      const std::optional<double> base = number_at(other, pointer, judgement.problem);
      if (base && *base == 0) judgement.problem = fmt::format("{} is 0 there: no ratio", pointer);
      judgement.value = base && *base != 0 ? std::optional(*judgement.value / *base) : std::nullopt;
    }
    if (!judgement.value) continue;
    judgement.met = e.disputed || ((!e.min || *judgement.value >= *e.min) &&
                                   (!e.max || *judgement.value <= *e.max));
  }
  return out;
}

std::string band_text(const ExpectSpec& expected) {
  if (expected.min && expected.max)
    return fmt::format("{:g} to {:g}", *expected.min, *expected.max);
  if (expected.min) return fmt::format("at least {:g}", *expected.min);
  return expected.max ? fmt::format("at most {:g}", *expected.max) : std::string{};
}

}  // namespace weft
