// SPDX-License-Identifier: Apache-2.0
// The table of nccl-tests, by its header. Rows without a header are read by their shape, and then only when size, time and
// algbw agree; a row that does not parse completely is not used.
#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "calibrate/import/nccl_row.hpp"

namespace weft {
namespace {

// The word after `key` among the words of a line.
std::optional<std::string_view> value_after(const std::vector<Word>& words, std::string_view key) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].text == key) return words[i + 1].text;
  }
  return std::nullopt;
}

std::size_t width_of(const LogLine& line) { return line.offset + line.text.size(); }

// Where a terminal broke the lines: no line is longer, and several are exactly this long. 0 when there is only one of that
// length, as pieces of lines are then no proof.
std::size_t wrap_width_of(const std::vector<LogLine>& lines) {
  std::size_t longest = 0, count = 0;
  for (const LogLine& line : lines) {
    const std::size_t width = width_of(line);
    if (width > longest) count = 0;
    longest = std::max(longest, width);
    if (width == longest) ++count;
  }
  return count > 1 ? longest : 0;
}

class TextReader {
 public:
  TextReader(std::uint32_t file, std::size_t wrap_width, IgnoredLines& ignored)
      : file_(file), wrap_width_(wrap_width), ignored_(ignored) {}

  void line(const LogLine& line) {
    const std::string_view text = trimmed(line.text);
    if (line.damaged) {
      drop_fragment();
      return begins_with_digit(text) ? ignored_.row(line, "it holds broken escape codes")
                                     : ignored_.noise(line);
    }
    if (take_header(line, text)) return;
    header_open_ = false;
    if (begins_with_digit(text) || fragment_) return take_row(line);
    if (text.empty()) return;
    if (!take_words(line, text)) ignored_.noise(line);
  }

  NcclLog finish() {
    drop_fragment();
    if (log_.tables.size() > 1 && log_.tables.back().rows.empty()) log_.tables.pop_back();
    return std::move(log_);
  }

 private:
  static constexpr std::size_t kMostCells = 23;  // with per-iteration columns and a time stamp

  // ---- the header, which a terminal may have wrapped

  bool take_header(const LogLine& line, std::string_view text) {
    auto columns = nccl_header_of(text);
    if (!columns) return false;
    if (columns->front() == NcclColumn::size) {
      drop_fragment();
      columns_ = *columns;
      if (!table().rows.empty()) begin_table();
    } else if (header_open_) {
      columns_.insert(columns_.end(), columns->begin(), columns->end());
    } else {
      return false;
    }
    header_open_ = line.finished;
    if (is_complete_header(columns_)) {
      log_.header = true;
      const auto has = [&](NcclColumn c) {
        return std::ranges::find(columns_, c) != columns_.end();
      };
      log_.cpu_time = has(NcclColumn::cpu_time);
      log_.old_error = has(NcclColumn::error);
    }
    return true;
  }

  // ---- rows

  void take_row(const LogLine& line) {
    std::string why;
    const bool next = fragment_ && line.number == fragment_->number + fragment_lines_;
    if (next && fragment_wrapped_) {
      // A terminal breaks a long line in the middle of a cell or between two.
      LogLine joined = *fragment_;
      joined.finished = line.finished;
      for (const std::string_view gap : {"", " "}) {
        joined.text = fmt::format("{}{}{}", fragment_->text, gap, line.text);
        if (auto row = read_nccl_row(joined.text, line.finished, columns_, why)) {
          fragment_.reset();
          return add_row(joined, std::move(*row));
        }
      }
    }
    if (begins_with_digit(line.text)) {
      if (auto row = read_nccl_row(line.text, line.finished, columns_, why)) {
        drop_fragment();
        return add_row(line, std::move(*row));
      }
    }
    if (!is_cells(line.text)) {
      drop_fragment();
      if (!take_words(line, trimmed(line.text))) ignored_.noise(line);
      return;
    }
    if (next && fragment_wrapped_ && fragment_lines_ < 4 && width_of(line) == wrap_width_ &&
        words_of(fragment_->text).size() + words_of(line.text).size() <= kMostCells) {
      fragment_->text += line.text;
      ++fragment_lines_;
      return;
    }
    drop_fragment();
    if (!begins_with_digit(line.text)) return ignored_.noise(line);
    fragment_ = line;
    fragment_lines_ = 1;
    fragment_wrapped_ = width_of(line) == wrap_width_;
    fragment_why_ = why;
  }

  // Whether a line could be a piece of a row: numbers, and the few words that stand between them.
  static bool is_cells(std::string_view text) {
    const std::vector<Word> words = words_without_tags(text);
    std::size_t others = 0;
    for (const Word& word : words) others += parse_printed(word.text) || word.text == "N/A" ? 0 : 1;
    return !words.empty() && words.size() <= kMostCells && others <= 3;
  }

  void drop_fragment() {
    if (fragment_) ignored_.row(*fragment_, fragment_why_);
    fragment_.reset();
  }

  void add_row(const LogLine& line, NcclLogRow row) {
    row.place = place_in(line, file_);
    const auto key = std::tuple(row.bytes, row.type, row.operation, row.root.value_or(-1));
    if (keys_.contains(key) || table().average) begin_table();
    keys_.insert(key);
    if (table().rows.empty()) table().environment = environment_;
    table().rows.push_back(std::move(row));
  }

  NcclTable& table() {
    if (log_.tables.empty()) log_.tables.emplace_back();
    return log_.tables.back();
  }
  void begin_table() {
    if (table().rows.empty()) return;
    NcclTable next;
    log_.tables.push_back(std::move(next));
    keys_.clear();
  }

  // ---- other lines of nccl-tests

  bool take_words(const LogLine& line, std::string_view text) {
    while (text.starts_with("#")) text = trimmed(text.substr(1));
    if (text.empty() || text.starts_with("(B)") || text.starts_with("out-of-place") ||
        text == "Using devices")
      return true;
    const std::vector<Word> words = words_of(text);
    return take_footer(line, text) || take_start(line, text, words) || take_device(line, words) ||
           take_nccl(text, words) || take_failure(line, text);
  }

  bool take_footer(const LogLine& line, std::string_view text) {
    const auto value = [&](std::string_view key) -> std::optional<std::string_view> {
      const auto rest = after(text, key);
      const auto number = rest ? after(*rest, ":") : std::nullopt;
      if (!number) return std::nullopt;
      return number->substr(0, number->find(' '));
    };
    if (const auto average = value("Avg bus bandwidth")) {
      if (line.finished && !table().average) table().average = parse_printed(*average);
      table().below = place_in(line, file_);
      return true;
    }
    if (const auto wrong = value("Out of bounds values")) {
      table().out_of_bounds = parse_whole(*wrong);
      if (text.find("FAILED") != std::string_view::npos && table().out_of_bounds.value_or(0) == 0)
        table().out_of_bounds = 1;
      table().below = place_in(line, file_);
      return true;
    }
    return false;
  }

  bool take_start(const LogLine& line, std::string_view text, const std::vector<Word>& words) {
    if (words[0].text == "nccl-tests" && words.size() > 2 && words[1].text == "version") {
      if (line.finished || words.size() > 3) log_.version = words[2].text;
      for (std::size_t i = 3; i < words.size(); ++i) {
        // What ran, not what it was compiled with; a number at a cut end may have lost digits.
        const auto library = after(words[i].text, "nccl-library=");
        if (library && begins_with_digit(*library) && (line.finished || i + 1 < words.size()))
          log_.nccl = *library;
      }
      return true;
    }
    if (words[0].text == "nThread" || text.starts_with("nThreads ")) {
      if (!table().rows.empty()) environment_ = exported_;  // not of the run before
      take_settings(words);
      return true;
    }
    if (log_.predicted && words[0].text == "NCCL" && words.size() > 3) {
      take_predicted_setup(words);
      return true;
    }
    const std::string program = collective_of_program(text);
    if (program.empty()) return false;
    if (text.starts_with("Collective test concluded")) {
      if (table().program.empty()) table().program = program;
    } else {
      if (!table().rows.empty()) environment_ = exported_;
      begin_table();
      table().program = program;
      take_variables(words, environment_);
    }
    if (text.find(" predicted by weft ") != std::string_view::npos) {
      log_.predicted = true;
      for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i].text == "ranks") keep_largest(log_.stated_ranks, words[i - 1].text);
        if (words[i].text.starts_with("server")) keep_largest(log_.stated_nodes, words[i - 1].text);
      }
    }
    return true;
  }

  // "NCCL 2.27.7, harness process-per-gpu": the harness as a run of nccl-tests shows it.
  void take_predicted_setup(const std::vector<Word>& words) {
    log_.nccl = words[1].text.substr(0, words[1].text.find(','));
    const std::string_view harness = words[3].text;
    if (harness == "graph") log_.setup["graph"] = "1";
    if (harness == "process-per-gpu") log_.setup["nGpus"] = "1";
    if (harness == "one-process")
      log_.setup["nGpus"] = fmt::format("{}", log_.stated_ranks.value_or(0));
  }

  // "nThread 1 nGpus 8 step: 2(factor) warmup iters: 5": words up to a number are its name.
  void take_settings(const std::vector<Word>& words) {
    std::string key;
    for (const Word& word : words) {
      if (begins_with_digit(word.text)) {
        if (!key.empty()) log_.setup[key] = word.text;
        key.clear();
        continue;
      }
      if (!key.empty()) key += ' ';
      key += word.text;
      if (key.ends_with(":")) key.pop_back();
    }
  }

  bool take_device(const LogLine& line, const std::vector<Word>& words) {
    if (words[0].text != "Rank" || words.size() < 6) return false;
    const auto rank = parse_whole(words[1].text);
    const auto host = value_after(words, "on");
    const auto device = value_after(words, "device");
    const bool in_range = rank && *rank >= 0 && *rank <= 10'000'000;
    if (!in_range || !host || !device || !line.finished) return false;
    MeasuredDevice out;
    out.rank = static_cast<int>(*rank);
    out.host = *host;
    const auto number = parse_whole(*device);
    if (number && *number >= 0 && *number <= 1'000'000) out.device = static_cast<int>(*number);
    const std::size_t open = line.text.find('['), close = line.text.find(']');
    if (open != std::string::npos && close != std::string::npos && close > open) {
      out.bus = line.text.substr(open + 1, close - open - 1);
      out.product = trimmed(std::string_view(line.text).substr(close + 1));
    }
    if (std::ranges::find(log_.devices, out.rank, &MeasuredDevice::rank) != log_.devices.end())
      return true;  // the list of a second run
    log_.devices.push_back(std::move(out));
    return true;
  }

  // What NCCL itself says: its version, and how many ranks a communicator has.
  bool take_nccl(std::string_view text, const std::vector<Word>& words) {
    bool used = false;
    if (text.starts_with("export NCCL_")) {
      used = take_variables(words, exported_);
      take_variables(words, environment_);
    }
    // "NCCL INFO NCCL_ALGO set by environment to Ring."
    constexpr std::string_view kSet = " set by environment to ";
    if (const std::size_t at = text.find(kSet); at != std::string_view::npos) {
      const std::string_view before = text.substr(0, at);
      const std::size_t space = before.rfind(' ');
      used = keep_nccl_variable(environment_,
                                before.substr(space == std::string_view::npos ? 0 : space + 1),
                                text.substr(at + kSet.size())) ||
             used;
    }
    if (const std::size_t at = text.find("NCCL version "); at != std::string_view::npos) {
      const std::string_view rest = text.substr(at + 13);
      if (log_.nccl.empty()) log_.nccl = rest.substr(0, rest.find(' '));
      used = true;
    }
    for (const std::string_view key : {"nRanks", "nranks"}) {
      const auto ranks = value_after(words, key);
      if (!ranks) continue;
      keep_largest(log_.stated_ranks, *ranks);
      if (const auto nodes = value_after(words, "nNodes")) keep_largest(log_.stated_nodes, *nodes);
      used = true;
    }
    return used;
  }
  // "mpirun -x NCCL_ALGO=Ring ./all_reduce_perf": as the shell reads it.
  static bool take_variables(const std::vector<Word>& words,
                             std::map<std::string, std::string>& into) {
    bool used = false;
    for (const Word& word : words) {
      const std::size_t equals = word.text.find('=');
      if (equals == std::string_view::npos) continue;
      used = keep_nccl_variable(into, word.text.substr(0, equals), word.text.substr(equals + 1)) ||
             used;
    }
    return used;
  }
  static void keep_largest(std::optional<int>& known, std::string_view word) {
    const auto value = parse_whole(word);
    if (value && *value > 0 && *value < 10'000'000)
      known = std::max(known.value_or(0), static_cast<int>(*value));
  }

  bool take_failure(const LogLine& line, std::string_view text) {
    constexpr std::array<std::string_view, 7> kSigns{
        "Test CUDA failure", "Test NCCL failure", "Test failure", "Segmentation fault",
        "Bus error",         "Out of memory",     "Aborted"};
    for (const std::string_view sign : kSigns) {
      const std::size_t at = text.find(sign);
      if (at == std::string_view::npos) continue;
      if (!log_.failure.empty()) return true;
      const std::size_t quote = text.find('\'', at), end = text.rfind('\'');
      std::string_view what = quote != std::string_view::npos && end > quote
                                  ? text.substr(quote + 1, end - quote - 1)
                                  : text.substr(at);
      for (const std::string_view article : {"an ", "a ", "the "}) {
        if (what.starts_with(article)) what.remove_prefix(article.size());
      }
      if (what.ends_with(" was encountered")) what.remove_suffix(16);
      log_.failure = what;
      log_.failure_place = place_in(line, file_, at);
      return true;
    }
    return false;
  }

  std::uint32_t file_;
  std::size_t wrap_width_;
  IgnoredLines& ignored_;
  NcclLog log_;
  std::map<std::string, std::string> environment_,
      exported_;  // of the run that is being read; of all
  NcclColumns columns_;
  bool header_open_ = false;
  std::set<std::tuple<std::int64_t, std::string, std::string, int>> keys_;
  std::optional<LogLine> fragment_;
  std::uint32_t fragment_lines_ = 1;
  bool fragment_wrapped_ = false;
  std::string fragment_why_;
};

}  // namespace

NcclLog read_nccl_text(std::string_view text, std::uint32_t file, IgnoredLines& ignored) {
  const std::vector<LogLine> lines = clean_lines(text);
  TextReader reader(file, wrap_width_of(lines), ignored);
  for (const LogLine& line : lines) reader.line(line);
  return reader.finish();
}

}  // namespace weft
