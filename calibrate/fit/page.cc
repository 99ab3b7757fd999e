// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/page.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "calibrate/fit/patch.hpp"
#include "calibrate/log_facts.hpp"
#include "calibrate/percent.hpp"
#include "calibrate/plots.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

constexpr std::size_t kFewestSizes = 3;  // of a curve
constexpr std::size_t kMostSeries = 12;
constexpr std::size_t kLongestTitle = 40;

constexpr const char* kStyle =
    "body{font:15px/1.45 sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#222;"
    "background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}"
    "table{border-collapse:collapse;font-size:13px}td,th{padding:.2rem .6rem;text-align:left;"
    "border-bottom:1px solid #ddd}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "svg{max-width:100%;height:auto}.grey{color:#777}summary{cursor:pointer}"
    ".out{color:#b30000}";

// One row as it is drawn and listed.
struct Row {
  const MeasuredPoint* point;
  double predicted = 0, sd = 0;
  bool took_part = true, outside = false;
  double error() const { return predicted / point->measured - 1; }
};

std::string cell(const std::string& text) { return "<td>" + html_escape(text) + "</td>"; }
std::string figure(const std::string& text) {
  return "<td class=\"n\">" + html_escape(text) + "</td>";
}

class Writer {
 public:
  explicit Writer(const CalibrationPage& page) : page_(page), fit_(*page.fitted) {
    factor_ = student_t(kIntervalLevel, fit_.freedom);
    if (page.left_out != nullptr) {
      for (const HeldOutRow& row : page.left_out->rows)
        rows_.push_back({&row.point, row.predicted, row.sd, true, !row.covered});
    } else {
      for (const FitResidual& r : fit_.residuals)
        rows_.push_back({&r.point, r.predicted, r.sd, r.fitted, r.outlier});
    }
    std::erase_if(rows_, [](const Row& row) {
      return !(row.predicted > 0) || !(row.point->measured > 0) ||
             !std::isfinite(row.predicted / row.point->measured);
    });
  }

  std::string run() {
    std::string out = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n"
        "<style>{1}</style></head><body>\n<h1>{0}</h1>\n",
        html_escape(page_.title), kStyle);
    out += summary() + curves() + residuals() + parameters() + unknown() + notes() + listing();
    return out + "</body></html>\n";
  }

 private:
  std::string summary() const {
    std::vector<double> before, now;
    for (const FitResidual& r : fit_.residuals) {
      if (!r.fitted) continue;
      before.push_back(std::abs(r.before / r.point.measured - 1));
      now.push_back(std::abs(r.error()));
    }
    std::string out = "<table>\n";
    const auto line = [&](const char* what, const std::string& value) {
      out += "<tr>" + cell(what) + cell(value) + "</tr>\n";
    };
    line("fabric", page_.fabric);
    line("measured by", page_.instrument);
    line("rows fitted", fmt::format("{} of {}", now.size(), fit_.residuals.size()));
    line("parameters determined",
         fmt::format("{} of {}", fit_.determined(), fit_.parameters.size()));
    line("median error of the fitted rows",
         percent(median(now)) + ", before " + percent(median(before)));
    if (const HoldOut* h = page_.left_out) {
      line("left out", page_.how);
      line("rows predicted without them", fmt::format("{}", h->rows.size()));
      line("median error of these",
           fmt::format("{}, nine of ten within {}, bias {}", percent(h->median), percent(h->p90),
                       signed_percent(h->bias)));
      line("in their 90 % interval", percent(h->coverage, 0));
      if (!h->faults.empty()) line("faults", join(h->faults, "; "));
    }
    return out + "</table>\n";
  }

  SweepPoint drawn(const Row& row, bool as_rate) const {
    const MeasuredPoint& p = *row.point;
    SweepPoint out;
    out.bytes = p.bytes.value();
    out.hollow = !row.took_part;
    const double up = std::exp(factor_ * row.sd);
    out.measured = p.measured;
    out.predicted = row.predicted;
    if (p.rate != as_rate) {
      out.measured = out.bytes / p.measured * 1e-3;
      out.predicted = out.bytes / row.predicted * 1e-3;
    }
    out.low = out.predicted / up;
    out.high = out.predicted * up;
    return out;
  }

  std::map<std::string, std::vector<const Row*>> groups() const {
    std::map<std::string, std::vector<const Row*>> out;
    for (const Row& row : rows_)
      if (row.point->bytes.count > 0) out[row.point->group].push_back(&row);
    return out;
  }

  std::vector<SweepPanel> panels(bool as_rate) const {
    std::vector<SweepPanel> out;
    for (const auto& [name, rows] : groups()) {
      std::map<std::int64_t, std::vector<const Row*>> sizes;
      for (const Row* row : rows) sizes[row->point->bytes.count].push_back(row);
      if (sizes.size() < kFewestSizes) continue;
      SweepPanel panel;
      panel.title = name.size() > kLongestTitle ? name.substr(0, kLongestTitle - 3) + "..." : name;
      std::vector<double> errors;
      for (const auto& [bytes, same] : sizes) {
        // Of many pairs the one in the middle, so that a panel is a curve.
        std::vector<const Row*> sorted = same;
        std::ranges::sort(sorted, {}, [](const Row* row) { return row->point->measured; });
        panel.points.push_back(drawn(*sorted[sorted.size() / 2], as_rate));
        for (const Row* row : same) errors.push_back(std::abs(row->error()));
      }
      panel.subtitle =
          fmt::format("{} rows, median error {}", rows.size(), percent(median(errors)));
      out.push_back(std::move(panel));
    }
    return out;
  }

  std::string curves() const {
    std::string out = page_.left_out != nullptr ? "<h2>What was left out</h2>\n"
                                                : "<h2>Measured and predicted</h2>\n";
    const std::vector<SweepPanel> times = panels(false), rates = panels(true);
    if (times.empty())
      return out + "<p class=\"grey\">No test has three sizes and more: no curves.</p>\n";
    out +=
        "<p>Dots were measured, hollow ones took no part; the band is the 90 % interval of a new "
        "measurement.</p>\n";
    return out + sweeps_svg("Time", times, "us") + sweeps_svg("Bandwidth", rates);
  }

  std::string residuals() const {
    std::vector<ScatterSeries> by_size, all;
    for (const auto& [name, rows] : groups()) {
      ScatterSeries series{name, {}};
      for (const Row* row : rows) series.points.push_back(drawn(*row, row->point->rate));
      if (by_size.size() == kMostSeries) by_size.push_back({"others", {}});
      if (by_size.size() <= kMostSeries)
        by_size.push_back(std::move(series));
      else
        by_size.back().points.insert(by_size.back().points.end(), series.points.begin(),
                                     series.points.end());
    }
    for (const Row& row : rows_) {
      const std::string kind = row.point->kind == PointKind::collective ? "collectives"
                               : row.point->kind == PointKind::kernel   ? "kernels"
                                                                        : "copies";
      auto found = std::ranges::find(all, kind, &ScatterSeries::name);
      if (found == all.end()) found = all.insert(all.end(), {kind, {}});
      SweepPoint point = drawn(row, false);
      if (row.point->bytes.count == 0) {
        point.measured = row.point->measured;
        point.predicted = row.predicted;
      }
      found->points.push_back(point);
    }
    if (all.empty()) return {};
    std::string out = "<h2>Errors</h2>\n";
    if (!by_size.empty()) out += errors_svg("predicted / measured - 1", by_size);
    return out + scatter_svg("Time of every row", "us", all);
  }

  std::string parameters() const {
    std::string out =
        "<h2>Parameters</h2>\n<table><tr><th>parameter</th><th>before</th><th>now</th>"
        "<th>95 % interval</th><th></th></tr>\n";
    std::vector<Whisker> whiskers;
    for (const FittedParameter& p : fit_.parameters) {
      const ParameterUnit unit = p.parameter.unit;
      const bool held = p.state == ParameterState::undetermined;
      out += "<tr>" + cell(p.parameter.name) + figure(parameter_text(unit, p.parameter.prior)) +
             figure(held ? "as before" : parameter_text(unit, p.value)) +
             cell(held ? "" : interval_text(p)) + cell(state_text(p.state)) + "</tr>\n";
      whiskers.push_back({p.parameter.name, p.low / p.parameter.prior, p.value / p.parameter.prior,
                          p.high / p.parameter.prior, !held});
    }
    out += "</table>\n";
    return out + whiskers_svg("Where the measurements put them; grey: the prior", whiskers);
  }

  std::string unknown() const {
    std::string out = "<h2>What these measurements do not tell</h2>\n<ul>\n";
    std::size_t count = 0;
    for (const FittedParameter& p : fit_.parameters) {
      if (p.state == ParameterState::determined) continue;
      ++count;
      out += fmt::format("<li>{}: {}</li>\n", html_escape(p.parameter.name), html_escape(p.reason));
    }
    if (!fit_.unused.empty()) {
      ++count;
      out += fmt::format("<li class=\"grey\">nothing measured depends on {}</li>\n",
                         html_escape(join(fit_.unused, ", ")));
    }
    return count == 0 ? std::string{} : out + "</ul>\n";
  }

  std::string notes() const {
    const std::vector<std::string> faults =
        page_.left_out != nullptr ? fault_notes(*page_.left_out) : std::vector<std::string>{};
    if (page_.notes.empty() && fit_.notes.empty() && faults.empty()) return {};
    std::string out = "<h2>Notes</h2>\n<ul>\n";
    for (const auto* list : {&faults, &page_.notes, &fit_.notes})
      for (const std::string& note : *list) out += "<li>" + html_escape(note) + "</li>\n";
    return out + "</ul>\n";
  }

  std::string listing() const {
    std::string out = fmt::format(
        "<h2>Rows</h2>\n<details><summary>{} rows</summary>\n<table><tr><th>row</th>"
        "<th>measured</th><th>predicted</th><th></th><th>error %</th><th>+- % (90)</th><th></th>"
        "</tr>\n",
        rows_.size());
    for (const Row& row : rows_) {
      const std::string remark = !row.took_part              ? "not fitted: " + row.point->refused
                                 : !row.outside              ? ""
                                 : page_.left_out != nullptr ? "outside its interval"
                                                             : "outlier";
      out += "<tr>" + cell(row.point->id) + figure(fmt::format("{:.4g}", row.point->measured)) +
             figure(fmt::format("{:.4g}", row.predicted)) + cell(row.point->rate ? "GB/s" : "us") +
             figure(fmt::format("{:+.1f}", 100 * row.error())) +
             figure(fmt::format("{:.0f}", 100 * factor_ * row.sd)) + "<td class=\"out\">" +
             html_escape(remark) + "</td></tr>\n";
    }
    return out + "</table></details>\n";
  }

  const CalibrationPage& page_;
  const FitResult& fit_;
  std::vector<Row> rows_;
  double factor_ = 0;  // of a half-width over a standard deviation
};

}  // namespace

std::string calibration_page(const CalibrationPage& page) { return Writer(page).run(); }

}  // namespace weft
