// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/perftest.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "calibrate/import/lines.hpp"
#include "calibrate/measurement.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;

constexpr double kGbit = 1.0 / 8;              // GB/s of one Gb/s
constexpr double kMebibyte = 1.048576 * 1e-3;  // GB/s of one MiB/s

enum class Column {
  bytes,
  level,
  iterations,
  peak,
  average,
  rate,
  shortest,
  longest,
  typical,
  mean,
  deviation,
  percentile_99,
  percentile_999,
  other
};
struct Header {
  std::vector<Column> columns;
  double gbytes = 0;  // GB/s of one unit of the bandwidth columns; 0 for latencies
};

// Names may hold blanks ("BW average[Gb/sec]"), so a header is cut where each ends: at the closing bracket of its unit, or at
// a blank for those without one.
std::optional<Header> header_of(std::string_view text) {
  constexpr std::pair<std::string_view, Column> kNames[] = {
      {"#bytes", Column::bytes},
      {"#sl", Column::level},
      {"#iterations", Column::iterations},
      {"BW peak", Column::peak},
      {"BW average", Column::average},
      {"MsgRate", Column::rate},
      {"t_min", Column::shortest},
      {"t_max", Column::longest},
      {"t_typical", Column::typical},
      {"t_avg", Column::mean},
      {"t_stdev", Column::deviation},
      {"99% percentile", Column::percentile_99},
      {"99.9% percentile", Column::percentile_999},
      {"tps average", Column::other},
      {"CPU_Util", Column::other}};
  Header out;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const auto name = std::ranges::find_if(
        kNames, [&](const auto& entry) { return text.starts_with(entry.first); });
    if (name == std::end(kNames)) return std::nullopt;
    out.columns.push_back(name->second);
    text.remove_prefix(name->first.size());
    if (text.empty() || text.front() != '[') {
      const bool bare = name->second == Column::bytes || name->second == Column::level ||
                        name->second == Column::iterations || name->second == Column::other;
      if (!bare && !name->first.ends_with("percentile")) return std::nullopt;
      continue;
    }
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view unit = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    if (name->second == Column::peak || name->second == Column::average) {
      const double gbytes = unit == "Gb/sec"                        ? kGbit
                            : unit == "MiB/sec" || unit == "MB/sec" ? kMebibyte
                                                                    : 0;
      if (gbytes == 0 || (out.gbytes != 0 && out.gbytes != gbytes)) return std::nullopt;
      out.gbytes = gbytes;
    } else if (name->first.starts_with("t_") && unit != "usec") {
      return std::nullopt;
    } else if (name->second == Column::rate && unit != "Mpps") {
      return std::nullopt;
    }
  }
  const auto has = [&](Column c) { return std::ranges::find(out.columns, c) != out.columns.end(); };
  // A header that lost its end would take rows that lost theirs.
  const bool whole = (has(Column::peak) && has(Column::average) && has(Column::rate)) ||
                     (has(Column::shortest) && has(Column::longest) && has(Column::typical)) ||
                     (has(Column::mean) && has(Column::other));
  const bool starts = !out.columns.empty() && out.columns.front() == Column::bytes;
  return starts && whole ? std::optional(out) : std::nullopt;
}

class PerftestImport {
 public:
  PerftestImport(const ImportOptions& options, const std::string& file, Imported& imported,
                 Diagnostics& out)
      : options_(options),
        imported_(imported),
        out_(out),
        ignored_(imported),
        file_(out.add_file(file)),
        measurement_(new_measurement(options.name.empty() ? "measurement" : options.name,
                                     "perftest", file)) {}

  void run(std::string_view text) {
    for (const LogLine& line : clean_lines(text)) take(line);
    close_test();
    ignored_.finish();
    if (measurement_.messages.empty() && out_.ok()) {
      std::string why = "no measurements of perftest";
      if (ignored_.rows() > 0) why += "; " + ignored_.first_reason();
      out_.error({file_, 0, 0}, {}, why,
                 "a capture has a banner such as \"RDMA_Write BW Test\", a header beginning with "
                 "#bytes, and rows");
    }
    write_facts();
    if (out_.ok()) imported_.measurement = write_measurement(measurement_);
  }

 private:
  void take(const LogLine& line) {
    const std::string_view text = trimmed(line.text);
    if (line.damaged) {
      if (text.find("Test") != std::string_view::npos) close_test();
      return begins_with_digit(text) ? ignored_.row(line, "it holds broken escape codes")
                                     : ignored_.noise(line);
    }
    if (text.starts_with("---")) return;
    if (text.starts_with("#bytes")) {
      header_ = line.finished ? header_of(text) : std::nullopt;
      if (!header_) ignored_.row(line, "a header with columns or units that are not known");
      return;
    }
    if (header_ && text.find("sec]") != std::string_view::npos) {
      header_.reset();
      return ignored_.row(line, "the header is broken over two lines");
    }
    if (header_ && begins_with_digit(text)) return take_row(line);
    if (is_banner(text)) return open_test(text);
    if (take_setup(line, text)) return;
    ignored_.noise(line);
  }

  // Whole: half of a banner may lack the word "Bidirectional".
  static bool is_banner(std::string_view text) {
    constexpr std::string_view kVerbs[] = {"RDMA_Write", "RDMA_Read", "Send", "Atomic", "Raw"};
    return text.ends_with("Test") && std::ranges::any_of(kVerbs, [&](std::string_view verb) {
             return text.starts_with(verb);
           });
  }

  void open_test(std::string_view text) {
    close_test();
    header_.reset();
    test_.name = trimmed(text.substr(0, text.size() - 4));
    const std::size_t both = test_.name.find("Bidirectional");
    if (both != std::string::npos) {
      test_.traffic = CopyTraffic::opposed;
      test_.halved = test_.name.find("BW") != std::string::npos;
    }
  }

  // " Dual-port       : OFF          Device         : rdma1": one or two pairs on a line.
  bool take_setup(const LogLine& line, std::string_view text) {
    if (text.starts_with("Dual-port") && !test_.samples.empty()) {  // a new run, its banner is lost
      close_test();
      header_.reset();
    }
    constexpr std::string_view kKeys[] = {"Dual-port",      "Device",           "Number of qps",
                                          "Transport type", "Connection type",  "Using SRQ",
                                          "TX depth",       "RX depth",         "Mtu",
                                          "Link type",      "Post List",        "Recv Post List",
                                          "CQ Moderation",  "PCIe relax order", "Max inline data",
                                          "GID index",      "rdma_cm QPs",      "Data ex. method"};
    bool used = text.starts_with("local address") || text.starts_with("remote address") ||
                text.starts_with("GID:") || text.starts_with("ibv_wr* API") ||
                text.starts_with("PCIe relax order");
    for (const std::string_view key : kKeys) {
      const std::size_t at = text.find(key);
      if (at == std::string_view::npos || (at > 0 && text[at - 1] != ' ' && text[at - 1] != '\t'))
        continue;
      const auto value = after(text.substr(at + key.size()), ":");
      if (!value || !line.finished) continue;
      // Values are one word, or end at the gap before the next key.
      const std::size_t end = std::min(value->find("  "), value->find('\t'));
      const std::string_view word = trimmed(value->substr(0, end));
      if (!word.empty()) test_.setup[std::string(key)] = word;
      used = true;
    }
    return used;
  }

  void take_row(const LogLine& line) {
    std::string why;
    auto sample = sample_of(line, why);
    if (!sample) return ignored_.row(line, why);
    sample->line = static_cast<int>(line.number);
    test_.samples.push_back(std::move(*sample));
  }

  std::optional<MessageSample> sample_of(const LogLine& line, std::string& why) const {
    const std::vector<Word> words = words_of(line.text);
    const std::size_t columns = header_->columns.size();
    if (words.size() != columns) {
      why = fmt::format("it has {} cells, the header {}", words.size(), columns);
      return std::nullopt;
    }
    MessageSample out;
    PrintedNumber average, rate;
    bool has_average = false, has_rate = false;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string_view word = words[i].text;
      const auto number = parse_printed(word);
      const bool cut = number && !is_whole_cell(i, *number);
      if (!number || number->value < 0 || cut) {
        why = fmt::format("\"{}\" is no number as perftest prints it", word);
        return std::nullopt;
      }
      switch (header_->columns[i]) {
        case Column::bytes:
          out.bytes.count = parse_whole(word).value_or(0);
          break;
        case Column::iterations:
          out.iterations = parse_whole(word).value_or(-1);
          break;
        case Column::average:
          average = *number;
          has_average = true;
          out.bandwidth = rate_of(number->value);
          break;
        case Column::peak:
          if (number->value > 0) out.peak = rate_of(number->value);
          break;
        case Column::rate:
          rate = *number;
          has_rate = true;
          out.message_rate = Rate{number->value * 1e6 / (test_.halved ? 2 : 1)};
          break;
        case Column::shortest:
          out.shortest = time_from_us(number->value);
          break;
        case Column::longest:
          out.longest = time_from_us(number->value);
          break;
        case Column::typical:
          out.latency = time_from_us(number->value);
          break;
        case Column::mean:
          out.mean = time_from_us(number->value);
          break;
        case Column::percentile_99:
          out.percentile_99 = time_from_us(number->value);
          break;
        case Column::level:
        case Column::deviation:
        case Column::percentile_999:
        case Column::other:
          break;
      }
    }
    if (out.bytes.count <= 0 || out.iterations < 0) {
      why = "size or iterations are not positive whole numbers";
      return std::nullopt;
    }
    if (has_average && has_rate && !agree(out.bytes, average, rate)) {
      why = fmt::format("average {} and message rate {} are not of one run", average.value,
                        rate.value);
      return std::nullopt;
    }
    if (out.latency && out.shortest && out.longest &&
        (*out.latency < *out.shortest || *out.latency > *out.longest)) {
      why = "the typical latency is not between the least and the largest";
      return std::nullopt;
    }
    return out;
  }

  // Message rates have six decimals, bandwidths six or two and latencies two: a cell that has fewer lost its end.
  bool is_whole_cell(std::size_t column, const PrintedNumber& number) const {
    switch (header_->columns[column]) {
      case Column::bytes:
      case Column::level:
      case Column::iterations:
      case Column::other:
        return true;
      case Column::rate:
        return number.decimals == 6;
      case Column::peak:
      case Column::average:
        return number.decimals == 2 || number.decimals == 6;
      default:
        return number.decimals == 2;
    }
  }

  std::optional<Bandwidth> rate_of(double printed) const {
    const auto rate = bandwidth_from_gbytes(printed * header_->gbytes);
    if (!rate || !test_.halved) return rate;
    return Bandwidth{rate->bps / 2};
  }

  // Average bandwidth = size x message rate, within the rounding of both and 2 %.
  bool agree(Bytes bytes, const PrintedNumber& average, const PrintedNumber& rate) const {
    const auto gbytes = [&](double mpps) { return bytes.value() * mpps * 1e6 / 1e9; };
    const double low = gbytes(rate.value - rate.half_unit) / header_->gbytes;
    const double high = gbytes(rate.value + rate.half_unit) / header_->gbytes;
    return average.value + average.half_unit >= low * 0.98 &&
           average.value - average.half_unit <= high * 1.02;
  }

  void close_test() {
    if (!test_.samples.empty()) {
      if (test_.name.empty() && !answer_for_banner()) {
        test_ = {};
        return;
      }
      measurement_.messages.push_back(std::move(test_));
    }
    test_ = {};
  }

  // Without its banner nothing tells whether a bandwidth is that of one direction or the sum of both.
  bool answer_for_banner() {
    test_.name = "unknown";
    const bool rates = std::ranges::any_of(
        test_.samples, [](const MessageSample& s) { return s.bandwidth.has_value(); });
    if (!rates) return true;
    const auto answer = options_.answers.find("bidirectional");
    const std::string given = answer == options_.answers.end() ? "" : answer->second;
    if (!given.empty() && given != "yes" && given != "no")
      out_.error({}, {}, fmt::format("\"{}\" is neither yes nor no", given),
                 "write --bidirectional yes or no");
    if (given == "no") return true;
    if (given == "yes") {
      test_.traffic = CopyTraffic::opposed;
      test_.halved = true;
      for (MessageSample& sample : test_.samples) halve(sample);
      return true;
    }
    out_.error({file_, static_cast<std::uint32_t>(test_.samples.front().line), 1}, {},
               "the banner above these rows is missing: one direction or the sum of both?",
               "capture the line \"RDMA_Write BW Test\" too, or add --bidirectional yes or no");
    return false;
  }

  static void halve(MessageSample& sample) {
    for (auto* rate : {&sample.bandwidth, &sample.peak}) {
      if (*rate) (*rate)->bps /= 2;
    }
    if (sample.message_rate) sample.message_rate->per_s /= 2;
  }

  void write_facts() {
    Json facts = Json::object();
    facts.set("tool", "perftest");
    Json& tests = facts.set("tests", Json::array());
    for (const MessageTest& test : measurement_.messages) tests.push(facts_of(test));
    Json& problems = facts.set("problems", Json::array());
    for (const std::string& text : measurement_.problems) {
      problems.push(text);
      imported_.note(Kind::warning, text);
    }
    imported_.facts = std::move(facts);
  }

  Json facts_of(const MessageTest& test) {
    Json out = Json::object();
    out.set("name", test.name);
    out.set("bidirectional", test.traffic == CopyTraffic::opposed);
    constexpr std::pair<const char*, const char*> kSetup[] = {
        {"Device", "device"}, {"Link type", "link"}, {"Number of qps", "qps"}, {"Mtu", "mtu"}};
    for (const auto& [key, name] : kSetup) {
      const auto value = test.setup.find(key);
      if (value != test.setup.end()) out.set(name, value->second);
    }
    out.set("rows", std::uint64_t{test.samples.size()});
    const auto [least, most] = std::ranges::minmax_element(test.samples, {}, &MessageSample::bytes);
    out.set("largest_bytes", most->bytes.count);
    const std::string rows = counted(static_cast<std::int64_t>(test.samples.size()), "row");
    if (most->bandwidth) {
      const double gbytes = most->bandwidth->gbytes_per_s();
      out.set("gbit_per_s", gbytes * 8);
      out.set("mbyte_per_s", gbytes * 1e3);
      imported_.note(
          Kind::read,
          fmt::format("{}: {}, {:.5g} Gb/s {} at {}", test.name, rows, gbytes * 8,
                      test.halved ? "per direction (half of what is printed)" : "one direction",
                      to_text(most->bytes)));
    }
    if (least->latency) {
      out.set("latency_us", us_of(*least->latency));
      imported_.note(Kind::read, fmt::format("{}: {}, {} typical at {}", test.name, rows,
                                             to_text(*least->latency), to_text(least->bytes)));
    }
    return out;
  }

  const ImportOptions& options_;
  Imported& imported_;
  Diagnostics& out_;
  IgnoredLines ignored_;
  std::uint32_t file_;
  Measurement measurement_;
  MessageTest test_;
  std::optional<Header> header_;
};

Imported read_perftest(std::string_view text, const std::string& file, const ImportOptions& options,
                       Diagnostics& diagnostics) {
  Imported imported;
  imported.kind = "perftest";
  PerftestImport(options, file, imported, diagnostics).run(text);
  return imported;
}

}  // namespace

extern const Importer kPerftestImporter;
const Importer kPerftestImporter{"perftest", "ib_write_bw, ib_write_lat and their siblings",
                                 "github.com/linux-rdma/perftest, src/perftest_parameters.h",
                                 "bidirectional", read_perftest};

}  // namespace weft
