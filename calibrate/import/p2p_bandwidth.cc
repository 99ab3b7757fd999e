// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/p2p_bandwidth.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "calibrate/import/copy_matrix.hpp"
#include "calibrate/log_facts.hpp"

namespace weft {
namespace {

using Kind = ImportNote::Kind;

// What the line above a matrix says about it.
struct Title {
  std::string text, last_corner;
  bool latency = false, both_ways = false, peer_access = false;
};

// Only a whole title counts: half of one could belong to several matrices.
std::optional<Title> title_of(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  Title out;
  out.text = text;
  out.peer_access = has("P2P=Enabled");
  if (out.peer_access == has("P2P=Disabled")) return std::nullopt;
  if (text.starts_with("P2P=") && has("Latency") && text.ends_with("Matrix (us)")) {
    out.latency = true;
    return out;
  }
  out.both_ways = text.starts_with("Bidirectional P2P=");
  if (!out.both_ways && !text.starts_with("Unidirectional P2P=")) return std::nullopt;
  if (!has("Bandwidth") || !text.ends_with("Matrix (GB/s)")) return std::nullopt;
  return out;
}

class P2pImport {
 public:
  P2pImport(const ImportOptions& options, const std::string& file, Imported& imported,
            Diagnostics& out)
      : imported_(imported),
        out_(out),
        ignored_(imported),
        file_(out.add_file(file)),
        measurement_(new_measurement(options.name.empty() ? "measurement" : options.name,
                                     "p2pBandwidthLatencyTest", file)) {}

  void run(std::string_view text) {
    for (const LogLine& line : clean_lines(text)) take(line);
    close_table();
    ignored_.finish();
    if (measurement_.matrices.empty()) {
      out_.error({file_, 0, 0}, {}, "no measurements of p2pBandwidthLatencyTest",
                 "a capture has lines such as \"Unidirectional P2P=Enabled Bandwidth (P2P Writes) "
                 "Matrix (GB/s)\" and a matrix below each");
    }
    conclude();
    write_facts();
    if (out_.ok()) imported_.measurement = write_measurement(measurement_);
  }

 private:
  void take(const LogLine& line) {
    const std::string_view text = trimmed(line.text);
    if (connectivity_ && begins_with_digit(text)) return;
    if (table_.take_row(line, ignored_)) return;
    const bool titled = text.find("Matrix") != std::string_view::npos;
    if (titled) {  // also one that is damaged: what follows is not of the title before
      close_table();
      connectivity_ = false;
      title_.reset();
    }
    if (line.damaged) return ignored_.noise(line);
    if (CopyMatrixReader next; next.take_head(line)) {
      close_table();
      table_ = std::move(next);
      return open_table(line);
    }
    if (text.starts_with("P2P Connectivity Matrix")) {
      connectivity_ = true;
      return;
    }
    if (auto title = titled && line.finished ? title_of(text) : std::nullopt) {
      title_ = std::move(title);
      return;
    }
    if (text.empty() || take_device(text, line.finished) || is_remark(text)) return;
    ignored_.noise(line);
  }

  void open_table(const LogLine& line) {
    if (connectivity_) return table_.close();
    const std::string& corner = table_.corner();
    const bool known =
        title_ && (title_->latency ? corner == "GPU" || corner == "CPU" : corner == "D\\D");
    if (known && title_->last_corner != corner) {
      current_ = *title_;
      title_->last_corner = corner;
      // Latencies come twice below one title, timed by the GPU and then by the CPU.
      if (!title_->latency || corner == "CPU") title_.reset();
      return;
    }
    table_.close();
    ignored_.row(line, "a matrix without a title that says what it holds");
  }

  void close_table() {
    if (!table_.cells().empty() && current_) add(*current_);
    current_.reset();
    table_ = {};
  }

  void add(const Title& title) {
    MeasuredMatrix out;
    const char* access = title.peer_access ? "Enabled" : "Disabled";
    out.name = title.latency
                   ? fmt::format("P2P={} Latency, {}", access, table_.corner())
                   : fmt::format("{} P2P={} Bandwidth",
                                 title.both_ways ? "Bidirectional" : "Unidirectional", access);
    out.description = title.text;
    out.traffic = title.both_ways ? CopyTraffic::opposed : CopyTraffic::alone;
    out.peer_access = title.peer_access;
    out.staged = !title.peer_access;
    out.halved = title.both_ways;
    if (title.latency) {
      out.definition = table_.corner() == "GPU" ? "one small copy, timed by events on the GPU"
                                                : "one small copy, timed on the CPU";
    }
    const CopyCells& cells = table_.cells();
    gpus_ = std::max(gpus_, table_.columns());
    if (cells.size() < table_.columns())
      problem(fmt::format("{}: {} of {} rows", out.name, cells.size(), table_.columns()));
    for (std::size_t row = 0; row < cells.size(); ++row) {
      for (std::size_t column = 0; column < cells[row].size(); ++column) {
        const auto value = cells[row][column];
        if (row == column || !value || *value <= 0) continue;
        MeasuredPair pair{fmt::format("gpu{}", row), fmt::format("gpu{}", column), {}, {}};
        if (title.latency) {
          pair.latency = time_from_us(*value);
        } else {
          pair.bandwidth = bandwidth_from_gbytes(title.both_ways ? *value / 2 : *value);
        }
        if (pair.latency || pair.bandwidth) out.pairs.push_back(std::move(pair));
      }
    }
    if (!out.pairs.empty()) measurement_.matrices.push_back(std::move(out));
  }

  // "Device: 0, NAME, pciBusID: 19, pciDeviceID: 0, pciDomainID:0" and "Device=0 CANNOT Access Peer Device=1".
  bool take_device(std::string_view text, bool finished) {
    if (text.starts_with("Device=")) {
      if (text.find(" CANNOT Access Peer ") != std::string_view::npos) {
        stated_access_ = false;
      } else if (text.find(" CAN Access Peer ") != std::string_view::npos) {
        stated_access_ = stated_access_.value_or(true);
      }
      return true;
    }
    const auto rest = after(text, "Device:");
    if (!rest) return false;
    const std::size_t comma = rest->find(','), bus = rest->find(", pciBusID:");
    const auto number = parse_whole(rest->substr(0, comma));
    if (!finished || !number || *number < 0 || *number > 1'000'000 || bus == std::string_view::npos)
      return true;
    MeasuredDevice out;
    out.rank = out.device = static_cast<int>(*number);
    if (bus > comma) out.product = trimmed(rest->substr(comma + 1, bus - comma - 1));
    const std::string_view address = trimmed(rest->substr(bus + 11));
    out.bus = address.substr(0, address.find(','));
    measurement_.devices.push_back(std::move(out));
    return true;
  }

  static bool is_remark(std::string_view text) {
    return text.starts_with("[P2P (Peer-to-Peer)") || text.starts_with("***NOTE") ||
           text.starts_with("So you can see lesser") || text.starts_with("NOTE:");
  }

  void problem(const std::string& text) {
    imported_.note(Kind::warning, text);
    measurement_.problems.push_back(text);
  }

  // ---- what the matrices say together

  void conclude() {
    works_ = peer_access_works(measurement_);
    if (works_ == false) {
      for (MeasuredMatrix& matrix : measurement_.matrices) matrix.staged = true;
      imported_.note(Kind::read,
                     "P2P not available: the matrices with peer access on and off are equal; all "
                     "copies are host-staged");
      if (stated_access_ == true)
        problem("the driver says that the GPUs can access each other, yet it changes nothing");
    } else if (stated_access_ == false && !works_) {
      imported_.note(Kind::unknown,
                     "whether the copies went through host memory: some pairs cannot access each "
                     "other and only one of the two matrices is there");
    }
  }

  void write_facts() {
    Json facts = Json::object();
    facts.set("tool", "p2pBandwidthLatencyTest");
    facts.set("gpus", std::uint64_t{gpus_});
    Json& devices = facts.set("devices", Json::array());
    for (const MeasuredDevice& device : measurement_.devices) devices.push(write_config(device));
    Json& access = facts.set("peer_access", Json::object());
    access.set("stated", stated_access_ ? Json(*stated_access_) : Json{});
    access.set("works", works_ ? Json(*works_) : Json{});
    facts.set("tests", facts_of_matrices(measurement_));
    Json& problems = facts.set("problems", Json::array());
    for (const std::string& text : measurement_.problems) problems.push(text);
    for (const MeasuredMatrix& m : measurement_.matrices) {
      const auto time = median_latency(m);
      imported_.note(Kind::read,
                     fmt::format("{}: {} over {}{}{}", m.name,
                                 time ? to_text(*time) : fmt::format("{:.4g} GB/s", median_gbs(m)),
                                 counted(static_cast<std::int64_t>(m.pairs.size()), "pair"),
                                 m.halved ? ", one direction of the printed sum" : "",
                                 m.staged ? ", host-staged" : ""));
    }
    imported_.facts = std::move(facts);
  }

  Imported& imported_;
  Diagnostics& out_;
  IgnoredLines ignored_;
  std::uint32_t file_;
  Measurement measurement_;
  CopyMatrixReader table_;
  std::optional<Title> title_, current_;
  std::optional<bool> stated_access_, works_;
  std::size_t gpus_ = 0;
  bool connectivity_ = false;
};

Imported read_p2p(std::string_view text, const std::string& file, const ImportOptions& options,
                  Diagnostics& diagnostics) {
  Imported imported;
  imported.kind = "p2p";
  P2pImport(options, file, imported, diagnostics).run(text);
  return imported;
}

}  // namespace

extern const Importer kP2pImporter;
const Importer kP2pImporter{"p2p", "p2pBandwidthLatencyTest of the CUDA samples",
                            "github.com/NVIDIA/cuda-samples, p2pBandwidthLatencyTest", "",
                            read_p2p};

}  // namespace weft
