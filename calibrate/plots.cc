// SPDX-License-Identifier: Apache-2.0
#include "calibrate/plots.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::string_view kPredicted = "#0072b2", kMeasured = "#d55e00";
// Tells apart for all kinds of colour vision (Okabe and Ito).
constexpr std::array<std::string_view, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#e69f00", "#56b4e9", "#000000"};

std::string head(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" "
      "font-family=\"sans-serif\" font-size=\"10\">\n"
      "<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"#ffffff\"/>\n",
      width, height);
}

std::string text(double x, double y, std::string_view words, std::string_view more) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, more,
                     html_escape(words));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view colour) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
      y2, colour);
}

std::string dot(double x, double y, double radius, std::string_view colour) {
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\" fill=\"{}\"/>\n", x, y, radius,
                     colour);
}

std::string ring(double x, double y, double radius, std::string_view colour) {
  return fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\" fill=\"#ffffff\" stroke=\"{}\"/>\n", x, y,
      radius, colour);
}

// A logarithmic axis between two powers of ten or two.
struct Axis {
  double low = 0, high = 1;     // logarithms
  double from = 0, length = 1;  // pixels; negative length: upwards
  double at(double logarithm) const { return from + (logarithm - low) / (high - low) * length; }
};

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

std::string size_text(int exponent) {
  static constexpr std::array<std::string_view, 4> kUnits{"", "Ki", "Mi", "Gi"};
  const auto unit = static_cast<std::size_t>(std::clamp(exponent / 10, 0, 3));
  return fmt::format("{}{}", 1 << (exponent - 10 * static_cast<int>(unit)), kUnits[unit]);
}

std::string decade_text(int exponent) {
  static constexpr std::array<std::string_view, 4> kUnits{"", "k", "M", "G"};
  if (exponent >= 12 || exponent < -3) return fmt::format("1e{}", exponent);
  if (exponent < 0) return fmt::format("{:.{}f}", std::pow(10.0, exponent), -exponent);
  const int unit = exponent < 4 ? 0 : exponent / 3;
  return fmt::format("{}{}", std::llround(std::pow(10.0, exponent - 3 * unit)),
                     kUnits[static_cast<std::size_t>(unit)]);
}

constexpr double kPanelWidth = 232, kPanelHeight = 170, kTop = 44;
constexpr std::size_t kPanelsPerRow = 4;

std::string panel_svg(const SweepPanel& panel, double left, double top, const Extent& sizes) {
  Extent rates;
  for (const SweepPoint& point : panel.points) {
    rates.add(std::log10(point.measured));
    rates.add(std::log10(point.predicted));
  }
  const Axis x{sizes.low, sizes.high, left + 34, kPanelWidth - 48};
  const Axis y{std::floor(rates.low), std::max(std::ceil(rates.high), std::floor(rates.low) + 1),
               top + kPanelHeight - 24, -(kPanelHeight - 66)};
  std::string out = text(left + 34, top + 12, panel.title,
                         "font-size=\"8.5\" fill=\"#222\" font-weight=\"bold\"");
  out += text(left + 34, top + 25, panel.subtitle, "font-size=\"9\" fill=\"#666\"");
  for (int decade = static_cast<int>(y.low); decade <= static_cast<int>(y.high); ++decade) {
    out += line(x.from, y.at(decade), x.from + x.length, y.at(decade), "#dddddd");
    out += text(x.from - 4, y.at(decade) + 3, decade_text(decade),
                "text-anchor=\"end\" font-size=\"8\" fill=\"#444\"");
  }
  for (int exponent = 0; exponent <= 40; exponent += 10) {
    if (exponent < sizes.low || exponent > sizes.high) continue;
    out += line(x.at(exponent), y.from, x.at(exponent), y.from + y.length, "#dddddd");
    out += text(x.at(exponent), y.from + 11, size_text(exponent),
                "text-anchor=\"middle\" font-size=\"8\" fill=\"#444\"");
  }
  std::string above, below;
  for (const SweepPoint& point : panel.points) {
    if (!(point.low > 0)) continue;
    const double across = x.at(std::log2(point.bytes));
    const auto up = [&](double value) {
      return y.at(std::clamp(std::log10(value), y.low, y.high));
    };
    above += fmt::format("{:.1f},{:.1f} ", across, up(point.high));
    below = fmt::format("{:.1f},{:.1f} ", across, up(point.low)) + below;
  }
  if (!above.empty())
    out += fmt::format("<polygon points=\"{}{}\" fill=\"{}\" fill-opacity=\"0.15\"/>\n", above,
                       below, kPredicted);
  std::string points;
  for (const SweepPoint& point : panel.points) {
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ",
                          x.at(std::log2(point.bytes)), y.at(std::log10(point.predicted)));
  }
  out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
                     points, kPredicted);
  for (const SweepPoint& point : panel.points) {
    const double across = x.at(std::log2(point.bytes)), up = y.at(std::log10(point.measured));
    out += point.hollow ? ring(across, up, 2.2, kMeasured) : dot(across, up, 2, kMeasured);
  }
  return out;
}

// Right of the plot: the colour and name of series i.
std::string legend_entry(const Axis& x, std::size_t i, std::string_view name) {
  const double right = x.from + x.length, at = 60 + 18 * static_cast<double>(i);
  return dot(right + 16, at - 3, 3, kColours[i % kColours.size()]) +
         text(right + 26, at, name, "fill=\"#222\"");
}

}  // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string sweeps_svg(std::string_view title, const std::vector<SweepPanel>& panels,
                       std::string_view unit) {
  Extent sizes;
  for (const SweepPanel& panel : panels) {
    for (const SweepPoint& point : panel.points) sizes.add(std::log2(point.bytes));
  }
  if (!(sizes.low < sizes.high)) sizes = {sizes.low - 1, sizes.low + 1};
  const std::size_t rows = (panels.size() + kPanelsPerRow - 1) / kPanelsPerRow;
  const double width = kPanelsPerRow * kPanelWidth;
  std::string out = head(width, kTop + static_cast<double>(rows) * kPanelHeight);
  out += text(34, 18, title, "font-size=\"13\" fill=\"#222\"");
  out += dot(40, 32, 2.5, kMeasured);
  out += text(48, 35, "measured", "fill=\"#222\"");
  out += fmt::format(
      "<line x1=\"110\" y1=\"32\" x2=\"132\" y2=\"32\" stroke=\"{}\" "
      "stroke-width=\"1.5\"/>\n",
      kPredicted);
  out += text(137, 35, fmt::format("predicted; {} against bytes, both logarithmic", unit),
              "fill=\"#222\"");
  for (std::size_t i = 0; i < panels.size(); ++i) {
    out += panel_svg(panels[i], static_cast<double>(i % kPanelsPerRow) * kPanelWidth,
                     kTop + static_cast<double>(i / kPanelsPerRow) * kPanelHeight, sizes);
  }
  return out + "</svg>\n";
}

std::string scatter_svg(std::string_view title, std::string_view unit,
                        const std::vector<ScatterSeries>& series) {
  Extent extent;
  for (const ScatterSeries& one : series) {
    for (const SweepPoint& point : one.points) {
      extent.add(std::log10(point.measured));
      extent.add(std::log10(point.predicted));
    }
  }
  constexpr double kSide = 420, kLeft = 56;
  const double low = std::floor(extent.low), high = std::max(std::ceil(extent.high), low + 1);
  const Axis x{low, high, kLeft, kSide}, y{low, high, 36 + kSide, -kSide};
  std::string out = head(kLeft + kSide + 130, kSide + 84);
  out += text(kLeft, 20, title, "font-size=\"13\" fill=\"#222\"");
  for (int decade = static_cast<int>(low); decade <= static_cast<int>(high); ++decade) {
    out += line(x.at(decade), y.from, x.at(decade), y.from + y.length, "#eeeeee");
    out += line(x.from, y.at(decade), x.from + x.length, y.at(decade), "#eeeeee");
    out += text(x.at(decade), y.from + 14, decade_text(decade),
                "text-anchor=\"middle\" fill=\"#444\"");
    out += text(x.from - 6, y.at(decade) + 3, decade_text(decade),
                "text-anchor=\"end\" fill=\"#444\"");
  }
  const double band = std::log10(1.25);
  for (const double shift : {-band, 0.0, band}) {
    const double begin = std::max(low, low - shift), end = std::min(high, high - shift);
    out += line(x.at(begin), y.at(begin + shift), x.at(end), y.at(end + shift),
                shift == 0 ? "#888888" : "#cccccc");
  }
  out += text(x.from + x.length / 2, y.from + 32, fmt::format("measured, {}", unit),
              "text-anchor=\"middle\" fill=\"#222\"");
  out += fmt::format(
      "<text transform=\"translate(14 {:.1f}) rotate(-90)\" text-anchor=\"middle\" "
      "fill=\"#222\">predicted, {}</text>\n",
      y.from + y.length / 2, html_escape(unit));
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::string_view colour = kColours[i % kColours.size()];
    out += legend_entry(x, i, series[i].name);
    for (const SweepPoint& point : series[i].points) {
      out += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"{}\" fill-opacity=\"0.55\"/>\n",
          x.at(std::log10(point.measured)), y.at(std::log10(point.predicted)), colour);
    }
  }
  return out + "</svg>\n";
}

std::string errors_svg(std::string_view title, const std::vector<ScatterSeries>& series) {
  constexpr double kWidth = 620, kHeight = 220, kLeft = 56, kHead = 36;
  Extent sizes;
  double most = 0.05;
  for (const ScatterSeries& one : series) {
    for (const SweepPoint& point : one.points) {
      sizes.add(std::log2(point.bytes));
      most = std::max(most, std::abs(std::log(point.predicted / point.measured)));
    }
  }
  if (!(sizes.low < sizes.high)) sizes = {sizes.low - 1, sizes.low + 1};
  most = std::min(std::ceil(most * 10) / 10 + 0.02, std::log(4.0));
  const Axis x{sizes.low, sizes.high, kLeft, kWidth};
  const Axis y{-most, most, kHead + kHeight, -kHeight};
  std::string out = head(kLeft + kWidth + 190, kHead + kHeight + 40);
  out += text(kLeft, 20, title, "font-size=\"13\" fill=\"#222\"");
  std::vector<std::pair<double, double>> band;  // size, half-width
  for (const ScatterSeries& one : series)
    for (const SweepPoint& point : one.points)
      if (point.high > 0)
        band.emplace_back(std::log2(point.bytes), std::log(point.high / point.predicted));
  std::ranges::sort(band);
  std::string above, below;
  for (std::size_t i = 0; i < band.size();) {
    std::size_t end = i;
    while (end < band.size() && band[end].first == band[i].first) ++end;
    const double half = std::min(band[(i + end) / 2].second, most);
    above += fmt::format("{:.1f},{:.1f} ", x.at(band[i].first), y.at(half));
    below = fmt::format("{:.1f},{:.1f} ", x.at(band[i].first), y.at(-half)) + below;
    i = end;
  }
  if (!above.empty())
    out += fmt::format("<polygon points=\"{}{}\" fill=\"#eeeeee\"/>\n", above, below);
  for (const double mark : {-0.75, -0.5, -0.25, -0.1, -0.05, 0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0}) {
    const double at = std::log1p(mark);
    const bool crowded = mark != 0 && std::abs(at) < most / 6;
    if (std::abs(at) > most || crowded) continue;
    out += line(x.from, y.at(at), x.from + x.length, y.at(at), mark == 0 ? "#888888" : "#dddddd");
    out += text(x.from - 6, y.at(at) + 3, mark == 0 ? "0 %" : fmt::format("{:+.0f} %", 100 * mark),
                "text-anchor=\"end\" font-size=\"9\" fill=\"#444\"");
  }
  for (int exponent = 0; exponent <= 40; exponent += 5) {
    if (exponent < sizes.low || exponent > sizes.high) continue;
    out += text(x.at(exponent), y.from + 14, size_text(exponent),
                "text-anchor=\"middle\" fill=\"#444\"");
  }
  out += text(x.from + x.length / 2, y.from + 30, "bytes", "text-anchor=\"middle\" fill=\"#222\"");
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::string_view colour = kColours[i % kColours.size()];
    out += legend_entry(x, i, series[i].name);
    for (const SweepPoint& point : series[i].points) {
      const double error = std::clamp(std::log(point.predicted / point.measured), -most, most);
      const double across = x.at(std::log2(point.bytes)), up = y.at(error);
      out += point.hollow ? ring(across, up, 2.5, colour) : dot(across, up, 2.5, colour);
    }
  }
  return out + "</svg>\n";
}

std::string whiskers_svg(std::string_view title, const std::vector<Whisker>& whiskers) {
  constexpr double kLeft = 300, kWidth = 420, kRow = 18, kHead = 34;
  double most = std::log(1.1);
  for (const Whisker& one : whiskers)
    most = std::max({most, std::abs(std::log(one.low)), std::abs(std::log(one.high))});
  most = std::min(most * 1.05, std::log(10.0));
  const Axis x{-most, most, kLeft, kWidth};
  const double bottom = kHead + kRow * static_cast<double>(whiskers.size());
  std::string out = head(kLeft + kWidth + 40, bottom + 34);
  out += text(10, 20, title, "font-size=\"13\" fill=\"#222\"");
  for (const double mark : {0.1, 0.2, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0, 5.0, 10.0}) {
    const double at = std::log(mark);
    if (std::abs(at) > most || (most > std::log(3.0) && std::abs(at) < 0.3 && mark != 1.0))
      continue;
    out += line(x.at(at), kHead - 4, x.at(at), bottom, mark == 1 ? "#888888" : "#dddddd");
    out += text(x.at(at), bottom + 14, fmt::format("{:g}", mark),
                "text-anchor=\"middle\" font-size=\"9\" fill=\"#444\"");
  }
  out += text(x.from + x.length / 2, bottom + 28, "over the value before",
              "text-anchor=\"middle\" fill=\"#222\"");
  for (std::size_t i = 0; i < whiskers.size(); ++i) {
    const Whisker& one = whiskers[i];
    const double at = kHead + kRow * (static_cast<double>(i) + 0.5);
    const std::string_view colour = one.known ? kPredicted : "#aaaaaa";
    const auto across = [&](double value) {
      return x.at(std::clamp(std::log(value), -most, most));
    };
    out += text(kLeft - 10, at + 3, one.name,
                fmt::format("text-anchor=\"end\" fill=\"{}\"", one.known ? "#222" : "#888"));
    out += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"2\"/>\n",
        across(one.low), at, across(one.high), at, colour);
    out +=
        one.known ? dot(across(one.value), at, 4, colour) : ring(across(one.value), at, 4, colour);
  }
  return out + "</svg>\n";
}

}  // namespace weft
