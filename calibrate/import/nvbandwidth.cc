// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/nvbandwidth.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "calibrate/import/copy_matrix.hpp"
#include "calibrate/log_facts.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Releases before 0.8 put the buffer of the GPU to GPU latency test into host memory.
bool is_before_0_8(std::string_view version) {
  if (version.starts_with("v")) version.remove_prefix(1);
  if (!version.starts_with("0.")) return false;
  version.remove_prefix(2);
  const auto minor = parse_whole(version.substr(0, version.find('.')));
  return minor && *minor < 8;
}

// One test as the tool reports it.
struct CopyTest {
  std::string name, description;
  CopyCells cells;
  std::optional<double> sum;  // of all cells
  Place place;
};

class NvbandwidthImport {
 public:
  NvbandwidthImport(const ImportOptions& options, const std::string& file, Imported& imported,
                    Diagnostics& out)
      : imported_(imported),
        out_(out),
        file_(file),
        measurement_(new_measurement(options.name.empty() ? "measurement" : options.name,
                                     "nvbandwidth", file)) {}

  void read_text(std::string_view text) {
    const std::uint32_t index = out_.add_file(file_);
    IgnoredLines ignored(imported_);
    for (const LogLine& line : clean_lines(text)) take_line(line, ignored);
    close_test();
    ignored.finish();
    if (measurement_.matrices.empty() && out_.ok()) {
      out_.error({index, 0, 0}, {}, "no measurements of nvbandwidth",
                 "a capture has lines such as \"Running device_to_device_memcpy_read_ce.\" and a "
                 "matrix below each");
    }
  }

  void read_json(std::string_view text) {
    json_ = true;
    const Json document = parse_json(text, file_, out_);
    if (!out_.ok()) return;
    const Json* root = document.find("nvbandwidth");
    const Json* tests = root != nullptr ? root->find("testcases") : nullptr;
    if (tests == nullptr || !tests->is_array()) {
      out_.error(
          document.place, {}, "this is no report of nvbandwidth",
          "it is the output of nvbandwidth --json, an object \"nvbandwidth\" with \"testcases\"");
      return;
    }
    for (const auto& [key, name] : kVersions) {
      const Json* value = root->find(key);
      if (value != nullptr && value->is_string()) keep_version(name, value->text);
      if (value != nullptr && value->kind == Json::Kind::integer)
        keep_version(name, fmt::format("{}", value->integer));
    }
    if (const Json* error = root->find("error"); error != nullptr && error->is_string())
      problem("the run failed: " + error->text);
    for (const Json& test : tests->items) take_json_test(test);
    if (measurement_.matrices.empty() && out_.ok())
      out_.error(tests->place, {}, "no measurements: no test has passed");
  }

  void finish() {
    write_facts();
    if (out_.ok()) imported_.measurement = write_measurement(measurement_);
  }

 private:
  static constexpr std::pair<std::string_view, std::string_view> kVersions[] = {
      {"CUDA Runtime Version", "cuda"},
      {"Driver Version", "driver"},
      {"version", "version"},
      {"nvbandwidth Version", "version"},
  };

  void keep_version(std::string_view name, const std::string& value) {
    if (name == "version") {
      measurement_.version = value;
    } else {
      measurement_.setup[std::string(name)] = value;
    }
  }
  void problem(const std::string& text) {
    imported_.note(Kind::warning, text);
    measurement_.problems.push_back(text);
  }

  // ---- text

  void take_line(const LogLine& line, IgnoredLines& ignored) {
    const std::string_view text = trimmed(line.text);
    if (table_.open() && table_.take_row(line, ignored)) {
      test_.cells = table_.cells();
      return;
    }
    if (text.find("Running") != std::string_view::npos) close_test();  // even when not readable
    if (line.damaged) return ignored.noise(line);
    if (const auto name = after(text, "Running ")) {
      if (!line.finished) return;
      test_.name = name->substr(0, name->find_first_of(". "));
      return;
    }
    if (test_.cells.empty() && !test_.description.empty() && table_.take_head(line)) return;
    if (has(text, "(row)") || has(text, "(column)")) return take_description(line, text, ignored);
    if (take_end(text, line.finished) || take_start(line, text)) return;
    ignored.noise(line);
  }

  void take_description(const LogLine& line, std::string_view text, IgnoredLines& ignored) {
    const std::string name = test_.name;
    close_test();  // a test with several matrices
    const bool host = has(name, "host");
    const bool whole = has(text, host ? "CPU(row)" : "GPU(row)") && has(text, " GPU(column)") &&
                       (has(text, " -> ") || has(text, " <- ") || has(text, " <-> "));
    if (!name.empty() && !whole) {
      return ignored.row(line, fmt::format("what a matrix of {} holds cannot be read", name));
    }
    test_.name = name;
    test_.description = text;
  }

  bool take_end(std::string_view text, bool finished) {
    if (const auto rest = after(text, "SUM ")) {
      take_sum(words_of(*rest), finished);
      return true;
    }
    const bool waived = text.starts_with("Waived") || text.starts_with("WAIVED");
    const bool failed = text.starts_with("Error") || text.starts_with("ERROR") ||
                        text.starts_with("[CU_") || text.starts_with("Not Found");
    if (waived && !test_.name.empty()) {
      skip(test_.name, waived_, "was waived by the tool");
      test_ = {};
    } else if (failed) {
      problem(fmt::format("{}: {}", test_.name.empty() ? "nvbandwidth" : test_.name, text));
      failed_.push(test_.name.empty() ? std::string(text) : test_.name);
      test_ = {};
    }
    constexpr std::string_view kKnown[] = {"COEFFICIENT_OF_VARIATION",
                                           "MIN ",
                                           "MAX ",
                                           "AVG ",
                                           "NOTE:",
                                           "Performance can vary",
                                           "Built from",
                                           "####",
                                           "Additional system-specific"};
    return waived || failed ||
           std::ranges::any_of(kKnown, [&](auto word) { return text.starts_with(word); });
  }

  // "SUM device_to_device_memcpy_read_ce 22126.64" ends a test and says whose matrix it was; tests with several matrices add
  // "_read1", "_total" and the like to the name.
  void take_sum(const std::vector<Word>& words, bool finished) {
    const auto sum = words.size() == 2 ? parse_printed(words[1].text) : std::nullopt;
    if (!sum || !finished) return;
    const std::string name = test_.name;
    constexpr std::string_view kParts[] = {"", "_read1", "_read2", "_write1", "_write2", "_total"};
    const bool same =
        !name.empty() && words[0].text.starts_with(name) &&
        std::ranges::find(kParts, words[0].text.substr(name.size())) != std::end(kParts);
    if (!same) {
      if (!test_.cells.empty())
        problem(
            fmt::format("a matrix below \"Running {}\" is of {}: not used", name, words[0].text));
      table_.close();
      test_ = {};
      return;
    }
    test_.sum = sum->value;
    close_test();
    if (words[0].text != name) test_.name = name;
  }

  bool take_start(const LogLine& line, std::string_view text) {
    for (const auto& [key, name] : kVersions) {
      const auto value = after(text, key);
      const auto rest = value ? after(*value, ":") : std::nullopt;
      if (!rest || !line.finished) continue;
      keep_version(name, std::string(*rest));
      return true;
    }
    if (text.starts_with("CUDA Driver Version")) return true;
    const auto device = after(text, "Device ");
    const std::size_t colon = device ? device->find(':') : std::string_view::npos;
    if (colon == std::string_view::npos || !line.finished) return false;
    const auto number = parse_whole(device->substr(0, colon));
    if (!number || *number < 0 || *number > 1'000'000) return false;
    MeasuredDevice out;
    out.rank = out.device = static_cast<int>(*number);
    std::string_view model = trimmed(device->substr(colon + 1));
    const std::size_t open = model.rfind('(');
    if (open != std::string_view::npos && model.ends_with(")")) {
      out.bus = model.substr(open + 1, model.size() - open - 2);
      model = trimmed(model.substr(0, open));
    }
    out.product = model;
    measurement_.devices.push_back(std::move(out));
    return true;
  }

  void close_test() {
    table_.close();
    if (!test_.cells.empty()) add(std::exchange(test_, {}));
    test_ = {};
  }

  // ---- JSON

  void take_json_test(const Json& json) {
    const auto text = [&](std::string_view key) {
      const Json* value = json.find(key);
      return value != nullptr && value->is_string() ? value->text : std::string{};
    };
    CopyTest test;
    test.place = json.place;
    test.name = text("name");
    test.description = text("bandwidth_description");
    const std::string status = text("status");
    if (status == "Waived") return skip(test.name, waived_, "was waived by the tool");
    if (status != "Passed") {
      problem(fmt::format("{}: {}", test.name, status.empty() ? "no status" : status));
      failed_.push(test.name);
      return;
    }
    const Json* matrix = json.find("bandwidth_matrix");
    if (matrix == nullptr || !matrix->is_array() || !json_cells(*matrix, test.cells)) {
      out_.error(json.place, {}, fmt::format("the matrix of {} is not whole", test.name),
                 "every row has the same number of cells, \"N/A\" or a number");
      return;
    }
    // A test of both directions appends its two streams and their sum to one matrix; the description is that of the sum.
    const std::size_t columns = test.cells.empty() ? 0 : test.cells.front().size();
    if (has(test.description, "Total") && test.cells.size() == 3 * columns) {
      test.cells.erase(test.cells.begin(),
                       test.cells.begin() + static_cast<std::ptrdiff_t>(2 * columns));
    }
    if (const Json* sum = json.find("sum"); sum != nullptr && sum->is_number())
      test.sum = sum->number;
    add(std::move(test));
  }

  static bool json_cells(const Json& matrix, CopyCells& out) {
    for (const Json& row : matrix.items) {
      auto& cells = out.emplace_back();
      for (const Json& cell : row.items) {
        if (!cell.is_string()) return false;
        const auto value = parse_printed(cell.text);
        if (cell.text != "N/A" && (!value || value->value < 0)) return false;
        cells.push_back(value ? std::optional<double>(value->value) : std::nullopt);
      }
      if (cells.empty() || cells.size() != out.front().size()) return false;
    }
    return !out.empty();
  }

  // ---- what a test means

  void skip(const std::string& name, Json& list, std::string_view why) {
    imported_.note(Kind::ignored, fmt::format("{} {}", name, why));
    list.push(name);
  }

  void add(CopyTest test) {
    if (test.name.empty() || test.name == "device_local_copy" || has(test.description, "local")) {
      imported_.note(Kind::ignored,
                     fmt::format("{}: it crosses no link", test.name.empty() ? "a matrix without "
                                                                               "a test name"
                                                                             : test.name));
      return;
    }
    const bool nanoseconds = has(test.description, "(ns)");
    if (!nanoseconds && !has(test.description, "(GB/s)")) {
      imported_.note(Kind::unknown, fmt::format("{}: its unit, so it was not used: \"{}\"",
                                                test.name, test.description));
      return;
    }
    if (!adds_up(test)) return;
    MeasuredMatrix matrix = describe(test);
    const bool totals = test.name.starts_with("all_to_one") || test.name.starts_with("one_to_all");
    const bool square = !totals && !has(test.description, "CPU(row)");
    if (square && test.cells.size() < test.cells.front().size())
      problem(fmt::format("{}: {} of {} rows", test.name, test.cells.size(),
                          test.cells.front().size()));
    for (std::size_t row = 0; row < test.cells.size(); ++row) {
      for (std::size_t column = 0; column < test.cells[row].size(); ++column) {
        const auto value = test.cells[row][column];
        if (!value || *value <= 0 || (square && row == column)) continue;
        MeasuredPair pair = ends_of(test, row, column);
        if (nanoseconds) {
          pair.latency = time_from_us(*value / 1e3);
        } else {
          pair.bandwidth = bandwidth_from_gbytes(matrix.halved ? *value / 2 : *value);
        }
        if (pair.latency || pair.bandwidth) matrix.pairs.push_back(std::move(pair));
      }
    }
    if (!matrix.pairs.empty()) measurement_.matrices.push_back(std::move(matrix));
  }

  // Whether the cells are those the tool added up. Rows of text carry their number, so that missing ones do no harm; in JSON a
  // missing cell shifts the others.
  bool adds_up(const CopyTest& test) {
    if (!test.sum) return true;
    double sum = 0, cells = 0;
    for (const auto& row : test.cells) {
      for (const auto& value : row) sum += value.value_or(0);
      cells += static_cast<double>(row.size());
    }
    if (std::abs(sum - *test.sum) <= 0.01 * cells + 1e-5 * sum) return true;
    const std::string text =
        fmt::format("{}: the cells add up to {:.2f}, the tool printed {:.2f}: some are missing",
                    test.name, sum, *test.sum);
    if (!json_) {
      problem(text);
      return true;
    }
    out_.error(test.place, {}, text, "capture the report again");
    return false;
  }

  MeasuredMatrix describe(const CopyTest& test) const {
    MeasuredMatrix out;
    out.name = test.name;
    out.description = test.description;
    const bool ce = test.name.ends_with("_ce"), sm = test.name.ends_with("_sm");
    out.method = ce ? CopyMethod::copy_engine : sm ? CopyMethod::sm : CopyMethod::unknown;
    const bool both = has(test.name, "bidirectional");
    const bool crowd = test.name.starts_with("all_to_") || has(test.name, "_to_all_");
    out.traffic = crowd ? CopyTraffic::crowded : both ? CopyTraffic::opposed : CopyTraffic::alone;
    const bool stream = has(test.description, "Read1") || has(test.description, "Read2") ||
                        has(test.description, "Write1") || has(test.description, "Write2");
    const bool sum_of_sm = both && sm && has(test.name, "device_to_device") && !stream;
    out.halved = has(test.description, "Total") || sum_of_sm;
    if (has(test.name, "host_device_latency"))
      out.definition = "pointer chase of an SM into host memory";
    if (has(test.name, "device_to_device_latency")) {
      out.definition = is_before_0_8(measurement_.version)
                           ? "pointer chase of an SM into host memory (before release 0.8)"
                           : "pointer chase of an SM into the memory of the other GPU";
    }
    return out;
  }

  // The arrow says which way the data go; "<->" has no way, so the name of the test decides.
  static MeasuredPair ends_of(const CopyTest& test, std::size_t row, std::size_t column) {
    const std::string gpu = fmt::format("gpu{}", column);
    if (test.name.starts_with("all_to_one")) return {"others", gpu, {}, {}};
    if (test.name.starts_with("one_to_all")) return {gpu, "others", {}, {}};
    const std::string other =
        fmt::format("{}{}", has(test.description, "CPU(row)") ? "cpu" : "gpu", row);
    const bool backwards = (has(test.description, "<-") && !has(test.description, "<->")) ||
                           test.name.starts_with("device_to_host_bidirectional") ||
                           test.name.starts_with("all_to_host_bidirectional");
    return backwards ? MeasuredPair{gpu, other, {}, {}} : MeasuredPair{other, gpu, {}, {}};
  }

  void write_facts() {
    Json facts = Json::object();
    facts.set("tool", "nvbandwidth");
    facts.set("version", measurement_.version);
    for (const auto& [key, value] : measurement_.setup) facts.set(key, value);
    std::vector<double> nvlink, host, latency;
    for (const MeasuredMatrix& m : measurement_.matrices) {
      if (const auto time = median_latency(m)) latency.push_back(us_of(*time));
      if (m.method != CopyMethod::copy_engine || m.traffic != CopyTraffic::alone) continue;
      if (m.name.starts_with("device_to_device")) nvlink.push_back(median_gbs(m));
      if (has(m.name, "host_to_device") || has(m.name, "device_to_host"))
        host.push_back(median_gbs(m));
    }
    const auto set = [&](std::string_view key, const std::vector<double>& values) {
      facts.set(key, values.empty() ? Json{} : Json(median(values)));
    };
    set("gpu_to_gpu_gbs", nvlink);
    set("host_gbs", host);
    set("latency_us", latency);
    facts.set("tests", facts_of_matrices(measurement_));
    facts.set("waived", waived_);
    facts.set("failed", failed_);
    Json& devices = facts.set("devices", Json::array());
    for (const MeasuredDevice& device : measurement_.devices) devices.push(write_config(device));
    Json& problems = facts.set("problems", Json::array());
    for (const std::string& text : measurement_.problems) problems.push(text);
    for (const MeasuredMatrix& m : measurement_.matrices) {
      const auto time = median_latency(m);
      imported_.note(Kind::read,
                     fmt::format("{}: {} over {}{}", m.name,
                                 time ? to_text(*time) : fmt::format("{:.4g} GB/s", median_gbs(m)),
                                 counted(static_cast<std::int64_t>(m.pairs.size()), "pair"),
                                 m.halved ? ", one direction of the printed sum" : ""));
    }
    imported_.facts = std::move(facts);
  }

  Imported& imported_;
  Diagnostics& out_;
  const std::string& file_;
  Measurement measurement_;
  CopyMatrixReader table_;
  CopyTest test_;
  bool json_ = false;
  Json waived_ = Json::array(), failed_ = Json::array();
};

Imported read_nvbandwidth(std::string_view text, const std::string& file,
                          const ImportOptions& options, Diagnostics& diagnostics) {
  Imported imported;
  imported.kind = "nvbandwidth";
  NvbandwidthImport reader(options, file, imported, diagnostics);
  looks_like_json(text) ? reader.read_json(text) : reader.read_text(text);
  reader.finish();
  return imported;
}

}  // namespace

extern const Importer kNvbandwidthImporter;
const Importer kNvbandwidthImporter{"nvbandwidth", "nvbandwidth, text or JSON",
                                    "github.com/NVIDIA/nvbandwidth, output.cpp", "",
                                    read_nvbandwidth};

}  // namespace weft
