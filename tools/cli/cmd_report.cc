// SPDX-License-Identifier: Apache-2.0
// weft report: a page from reports that were written before, compared when there are several.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/core/loader.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/output.hpp"
#include "tools/cli/page.hpp"

namespace weft {
namespace {

// What the page understands, told apart by a key that only this kind has.
bool is_run(const Json& json) {
  return json.find("time_s") != nullptr && json.find("jobs") != nullptr;
}
bool is_table(const Json& json) {
  return json.find("collective") != nullptr && json.find("rows") != nullptr;
}

class ReportCommand final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("reports", files_,
                   "report.json of `weft run --out`, or `weft nccl-tests --json`")
        ->required();
    app.add_option("-o,--output", page_, "the page to write")->required();
  }

  int run(Io& io) override {
    Diagnostics diagnostics;
    Configs source("");
    std::vector<std::string> documents;
    for (const std::string& path : files_) {
      const std::optional<std::string> text = read_capture(source, path, diagnostics);
      if (!text) continue;
      const std::size_t known = diagnostics.problems().size();
      Json json = parse_json(*text, path, diagnostics);
      if (diagnostics.problems().size() > known) continue;
      if (!is_run(json) && !is_table(json)) {
        diagnostics.error(
            json.place, {}, "this is not a report of weft",
            "give what `weft run --json`, `weft run --out` or `weft nccl-tests --json` "
            "wrote");
        continue;
      }
      Json named = Json::object();
      named.set("file", path);
      named.set("report", std::move(json));
      documents.push_back(to_text(named, 0));
    }
    diagnostics.throw_if_errors();
    const std::optional<std::string> page = report_page(documents);
    if (!page) throw Missing(kNoPage);
    write_file(page_, *page);
    io.out = fmt::format("page: {}\n", page_);
    return kOk;
  }

 private:
  std::vector<std::string> files_;
  std::string page_;
};

}  // namespace

extern const Verb kReport;
const Verb kReport{"report", "one page from reports, compared when there are several",
                   make_command<ReportCommand>};

}  // namespace weft
