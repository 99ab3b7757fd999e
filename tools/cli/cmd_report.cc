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
    refuse_overwriting(page_, files_);
    std::vector<std::string> documents;
    for (const std::string& path : files_) {
      const std::optional<Json> json = read_report(path, diagnostics);
      if (!json) continue;
      if (is_run(*json) || is_table(*json)) {
        documents.push_back(page_document(path, *json));
        continue;
      }
      diagnostics.error(json->place, {}, "this is not a report of weft",
                        "give what `weft run --json`, `weft run --out` or `weft nccl-tests --json` "
                        "wrote");
    }
    diagnostics.throw_if_errors();
    write_report_page(page_, documents);
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
