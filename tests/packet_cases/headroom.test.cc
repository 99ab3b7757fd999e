// SPDX-License-Identifier: Apache-2.0
// PFC headroom against the tables that switches are configured with, and against the engine: nothing is lost with what the law
// asks for, something is with four fifths of it. docs/packet.md holds the table; WEFT_UPDATE=1 writes it.
#include "models/packet/headroom.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/packet/packet_engine.hpp"
#include "sim/core/json.hpp"

namespace weft::packet {
namespace {

const std::string kRoot = WEFT_SOURCE_DIR;

// ---- the tables

using Rows = std::map<int, double>;  // metres -> bytes
struct Record {
  std::string chip, device;
  std::map<int, Rows> speeds;  // Gb/s
};

std::string read(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(kRoot + path).rdbuf();
  return out.str();
}

std::vector<Record> records() {
  const std::string path = "/tests/packet_cases/data/pfc_headroom.json";
  Diagnostics problems;
  const Json document = parse_json(read(path), path, problems);
  EXPECT_TRUE(problems.ok());
  std::vector<Record> out;
  for (const Json& entry : document.find("records")->items) {
    Record& record = out.emplace_back();
    record.chip = entry.find("chip")->text;
    record.device = entry.find("device")->text;
    for (const Json& table : entry.find("tables")->items) {
      Rows& rows = record.speeds[static_cast<int>(table.find("gbps")->integer)];
      for (const Json& row : table.find("rows")->items)
        rows[static_cast<int>(row.items[0].integer)] = row.items[1].number;
    }
  }
  return out;
}

constexpr double kTolerance = 0.15;
constexpr int kShortest = 30,
              kLongest = 300;  // metres: tables are rounded below, other media above
constexpr Time kPhy = 120_ns;  // of the Spectrum tables, see docs/packet.md

struct Range {
  double least = 1e9, most = -1e9;
  void add(double v) {
    least = std::min(least, v);
    most = std::max(most, v);
  }
  bool empty() const { return least > most; }
  bool right() const { return !empty() && least >= 1 - kTolerance && most <= 1 + kTolerance; }
  std::string text() const {
    if (empty()) return "-";
    if (most - least < 0.005) return fmt::format("{:.2f}", least);
    return fmt::format("{:.2f} to {:.2f}", least, most);
  }
};

Bandwidth gbps(int v) { return Bandwidth{std::int64_t{v} * 1'000'000'000}; }

double per_metre(const Rows& rows) {
  const auto first = rows.lower_bound(kShortest);
  const auto last = std::prev(rows.upper_bound(kLongest));
  return (last->second - first->second) / (last->first - first->first);
}
bool has_slope(const Rows& rows) {
  const auto first = rows.lower_bound(kShortest);
  if (first == rows.end() || first->first >= kLongest) return false;
  return std::prev(rows.upper_bound(kLongest))->first > first->first;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

HeadroomFacts facts_of(int speed, int metres, double f, Time response, Time phy) {
  HeadroomFacts facts;
  facts.rate = gbps(speed);
  facts.delay = cable_delay(metres);
  facts.phy = phy;
  facts.response = response;
  facts.cell_use = f;
  return facts;
}

// A table against the law: f from its slopes with length, then slopes with length and with speed over those of the law. The
// peer's response is either the standard's longest beside one time of PHYs and MACs, or one time for all speeds.
struct Verdict {
  double f = 0;
  std::map<int, double> lengths;  // by speed: the table's slope over the law's
  Range by_standard, by_time;     // of steps between speeds
  double response_us = 0, phy_ns = 0;
  bool length_right() const {
    return f > 0 && std::ranges::all_of(lengths, [](const auto& entry) {
             return std::abs(entry.second - 1) <= kTolerance;
           });
  }
  std::set<int> stepped;  // speeds with a step to the next; one step alone fits any response
  bool by_standard_right() const {
    return length_right() && stepped.size() > 1 && by_standard.right();
  }
  bool by_time_right() const { return length_right() && stepped.size() > 1 && by_time.right(); }
};

Verdict judge(const Record& record) {
  Verdict out;
  std::vector<double> slopes;
  for (const auto& [speed, rows] : record.speeds) {
    if (!has_slope(rows)) continue;
    const double cable = 2 * cable_delay(1).seconds() * gbps(speed).bytes_per_s();
    out.lengths[speed] = per_metre(rows) / cable;
    slopes.push_back(out.lengths[speed]);
  }
  if (slopes.empty() || median(slopes) < 0.5) return out;  // the table does not know length
  out.f = median(slopes);
  for (auto& [speed, slope] : out.lengths) slope /= out.f;
  std::vector<double> times,
      phys;  // what the step leaves for one time, without and beside the standard's
  const auto steps = [&](const auto& visit) {
    for (auto low = record.speeds.begin(); low != record.speeds.end(); ++low) {
      const auto high = std::next(low);
      if (high == record.speeds.end()) break;
      for (const auto& [metres, bytes] : low->second) {
        if (metres > kLongest || !high->second.contains(metres)) continue;
        visit(low->first, high->first, metres, high->second.at(metres) - bytes);
      }
    }
  };
  const auto standard = [](int speed) { return longest_response(gbps(speed)); };
  steps([&](int low, int high, int metres, double step) {
    const double rate = gbps(high - low).bytes_per_s();
    out.stepped.insert(low);
    const double left = step / out.f - 2 * cable_delay(metres).seconds() * rate;
    times.push_back(left / rate);
    phys.push_back(
        (left - 64.0 * static_cast<double>(pause_quanta(gbps(high)) - pause_quanta(gbps(low)))) /
        rate);
  });
  if (times.empty()) return out;
  const auto time = [](double seconds) { return Time{std::llround(seconds * 1e12)}; };
  const Time response = time(median(times)), phy = time(std::max(0.0, median(phys)));
  out.response_us = response.seconds() * 1e6;
  out.phy_ns = phy.seconds() * 1e9;
  steps([&](int low, int high, int metres, double step) {
    const auto law = [&](int speed, Time taken, Time beside) {
      return static_cast<double>(headroom(facts_of(speed, metres, out.f, taken, beside)));
    };
    out.by_standard.add(step / (law(high, standard(high), phy) - law(low, standard(low), phy)));
    if (response.ps > 0)
      out.by_time.add(step / (law(high, response, Time{0}) - law(low, response, Time{0})));
  });
  return out;
}

std::string row_of(const Record& record, const Verdict& verdict) {
  std::string lengths;
  for (const auto& [speed, slope] : verdict.lengths)
    lengths += fmt::format("{}{}: {:.2f}", lengths.empty() ? "" : ", ", speed, slope);
  const bool known = verdict.f > 0;
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", record.device, record.chip,
                     known ? fmt::format("{:.2f}", verdict.f) : "no length in it",
                     known ? lengths : "-", verdict.by_standard.text(),
                     verdict.by_time.empty() ? "-"
                                             : fmt::format("{} ({:.2f} us)", verdict.by_time.text(),
                                                           verdict.response_us),
                     !known || !verdict.length_right() ? "no"
                     : verdict.stepped.size() < 2      ? "length yes, too few speeds"
                     : verdict.by_standard_right()     ? "both, the standard's response"
                     : verdict.by_time_right()         ? "both, one response time"
                                                       : "length yes, speed no");
}

std::set<std::string> devices(bool (*good)(const Verdict&)) {
  std::set<std::string> out;
  for (const Record& record : records()) {
    if (good(judge(record))) out.insert(record.device);
  }
  return out;
}

TEST(HeadroomTables, SlopesWithLengthAndSpeedAreRightOnTheseChips) {
  EXPECT_EQ(devices([](const Verdict& v) { return v.by_standard_right(); }),
            (std::set<std::string>{"ACS-SN5600", "Mellanox-SN5600-C256S1", "Mellanox-SN5600-V256",
                                   "Mellanox-SN5640-C512X2", "Mellanox-SN4280-C48",
                                   "Mellanox-SN4700-C128", "Mellanox-SN4700-O8C48"}));
  EXPECT_EQ(devices([](const Verdict& v) { return !v.by_standard_right() && v.by_time_right(); }),
            (std::set<std::string>{"Dell-Z9864f-O64", "DellEMC-S5448f-C48O8", "DellEMC-Z9664f-O64",
                                   "NH-4210-F-O256", "Supermicro_sse_t7132s",
                                   "d64p512t_128x400G-2x10G"}));
}

TEST(HeadroomTables, TheseTablesDoNotFollowTheLaw) {
  EXPECT_EQ(
      devices([](const Verdict& v) { return v.f > 0 && !v.length_right(); }),
      (std::set<std::string>{"NH-5010-F-O32-C32", "Nokia-IXR7220-H4-64D", "Nokia-IXR7220-H5-32D"}));
  EXPECT_EQ(
      devices([](const Verdict& v) { return v.f == 0; }),
      (std::set<std::string>{
          "Arista-7050CX3-32S-C28S4", "Arista-7050CX3-32S-C32", "Arista-7060X6-16PE-384C-O128S2",
          "Arista-7060X6-64PE-256x200G", "Arista-7060X6-64PE-O128S2", "Arista-7280R4-32QF-32DF-64O",
          "Arista-7800R3-48CQ2-C48", "DS3000", "Dell-E3224F", "NH-4010-128x400G-2x25G"}));
}

TEST(HeadroomTables, DocsHoldTheTable) {
  std::string table =
      "| device | chip | f | length: table / law at 100 to 800 Gb/s | speed: standard's response "
      "(t_phy) | "
      "speed: one time | right within 15 % |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Record& record : records()) table += row_of(record, judge(record));
  const std::string page = read("/docs/packet.md");
  const std::string begin = "<!-- headroom -->\n", end = "<!-- end of headroom -->\n";
  const std::size_t from = page.find(begin), to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::string updated = page.substr(0, from + begin.size()) + table + page.substr(to);
  if (std::getenv("WEFT_UPDATE") != nullptr) {
    std::ofstream(kRoot + "/docs/packet.md") << updated;
    return;
  }
  EXPECT_EQ(page, updated) << "WEFT_UPDATE=1 tests_packet_cases writes it";
}

// ---- the engine

struct Case {
  int speed, metres;
  std::uint32_t cell;
};

// Packets of 64 B come in faster than they leave; every PAUSE waits behind a frame of a whole MTU. Returns the bytes lost.
std::int64_t lost(const Case& c, double share) {
  constexpr std::int64_t kMtu = 4096, kSmall = 64, kXoff = 100'000;
  HeadroomFacts facts = facts_of(c.speed, c.metres, worst_cell_use(c.cell, kSmall),
                                 longest_response(gbps(c.speed)), kPhy);
  facts.lossless_mtu = kMtu;
  facts.port_mtu = kMtu + kControlBytes;
  EngineOptions options;
  options.grain = kMtu;
  options.cell = c.cell;
  Engine engine(options);
  NodeSpec end;
  end.endpoint = true;
  const std::uint32_t sender = engine.add_node(end);
  const std::uint32_t middle = engine.add_node({});
  const std::uint32_t receiver = engine.add_node(end);
  PortSpec port;
  port.wire = facts.rate;
  port.delay = facts.delay;
  const auto link = [&](std::uint32_t from, std::uint32_t to) {
    port.from = from;
    port.to = to;
    return engine.add_port(port);
  };
  const std::uint32_t back = link(middle, sender);
  port.guard = Guard::pause;
  port.xoff = kXoff;
  port.headroom = static_cast<std::int64_t>(share * static_cast<double>(headroom(facts)));
  port.response = facts.response;
  port.processing = facts.phy;
  const std::uint32_t in = link(sender, middle);
  engine.join(in, back);
  port.processing = Time{0};
  port.xoff = 1 << 30;
  const std::uint32_t other = link(receiver, middle);
  port.guard = Guard::endpoint;
  port.wire = 1_Gbps;
  const std::uint32_t out = link(middle, receiver);
  engine.join(other, out);
  engine.finish_build();
  const Path forward = engine.add_path({in, out}), against = engine.add_path({other, back});
  FlowSpec frames;
  frames.bytes = 400 * kMtu;
  frames.path = against;
  frames.ack_every = 0;
  engine.start(std::move(frames), Time{0});
  const std::int64_t packets = 2 * (kXoff + headroom(facts)) / c.cell;
  for (std::int64_t i = 0; i < packets; ++i) {
    FlowSpec small;
    small.bytes = kSmall;
    small.path = forward;
    small.ack_every = 0;
    small.label = static_cast<std::uint64_t>(i);
    engine.start(std::move(small), 2 * facts.delay + 1_us);  // the frames have come by then
  }
  for (int i = 0; i < 1'000'000 && engine.next_event() < 100_us; ++i) {
    engine.run(100_us);
    engine.ended().clear();
  }
  EXPECT_GT(engine.stats(in).pauses, 0u);
  engine.check_conservation();
  return engine.counters().dropped;
}

TEST(Headroom, NothingIsLostWithItAndSomethingWithFourFifths) {
  for (const Case& c : {Case{100, 5, 192}, Case{100, 300, 254}, Case{400, 40, 192},
                        Case{400, 300, 254}, Case{800, 100, 128}}) {
    SCOPED_TRACE(fmt::format("{} Gb/s, {} m, cells of {} B", c.speed, c.metres, c.cell));
    EXPECT_EQ(lost(c, 1.0), 0);
    EXPECT_GT(lost(c, 0.8), 0);
  }
}

}  // namespace
}  // namespace weft::packet
