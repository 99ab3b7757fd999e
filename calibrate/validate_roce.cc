// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_roce.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "calibrate/validate_table.hpp"
#include "sim/core/text.hpp"
#include "sim/run/expect.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostRows = 1000;  // each is a run

class RoceReader {
 public:
  RoceReader(const Json& json, const std::string& pointer, ValidationRecord& record,
             Diagnostics& out)
      : json_(json), pointer_(pointer), record_(record), out_(out) {}

  bool read() {
    const std::size_t before = out_.error_count();
    const Json* unit = json_.find("unit");
    if (unit == nullptr) {
      config_detail::missing_key(json_, pointer_, "unit", "of what was measured", out_);
    } else if (!unit->is_string() || unit->text.empty()) {
      config_detail::wrong_kind(*unit, at("unit"), "a string", out_);
    } else {
      record_.roce.unit = unit->text;
    }
    if (json_.find("rows") != nullptr)
      read_table();
    else
      read_value();
    return out_.error_count() == before;
  }

 private:
  std::string at(std::string_view key) const { return config_detail::child(pointer_, key); }

  void read_value() {
    const Json* value = json_.find("value");
    if (value == nullptr) {
      out_.error(json_.place, pointer_, "nothing to compare with",
                 "give value, or columns and rows");
    } else {
      measured(*value, at("value"), {});
    }
  }

  void measured(const Json& cell, const std::string& here, CaseRow row) {
    if (cell.kind == Json::Kind::null) {
      ++record_.missing;
    } else if (!cell.is_number() || !(cell.number > 0)) {
      out_.error(cell.place, here, "not a number above 0", "null stands for a missing one");
    } else {
      row.measured = cell.number;
      record_.rows.push_back(std::move(row));
    }
  }

  void read_table() {
    const auto table = read_record_table(json_, pointer_, kMostRows, out_);
    if (!table) return;
    const std::vector<std::string>& names = table->names;
    const std::string& wanted = record_.roce.column;
    const auto predicted = find_column(names, {wanted});
    if (!predicted || wanted.starts_with('/'))
      return lacks_column(*table, pointer_, wanted, "which column is predicted?", out_);
    each_row(*table, pointer_, out_, [&](const Json& row, const std::string& here, std::size_t i) {
      CaseRow out;
      out.set = Json::object();
      for (std::size_t c = 0; c < names.size(); ++c) {
        const Json& cell = row.items[c];
        if (names[c].starts_with('/')) {
          out.set.set(names[c], cell);
        } else if (c != *predicted && out.label.empty()) {
          out.label = cell.is_string() ? cell.text : to_text(cell, 0) + " " + names[c];
        }
      }
      if (out.label.empty()) out.label = fmt::format("row {}", i + 1);
      measured(row.items[*predicted], config_detail::child(here, *predicted), std::move(out));
    });
  }

  const Json& json_;
  const std::string& pointer_;
  ValidationRecord& record_;
  Diagnostics& out_;
};

const Json& find_in(const Json& report, const std::string& pointer) {
  const Json* found = find_at(report, pointer);
  if (found == nullptr) throw InputError(fmt::format("the report has no {}", pointer));
  return *found;
}

double number_of(const Json& value, const std::string& pointer) {
  if (value.is_number()) return value.number;
  throw InputError(fmt::format("{} of the report is {}, not a number", pointer, value.kind_name()));
}

double predicted_of(const RoceCase& ask, const Json& report) {
  const Json& found = find_in(report, ask.quantity);
  double value = 0;
  if (found.is_array()) {
    const std::size_t from = ask.windows.empty() ? 0 : static_cast<std::size_t>(ask.windows[0]);
    const std::size_t until =
        ask.windows.empty() ? found.items.size() : static_cast<std::size_t>(ask.windows[1]);
    if (until > found.items.size() || from >= until) {
      throw InputError(fmt::format("windows {} to {} are wanted, {} has {}", from, until,
                                   ask.quantity, found.items.size()));
    }
    std::vector<double> values;
    for (std::size_t i = from; i < until; ++i)
      values.push_back(number_of(found.items[i], ask.quantity));
    value = ask.take == Take::most ? *std::ranges::max_element(values)
                                   : std::accumulate(values.begin(), values.end(), 0.0) /
                                         static_cast<double>(values.size());
  } else {
    value = number_of(found, ask.quantity);
  }
  if (!ask.per.empty()) {
    const double per = number_of(find_in(report, ask.per), ask.per);
    if (per == 0) throw InputError(fmt::format("{} is 0, nothing can be divided by it", ask.per));
    value /= per;
  }
  return value * ask.scale;
}

}  // namespace

void read_roce_case(const Json& ask, const std::string& pointer, RoceCase& out,
                    Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.error_count();
  read_config(ask, pointer, out, diagnostics);
  if (diagnostics.error_count() != before) return;
  const auto at = [&](const char* key) { return config_detail::child(pointer, key); };
  if (!out.scenario.is_object() && !out.scenario.is_string())
    config_detail::wrong_kind(out.scenario, at("scenario"), "a scenario or a path", diagnostics);
  if (out.set.kind != Json::Kind::null && !out.set.is_object())
    config_detail::wrong_kind(out.set, at("set"), "an object", diagnostics);
  for (const auto& [key, text] : {std::pair{"quantity", &out.quantity}, {"per", &out.per}}) {
    if (text->empty() || text->starts_with('/')) continue;
    diagnostics.error(ask.find(key)->place, at(key),
                      fmt::format("\"{}\" is not a JSON pointer", *text),
                      "e.g. \"/links/near:far/utilisation\"");
  }
  if (out.windows.empty()) return;
  if (out.windows.size() != 2 || out.windows[0] < 0 || out.windows[0] >= out.windows[1]) {
    diagnostics.error(ask.find("windows")->place, at("windows"),
                      "windows are the first and the one behind the last", "e.g. [3, 10]");
  }
}

bool read_roce_rows(const Json& json, const std::string& pointer, ValidationRecord& record,
                    Diagnostics& diagnostics) {
  return RoceReader(json, pointer, record, diagnostics).read();
}

RecordResult predict_roce(const ValidationRecord& record, const ValidationContext& context) {
  RecordResult out;
  out.record = &record;
  out.unit = record.roce.unit;
  try {
    if (!context.report) throw InputError("scenarios cannot be run here");
    for (const CaseRow& row : record.rows) {
      Json changes = Json::object();
      for (const Json* set : {&record.roce.set, &row.set}) {
        for (const JsonMember& member : set->members) changes.set(member.key, member.value);
      }
      RowResult& result = out.rows.emplace_back();
      result.id = row.label.empty() ? record.id : record.id + "@" + row.label;
      result.measured = row.measured;
      result.predicted = predicted_of(record.roce, context.report(record.roce.scenario, changes));
      result.error = result.predicted / result.measured - 1;
    }
  } catch (const InputError& problem) {
    out.failure = problem.what();
    out.rows.clear();
  }
  return out;
}

}  // namespace weft
