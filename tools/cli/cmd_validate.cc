// SPDX-License-Identifier: Apache-2.0
// weft validate: measured records of a folder against what weft predicts for them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/validate.hpp"
#include "calibrate/validate_page.hpp"
#include "models/catalog.hpp"
#include "sim/core/loader.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/output.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWorstRows = 12;

// Fabrics by reference, changes and size; the same one is built once.
class FabricCache {
 public:
  std::shared_ptr<const Fabric> get(const std::string& reference, const Json& changes,
                                    std::int64_t servers) {
    const std::string key = fmt::format("{} {} {}", reference, to_text(changes, 0), servers);
    const std::lock_guard lock(mutex_);
    auto& entry = fabrics_[key];
    if (!entry) entry = std::make_shared<const Fabric>(load(reference, changes, servers));
    return entry;
  }

 private:
  static Fabric load(const std::string& reference, const Json& changes, std::int64_t servers) {
    std::vector<std::string> sets;
    bool sized = servers <= 1;
    for (const JsonMember& member : changes.members) {
      sets.push_back(member.key + "=" + to_text(member.value, 0));
      sized = sized || member.key == "/servers";
    }
    if (!sized) sets.push_back(fmt::format("/servers={}", servers));
    Diagnostics diagnostics;
    return load_fabric(reference, sets, diagnostics).fabric;
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Fabric>> fabrics_;
};

std::string percent(double value) { return fmt::format("{:.1f} %", 100 * value); }
std::string signed_percent(double value) { return fmt::format("{:+.1f} %", 100 * value); }

class Validate final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("--dataset", folder_,
                   "a folder of validation files, or one file; default: the shipped ones");
    app.add_option("--only", only_, "a set or record, * and ? match anything");
    app.add_flag("--check-limits", check_limits_,
                 "exit code 4 when a set misses the limits of its dataset");
    app.add_option(
        "--page", page_,
        "also write this markdown page, with plots in a folder of its name and hand-written "
        "text from NAME.notes.md beside it");
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    Diagnostics diagnostics;
    Dataset dataset = load(diagnostics);
    diagnostics.throw_if_errors();
    choose(dataset, diagnostics);
    diagnostics.throw_if_errors();
    FabricCache fabrics;
    Progress progress(io.err);
    std::size_t done = 0;
    ValidationContext context;
    context.fabric = [&](const std::string& reference, const Json& changes, std::int64_t servers) {
      return fabrics.get(reference, changes, servers);
    };
    context.progress = [&](const std::string& record) {
      progress.show(fmt::format("{} of {}: {}", ++done, dataset.records.size(), record));
    };
    context.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
    const ValidationResult result = validate(dataset, context);
    progress.show("");
    io.out = json_ ? to_text(to_json(result)) + "\n" : text(result);
    if (!page_.empty()) write_page(dataset, result);
    bool failed = false;
    for (const RecordResult& record : result.records) {
      if (record.failure.empty()) continue;
      failed = true;
      diagnostics.error(record.record->place, record.record->id,
                        "cannot be predicted: " + record.failure);
    }
    io.err << diagnostics.text();
    if (failed) return kBadInput;
    if (!check_limits_) return kOk;
    bool broken = false;
    for (const SetResult& set : result.sets) {
      for (const std::string& limit : set.broken_limits) {
        io.err << fmt::format("limit: {}: {}\n", set.name, limit);
        broken = true;
      }
    }
    for (const PublishedResult& entry : result.published) {
      if (entry.broken_limit.empty()) continue;
      io.err << fmt::format("limit: {}: {}\n", entry.spec->name, entry.broken_limit);
      broken = true;
    }
    return broken ? kLimit : kOk;
  }

 private:
  Dataset load(Diagnostics& diagnostics) const {
    const std::string folder = folder_.empty() ? default_folder() : folder_;
    const std::vector<std::string> paths = files_of(folder);
    Configs files(find_configs_root());
    Dataset dataset;
    for (const std::string& path : paths) {
      const auto text = files.read(path);
      if (!text) {
        diagnostics.error({}, path, "cannot be read");
        continue;
      }
      const std::size_t before = diagnostics.error_count();
      const Json document = parse_json(*text, path, diagnostics);
      if (diagnostics.error_count() == before) read_validation_file(document, dataset, diagnostics);
    }
    return dataset;
  }

  // A file, or all .json files of a folder in the order of their names.
  static std::vector<std::string> files_of(const std::string& place) {
    std::error_code error;
    if (fs::is_regular_file(place, error)) return {place};
    std::vector<std::string> out;
    for (fs::directory_iterator it(place, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".json") out.push_back(it->path().string());
    }
    if (error) {
      throw InputError(fmt::format("error: --dataset: cannot read the folder \"{}\": {}\n", place,
                                   error.message()));
    }
    if (out.empty())
      throw InputError(fmt::format("error: --dataset: no .json files in \"{}\"\n", place));
    std::ranges::sort(out);
    return out;
  }

  // Beside the catalogue: tests/validation of the source tree, or share/weft/validation of an installation.
  static std::string default_folder() {
    const fs::path root(find_configs_root());
    for (const fs::path& folder :
         {root.parent_path() / "validation", root.parent_path() / "tests" / "validation"}) {
      if (fs::is_directory(folder)) return folder.string();
    }
    throw Missing("the shipped validation records are not beside the catalogue; give --dataset");
  }

  void write_page(const Dataset& dataset, const ValidationResult& result) const {
    const fs::path path(page_);
    const fs::path folder = path.parent_path() / path.stem();
    Configs files(find_configs_root());
    const std::string notes =
        files.read((path.parent_path() / (path.stem().string() + ".notes.md")).string())
            .value_or("");
    const ValidationPage page = validation_page(dataset, result, notes, path.stem().string());
    std::vector<OutputFile> out{{page_, page.markdown, true}};
    for (const auto& [name, svg] : page.plots) out.push_back({(folder / name).string(), svg, true});
    write_files(out);
  }

  void choose(Dataset& dataset, Diagnostics& diagnostics) const {
    if (only_.empty()) return;
    std::vector<std::string> names;
    for (const ValidationRecord& record : dataset.records) {
      for (const std::string& name : {record.set, record.id}) {
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
    std::erase_if(dataset.records, [&](const ValidationRecord& record) {
      return !glob_match(only_, record.set) && !glob_match(only_, record.id);
    });
    if (!dataset.records.empty()) return;
    diagnostics.error({}, "--only",
                      fmt::format("no set or record \"{}\"{}", only_, did_you_mean(only_, names)),
                      "sets and records are listed by weft validate --json");
  }

  // Every key is there; null where no row says anything.
  static Json figures_json(const ErrorFigures& figures) {
    const auto of = [](std::size_t rows, double value) { return rows > 0 ? Json(value) : Json{}; };
    Json out = Json::object();
    out.set("rows", std::uint64_t{figures.rows});
    out.set("median_abs_rel_error", of(figures.rows, figures.median));
    out.set("p90_abs_rel_error", of(figures.rows, figures.p90));
    out.set("bias", of(figures.rows, figures.bias));
    out.set("rows_large", std::uint64_t{figures.rows_large});
    out.set("median_abs_rel_error_large", of(figures.rows_large, figures.median_large));
    out.set("bias_large", of(figures.rows_large, figures.bias_large));
    return out;
  }

  static Json case_json(const RecordResult& record, const RowResult& row) {
    Json out = Json::object();
    out.set("id", row.id);
    out.set("predicted", row.predicted);
    out.set("measured", row.measured);
    out.set("unit", record.unit);
    out.set("error", row.error);
    out.set("how", row.how);
    if (record.record->degraded) out.set("degraded", true);
    return out;
  }

  static Json to_json(const ValidationResult& result) {
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("all", figures_json(result.all));
    Json skipped = Json::object();
    skipped.set("too_coarse", std::uint64_t{result.too_coarse});
    skipped.set("outside", std::uint64_t{result.outside});
    skipped.set("missing", std::uint64_t{result.missing});
    out.set("skipped", std::move(skipped));
    Json& sets = out.set("sets", Json::array());
    for (const SetResult& set : result.sets) {
      Json entry = Json::object();
      entry.set("name", set.name);
      const Json figures = figures_json(set.figures);
      for (const JsonMember& member : figures.members) entry.set(member.key, member.value);
      Json broken = Json::array();
      for (const std::string& limit : set.broken_limits) broken.push(limit);
      entry.set("broken_limits", std::move(broken));
      Json& cases = entry.set("cases", Json::array());
      for (const RecordResult* record : set.records) {
        for (const RowResult& row : record->rows) cases.push(case_json(*record, row));
      }
      sets.push(std::move(entry));
    }
    Json& published = out.set("published", Json::array());
    for (const PublishedResult& entry : result.published) {
      Json item = Json::object();
      item.set("name", entry.spec->name);
      item.set("published", entry.spec->error);
      item.set("rows", std::uint64_t{entry.rows});
      item.set("geometric_mean", entry.rows > 0 ? Json(entry.geometric_mean) : Json{});
      item.set("geometric_ratio", entry.rows > 0 ? Json(entry.ratio) : Json{});
      item.set("broken_limit", entry.broken_limit.empty() ? Json{} : Json(entry.broken_limit));
      published.push(std::move(item));
    }
    Json& groups = out.set("groups", Json::array());
    for (const GroupResult& group : result.groups) {
      Json entry = Json::object();
      entry.set("by", group.by);
      entry.set("name", group.name);
      const Json figures = figures_json(group.figures);
      for (const JsonMember& member : figures.members) entry.set(member.key, member.value);
      groups.push(std::move(entry));
    }
    return out;
  }

  static std::vector<std::string> cells(std::string name, const ErrorFigures& figures) {
    std::vector<std::string> row{std::move(name), fmt::format("{}", figures.rows)};
    if (figures.rows == 0) {
      row.resize(7);
      return row;
    }
    row.push_back(percent(figures.median));
    row.push_back(percent(figures.p90));
    row.push_back(signed_percent(figures.bias));
    row.push_back(fmt::format("{}", figures.rows_large));
    row.push_back(figures.rows_large > 0 ? percent(figures.median_large) : "");
    return row;
  }

  static std::string text(const ValidationResult& result) {
    const std::vector<std::string> columns{"rows", "median", "p90", "bias", "large", "median"};
    const auto header = [&](const char* first) {
      std::vector<std::string> out{first};
      out.insert(out.end(), columns.begin(), columns.end());
      return out;
    };
    std::string out;
    Table sets(header("set"));
    for (const SetResult& set : result.sets) {
      auto row = cells(set.name, set.figures);
      sets.row(std::move(row));
    }
    sets.row(cells("all but degraded set-ups", result.all));
    out += sets.text() + "\n";
    if (!result.groups.empty()) {
      Table groups(header("nccl rows by"));
      for (const GroupResult& group : result.groups)
        groups.row(cells(group.by + ": " + group.name, group.figures));
      out += groups.text() + "\n";
    }
    out += worst(result);
    Table beside({"beside published errors", "rows", "published", "weft", "ratio"});
    for (const PublishedResult& entry : result.published) {
      if (entry.rows == 0) continue;
      beside.row({entry.spec->name, fmt::format("{}", entry.rows), percent(entry.spec->error),
                  percent(entry.geometric_mean), percent(entry.ratio)});
    }
    if (!beside.empty()) out += beside.text() + "\n";
    out += fmt::format(
        "An error is predicted / measured - 1. Large: 16 MiB and more. Not compared: {} rows "
        "printed "
        "with\ntoo few digits, {} below the size from which their case holds, {} without a "
        "value.\n",
        result.too_coarse, result.outside, result.missing);
    for (const SetResult& set : result.sets) {
      for (const std::string& limit : set.broken_limits)
        out += fmt::format("{}: {}\n", set.name, limit);
    }
    return out;
  }

  static std::string worst(const ValidationResult& result) {
    std::vector<std::pair<const RecordResult*, const RowResult*>> rows;
    for (const RecordResult& record : result.records) {
      if (record.record->degraded) continue;
      for (const RowResult& row : record.rows) rows.emplace_back(&record, &row);
    }
    // How many times too much or too little.
    std::ranges::stable_sort(rows, std::ranges::greater{}, [](const auto& row) {
      return std::abs(std::log(row.second->predicted / row.second->measured));
    });
    rows.resize(std::min(rows.size(), kWorstRows));
    Table table({"worst rows", "predicted", "measured", "unit", "error", "how"});
    for (const auto& [record, row] : rows) {
      table.row({row->id, fmt::format("{:.4g}", row->predicted),
                 fmt::format("{:.4g}", row->measured), record->unit, signed_percent(row->error),
                 row->how});
    }
    return table.empty() ? std::string{} : table.text() + "\n";
  }

  std::string folder_, only_, page_;
  bool check_limits_ = false, json_ = false;
};

}  // namespace

extern const Verb kValidate;
const Verb kValidate{"validate", "measured records against predictions", make_command<Validate>};

}  // namespace weft
