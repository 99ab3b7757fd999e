// SPDX-License-Identifier: Apache-2.0
// weft diff: two reports. What differs in the input, what came out differently, which resource moved onto the critical path.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/core/loader.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/output.hpp"
#include "tools/cli/page.hpp"
#include "tools/cli/report_diff.hpp"

namespace weft {
namespace {

class DiffCommand final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("a", a_, "a report, as `weft run --json` or `--out` wrote it")->required();
    app.add_option("b", b_, "the report to compare with it")->required();
    app.add_option("--page", page_, "write both side by side into this page too");
    app.add_option("--top", top_, "most differences of one sort in the text")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    refuse_overwriting(page_, {a_, b_});
    Diagnostics diagnostics;
    const std::optional<Json> a = read_report(a_, diagnostics), b = read_report(b_, diagnostics);
    for (const std::optional<Json>* one : {&a, &b}) {
      if (*one) check_report(**one, diagnostics);
    }
    diagnostics.throw_if_errors();
    const ReportDiff diff = compare_reports(*a, *b);
    if (!page_.empty())
      write_report_page(page_, std::vector{page_document(a_, *a), page_document(b_, *b)});
    io.out = json_ ? to_text(to_json(diff)) + "\n" : to_text(diff, top_);
    return kOk;
  }

 private:
  std::string a_, b_, page_;
  std::size_t top_ = 20;
  bool json_ = false;
};

}  // namespace

extern const Verb kDiff;
const Verb kDiff{"diff", "what differs between two reports, in and out", make_command<DiffCommand>};

}  // namespace weft
