// SPDX-License-Identifier: Apache-2.0
// weft calibrate check: keeps some of the measurements, fits to them and predicts the others.
#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "calibrate/fit/check.hpp"
#include "calibrate/fit/page.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/calibrate_input.hpp"
#include "tools/cli/output.hpp"

namespace weft {
namespace {

class CalibrateCheck final : public Command {
 public:
  void add(CLI::App& app) override {
    add_calibrate_flags(app, flags_);
    app.add_option(
           "--leave-out", leave_out_,
           "sizes: of collectives all but those of --keep, of copies and kernels every other "
           "one between the least and the largest; groups or collectives: one after the other")
        ->check(CLI::IsMember({"sizes", "groups", "collectives"}));
    app.add_option("--keep", keep_,
                   "sizes of collectives that are fitted, default 32 KiB, 1 MiB and 1 GiB")
        ->delimiter(',')
        ->type_name("SIZE,...");
    app.add_option("--page", page_,
                   "writes curves and errors of what was left out, and the parameters of a fit to "
                   "everything, as a page")
        ->type_name("FILE.html");
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    std::vector<Bytes> sizes;
    Diagnostics diagnostics;
    if (!keep_.empty() && leave_out_ != "sizes")
      diagnostics.error(
          {}, "--keep",
          fmt::format("--leave-out {} keeps what is not left out in turn", leave_out_),
          "--keep is of --leave-out sizes: leave one of them out");
    for (const std::string& text : keep_) {
      const auto size = parse_bytes(text);
      if (!size)
        diagnostics.error({}, "--keep", fmt::format("\"{}\" is not a size", text), "e.g. 1MiB");
      else
        sizes.push_back(*size);
    }
    if (keep_.empty()) sizes = {32_KiB, 1_MiB, 1_GiB};
    diagnostics.throw_if_errors();
    std::vector<std::string> read = flags_.files;
    read.push_back(flags_.fabric);
    refuse_overwriting(page_, read);
    expect_writable(page_);
    const CalibrateInput input = read_calibrate_input(flags_, io);
    if (!keep_.empty()) refuse_unmeasured(sizes, input.data);
    const HoldOut found = leave_out_ == "groups" ? hold_out_groups(input.machine, input.data, {})
                          : leave_out_ == "collectives"
                              ? hold_out_collectives(input.machine, input.data, {})
                              : hold_out_sizes(input.machine, input.data, sizes, {});
    if (found.rows.empty()) {
      throw InputError(
          fmt::format("error: --leave-out {}: nothing is left to fit or to predict\n    {}\n",
                      leave_out_, cure(input.data)));
    }
    if (!page_.empty()) write_page(input, found);
    if (json_) tell_notes(input, io);
    io.out = json_ ? to_text(to_json(found)) + "\n" : text(input, found);
    return kOk;
  }

 private:
  const char* cure(const FitData& data) const {
    if (!data.tables.empty())
      return "--keep sizes that were measured, or --leave-out the other of sizes and groups";
    return leave_out_ == "sizes"
               ? "copies and kernels need three sizes of a kind: those between are left out"
               : "rows of tables of collectives are left out, and the files hold none: --leave-out "
                 "sizes";
  }

  // Sizes as a tool rounds them to whole elements of all ranks are the same.
  static void refuse_unmeasured(const std::vector<Bytes>& sizes, const FitData& data) {
    constexpr double kSame = 1.02;
    std::map<Bytes, std::string> measured;
    for (const FitTable& table : data.tables)
      for (const FitRow& row : table.rows) measured.try_emplace(row.bytes, to_text(row.bytes));
    std::vector<std::string> texts;
    for (const auto& [bytes, text] : measured) texts.push_back(text);
    Diagnostics out;
    for (const Bytes size : sizes) {
      if (std::ranges::any_of(measured, [&](const auto& one) {
            return one.first.value() <= size.value() * kSame &&
                   one.first.value() * kSame >= size.value();
          }))
        continue;
      out.error({}, "--keep", fmt::format("{} was not measured", to_text(size)),
                texts.empty() ? "the files hold no tables of collectives"
                              : "one of " + join(texts, ", "));
    }
    out.throw_if_errors();
  }

  void write_page(const CalibrateInput& input, const HoldOut& found) const {
    std::vector<FoundFault> faults;
    const FitResult fitted = fit_and_find_faults(input.machine, input.data, {}, faults);
    write_file(page_,
               calibration_page({.title = flags_.fabric + ", predicted without what was left out",
                                 .fabric = flags_.fabric,
                                 .instrument = input.data.instrument,
                                 .notes = input.notes,
                                 .fitted = &fitted,
                                 .left_out = &found,
                                 .how = leave_out_ == "sizes"    ? "all sizes but those kept"
                                        : leave_out_ == "groups" ? "each number of ranks in turn"
                                                                 : "each collective in turn"}));
  }

  Json to_json(const HoldOut& found) const {
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("left_out", leave_out_);
    out.set("fitted_rows", std::uint64_t{found.fitted});
    out.set("median_abs_rel_error", found.median);
    out.set("p90_abs_rel_error", found.p90);
    out.set("bias", found.bias);
    out.set("coverage_90", found.coverage);
    Json faults = Json::array();
    for (const std::string& fault : found.faults) faults.push(fault);
    out.set("faults", std::move(faults));
    out.set("spoilt_rows", std::uint64_t{found.spoilt});
    Json kinds = Json::array();
    for (const HeldOutKind& kind : kinds_of(found)) {
      Json k = Json::object();
      k.set("kind", kind.name);
      k.set("rows", std::uint64_t{kind.of.rows.size()});
      k.set("median_abs_rel_error", kind.of.median);
      k.set("p90_abs_rel_error", kind.of.p90);
      k.set("bias", kind.of.bias);
      k.set("coverage_90", kind.of.coverage);
      kinds.push(std::move(k));
    }
    out.set("kinds", std::move(kinds));
    Json rows = Json::array();
    for (const HeldOutRow& row : found.rows) {
      Json r = Json::object();
      r.set("id", row.point.id);
      r.set("measured", row.point.measured);
      r.set("predicted", row.predicted);
      r.set("error", row.error());
      r.set("sd", row.sd);
      r.set("covered", row.covered);
      rows.push(std::move(r));
    }
    out.set("rows", std::move(rows));
    return out;
  }

  std::string text(const CalibrateInput& input, const HoldOut& found) const {
    Table table({"left out", "measured", "predicted", "error %", "+- % (90)", ""});
    for (const HeldOutRow& row : found.rows) {
      table.row({row.point.id, fmt::format("{:.4g}", row.point.measured),
                 fmt::format("{:.4g}", row.predicted), fmt::format("{:+.1f}", 100 * row.error()),
                 fmt::format("{:.0f}", 100 * row.half_width), row.covered ? "" : "outside"});
    }
    std::string out = table.text() + "\n";
    out += fmt::format(
        "{} rows fitted, {} predicted: median error {:.1f} %, 9 of 10 within {:.1f} %, bias "
        "{:+.1f} %;\n{:.0f} % lie in their 90 % interval.\n",
        found.fitted, found.rows.size(), 100 * found.median, 100 * found.p90, 100 * found.bias,
        100 * found.coverage);
    const std::vector<HeldOutKind> kinds = kinds_of(found);
    if (kinds.size() > 1) {
      Table by_kind({"of them", "rows", "median error %", "9 of 10 within %", "bias %",
                     "in their interval %"});
      for (const auto& [name, of] : kinds)
        by_kind.row({name, fmt::format("{}", of.rows.size()),
                     fmt::format("{:.1f}", 100 * of.median), fmt::format("{:.1f}", 100 * of.p90),
                     fmt::format("{:+.1f}", 100 * of.bias),
                     fmt::format("{:.0f}", 100 * of.coverage)});
      out += "\n" + by_kind.text() + "\n";
    }
    for (const std::string& note : fault_notes(found)) out += "note: " + note + "\n";
    for (const std::string& note : input.notes) out += "note: " + note + "\n";
    return out;
  }

  CalibrateFlags flags_;
  std::string leave_out_ = "sizes", page_;
  std::vector<std::string> keep_;
  bool json_ = false;
};

}  // namespace

extern const Verb kCalibrateCheck;
const Verb kCalibrateCheck{"check", "predicts what was left out of a fit, and says how far off",
                           make_command<CalibrateCheck>};

}  // namespace weft
