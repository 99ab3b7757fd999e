// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_case.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "calibrate/validate_roce.hpp"
#include "calibrate/validate_rows.hpp"
#include "calibrate/validate_train_read.hpp"
#include "models/nccl/library.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

const std::vector<std::string> kFileKeys{
    "weft",    "file", "area",    "note",         "n_records", "sets",  "name",
    "summary", "kind", "records", "out_of_reach", "published", "ratios"};
// Keys of a record that are read; others are for people, but one that looks like these is a mistake.
const std::vector<std::string> kRecordKeys{
    "id",       "set",      "weft",          "degraded",
    "held_out", "columns",  "rows",          "value",
    "unit",     "measured", "source",        "confidence",
    "note",     "reason",   "message_bytes", "matrix_row_src_col_dst"};

class RecordReader {
 public:
  RecordReader(const Json& json, std::string pointer, Diagnostics& out)
      : json_(json), pointer_(std::move(pointer)), out_(out) {}

  std::optional<ValidationRecord> read() {
    if (!json_.is_object()) {
      config_detail::wrong_kind(json_, pointer_, "an object", out_);
      return std::nullopt;
    }
    refuse_near_misses();
    record_.place = json_.place;
    text("id", record_.id, true);
    text("set", record_.set, false);
    if (record_.set.empty()) record_.set = "other";
    flag("degraded", record_.degraded);
    flag("held_out", record_.held_out);
    for (const auto& [key, field] : {std::pair{"measured", &record_.measured},
                                     {"confidence", &record_.confidence},
                                     {"note", &record_.note},
                                     {"reason", &record_.reason}}) {
      if (const Json* value = json_.find(key); value != nullptr && value->is_string())
        *field = value->text;
    }
    read_source();
    if (!read_case()) return std::nullopt;
    const auto read_table = record_.kind == CaseKind::train  ? read_train_rows
                            : record_.kind == CaseKind::roce ? read_roce_rows
                                                             : read_rows;
    if (!read_table(json_, pointer_, record_, out_)) return std::nullopt;
    return std::move(record_);
  }

 private:
  std::string at(std::string_view key) const { return config_detail::child(pointer_, key); }

  void refuse_near_misses() {
    for (const JsonMember& member : json_.members) {
      if (std::ranges::find(kRecordKeys, member.key) != kRecordKeys.end()) continue;
      // One slip only: the words of others' records may well resemble ours.
      for (const std::string& known : kRecordKeys) {
        if (known.size() < 5 || edit_distance(member.key, known) != 1) continue;
        out_.error(member.place, at(member.key),
                   fmt::format("unknown key, did you mean \"{}\"?", known),
                   "keys for people may have any name that is not one letter off");
      }
    }
  }

  void text(std::string_view key, std::string& field, bool needed) {
    const Json* value = json_.find(key);
    if (value == nullptr) {
      if (needed) config_detail::missing_key(json_, pointer_, key, "names the record", out_);
    } else if (!value->is_string() || value->text.empty()) {
      config_detail::wrong_kind(*value, at(key), "a string", out_);
    } else if (std::ranges::any_of(value->text, [](char c) { return c >= 0 && c < ' '; })) {
      out_.error(value->place, at(key), "a name with control characters", "one line of plain text");
    } else {
      field = value->text;
    }
  }

  void flag(std::string_view key, bool& field) {
    if (const Json* value = json_.find(key)) config_detail::read(*value, at(key), field, out_);
  }

  void read_source() {
    const Json* source = json_.find("source");
    if (source == nullptr) return;
    if (source->is_string()) record_.source = source->text;
    for (const char* key : {"title", "url"}) {
      const Json* value = source->find(key);
      if (value == nullptr || !value->is_string()) continue;
      record_.source += (record_.source.empty() ? "" : ", ") + value->text;
    }
  }

  bool read_case() {
    const Json* ask = json_.find("weft");
    if (ask == nullptr) {
      config_detail::missing_key(json_, pointer_, "weft", "how to reproduce the record", out_);
      return false;
    }
    const std::string here = at("weft");
    const Json* kind = ask->find("kind");
    const std::string name = kind != nullptr && kind->is_string() ? kind->text : std::string{};
    const std::size_t before = out_.error_count();
    if (name == "nccl") {
      record_.kind = CaseKind::nccl;
      read_config(*ask, here, record_.nccl, out_);
      check_nccl(*ask, here);
    } else if (name == "p2p") {
      record_.kind = CaseKind::p2p;
      read_config(*ask, here, record_.p2p, out_);
      check_p2p(*ask, here);
    } else if (name == "train") {
      record_.kind = CaseKind::train;
      read_train_case(*ask, here, record_.train, out_);
    } else if (name == "roce") {
      record_.kind = CaseKind::roce;
      read_roce_case(*ask, here, record_.roce, out_);
    } else if (name == "moe") {
      out_.error(kind->place, config_detail::child(here, "kind"),
                 fmt::format("not yet: cases of kind \"{}\"", name),
                 "leave the record out until then");
    } else {
      out_.error(kind != nullptr ? kind->place : ask->place, config_detail::child(here, "kind"),
                 name.empty() ? std::string("a case needs its kind")
                              : fmt::format("\"{}\" is not a kind of case{}", name,
                                            did_you_mean(name, {"nccl", "p2p", "train", "roce"})),
                 "one of nccl, p2p, train, roce");
    }
    return out_.error_count() == before;
  }

  void check_set(const Json& set, const std::string& here) {
    if (set.kind == Json::Kind::null || set.is_object()) return;
    config_detail::wrong_kind(set, config_detail::child(here, "set"), "an object", out_);
  }

  void check_nccl(const Json& ask, const std::string& here) {
    const NcclCase& c = record_.nccl;
    check_set(c.set, here);
    if (!c.nccl.empty() && !parse_nccl_version(c.nccl)) {
      out_.error(ask.find("nccl")->place, config_detail::child(here, "nccl"),
                 fmt::format("\"{}\" is not a release of NCCL from 2.5 to 2.30", c.nccl),
                 "e.g. \"2.18.3\"");
    }
    check_variables(ask, here);
    if (c.quantity && (*c.quantity == Quantity::bandwidth || *c.quantity == Quantity::latency))
      wrong_quantity(ask, here, "time, busbw, algbw");
    if (!c.gpus.empty() && c.gpus_per_node &&
        static_cast<std::size_t>(*c.gpus_per_node) != c.gpus.size()) {
      out_.error(ask.find("gpus")->place, config_detail::child(here, "gpus"),
                 fmt::format("{} GPUs are listed and gpus_per_node is {}", c.gpus.size(),
                             *c.gpus_per_node));
    }
  }

  void check_variables(const Json& ask, const std::string& here) {
    const NcclCase& c = record_.nccl;
    NcclSetup setup;
    setup.environment.variables = c.env;
    setup.algorithm = c.algorithm;
    setup.protocol = c.protocol;
    for (const NcclVariableProblem& problem : check_nccl_environment(setup.environment)) {
      const Place place = ask.find("env")->find(problem.name)->place;
      const std::string at = config_detail::child(here + "/env", problem.name);
      if (problem.error)
        out_.error(place, at, problem.fact, problem.cure);
      else
        out_.warning(place, at, problem.fact, problem.cure);
    }
    for (const NcclVariableProblem& problem : check_nccl_overrules(setup)) {
      out_.warning(ask.find(problem.name)->place, config_detail::child(here, problem.name),
                   problem.fact, problem.cure);
    }
  }

  void check_p2p(const Json& ask, const std::string& here) {
    const P2pCase& c = record_.p2p;
    check_set(c.set, here);
    if (c.quantity != Quantity::bandwidth && c.quantity != Quantity::latency)
      wrong_quantity(ask, here, "bandwidth, latency");
    if (c.quantity == Quantity::latency && c.bidirectional) {
      out_.error(ask.find("bidirectional")->place, config_detail::child(here, "bidirectional"),
                 "a latency has one direction");
    }
    if (c.via.kind != Json::Kind::null) {
      if (c.via.is_array()) {
        read_config(c.via, config_detail::child(here, "via"), record_.via, out_);
      } else {
        Via via{};
        read_config(c.via, config_detail::child(here, "via"), via, out_);
        record_.via = {via};
      }
    }
  }

  void wrong_quantity(const Json& ask, const std::string& here, std::string_view choices) {
    const Json* given = ask.find("quantity");
    out_.error(given != nullptr ? given->place : ask.place, config_detail::child(here, "quantity"),
               "not a quantity of this kind of case", fmt::format("one of {}", choices));
  }

  const Json& json_;
  std::string pointer_;
  Diagnostics& out_;
  ValidationRecord record_;
};

}  // namespace

bool is_validation_file(const Json& document) {
  if (const Json* kind = document.find("kind"))
    return kind->is_string() && kind->text == "validation";
  return document.find("records") != nullptr || document.find("sets") != nullptr ||
         document.find("out_of_reach") != nullptr || document.find("published") != nullptr ||
         document.find("ratios") != nullptr;
}

void read_validation_file(const Json& document, Dataset& dataset, Diagnostics& diagnostics) {
  if (!document.is_object())
    return config_detail::wrong_kind(document, "", "an object", diagnostics);
  config_detail::unknown_keys(document, "", kFileKeys, diagnostics);
  if (const Json* kind = document.find("kind"); kind != nullptr && !is_validation_file(document))
    config_detail::bad_choice(*kind, "/kind", {"validation"}, diagnostics);
  if (const Json* weft = document.find("weft")) {
    SchemaVersion version;
    read_config(*weft, "/weft", version, diagnostics);
  }
  if (const Json* sets = document.find("sets")) {
    std::vector<SetSpec> specs;
    read_config(*sets, "/sets", specs, diagnostics);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (std::ranges::find(dataset.sets, specs[i].name, &SetSpec::name) == dataset.sets.end() &&
          std::ranges::count(specs.begin(), specs.begin() + static_cast<std::ptrdiff_t>(i),
                             specs[i].name, &SetSpec::name) == 0)
        continue;
      diagnostics.error(sets->items[i].place, config_detail::child("/sets", i),
                        fmt::format("there is another set \"{}\"", specs[i].name),
                        "a set has one place for its limits");
    }
    dataset.sets.insert(dataset.sets.end(), specs.begin(), specs.end());
  }
  if (const Json* published = document.find("published")) {
    std::vector<PublishedError> entries;
    read_config(*published, "/published", entries, diagnostics);
    dataset.published.insert(dataset.published.end(), entries.begin(), entries.end());
  }
  if (const Json* ratios = document.find("ratios")) {
    std::vector<RatioSpec> entries;
    read_config(*ratios, "/ratios", entries, diagnostics);
    dataset.ratios.insert(dataset.ratios.end(), entries.begin(), entries.end());
  }
  if (const Json* out_of_reach = document.find("out_of_reach")) {
    std::vector<OutOfReach> entries;
    read_config(*out_of_reach, "/out_of_reach", entries, diagnostics);
    dataset.out_of_reach.insert(dataset.out_of_reach.end(), entries.begin(), entries.end());
  }
  const Json* records = document.find("records");
  if (records == nullptr) {
    if (document.find("sets") == nullptr && document.find("out_of_reach") == nullptr &&
        document.find("published") == nullptr && document.find("ratios") == nullptr)
      config_detail::missing_key(document, "", "records", "what was measured", diagnostics);
    return;
  }
  if (!records->is_array())
    return config_detail::wrong_kind(*records, "/records", "an array", diagnostics);
  for (std::size_t i = 0; i < records->items.size(); ++i) {
    RecordReader reader(records->items[i], config_detail::child("/records", i), diagnostics);
    auto record = reader.read();
    if (!record) continue;
    const auto same = std::ranges::find(dataset.records, record->id, &ValidationRecord::id);
    if (same != dataset.records.end()) {
      diagnostics.error(record->place, config_detail::child("/records", i) + "/id",
                        fmt::format("there is another record \"{}\"", record->id),
                        "ids name rows in the answer and must differ");
      continue;
    }
    dataset.records.push_back(std::move(*record));
  }
}

}  // namespace weft
