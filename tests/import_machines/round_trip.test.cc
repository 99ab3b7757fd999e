// SPDX-License-Identifier: Apache-2.0
// The matrix of the server that is written is the matrix that was read: the tree adds nothing and loses nothing.
#include <filesystem>

#include "sim/fabric/analysis.hpp"
#include "tests/import_machines/import_machine_test.hpp"

namespace weft::test {
namespace {

// The server knows one kind of way through a socket where nvidia-smi tells two.
std::string as_simulated(const std::string& code) { return code == "NODE" ? "PHB" : code; }

class EveryMatrix : public testing::TestWithParam<std::string> {};

TEST_P(EveryMatrix, ComesBackFromItsServer) {
  Reading reading = import_file(GetParam());
  if (!reading.imported.server.is_object()) reading = import_file(GetParam(), {{"gpu", "l40s"}});
  const bool grace =
      GetParam().starts_with("g");  // NICs are SYS to all, their sockets are not shown
  const ServerType type = fabric_of(reading).types().front();
  const AffinityMatrix matrix = affinity_matrix(type);
  const std::vector<std::string> names = texts(at(reading.facts(), "/distances/names"));
  const std::size_t gpus = type.gpus.size();
  std::size_t compared = 0;
  for (std::size_t i = 0; i < matrix.locals.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (j >= gpus) continue;  // two NICs
      const auto place = [&](std::size_t row) {
        const std::string& id = type.node_names[matrix.locals[row]];
        return row < gpus ? row : gpus + std::stoul(id.substr(3));
      };
      const std::string shown = distance(reading.facts(), names[place(i)], names[place(j)]);
      const std::string built = matrix.cells[i][j];
      // A pair within a NUMA node that a virtual machine shows as SYS cannot be built so.
      const bool hidden = shown == "SYS" && built == "PHB";
      const bool told = !notes(reading, ImportNote::Kind::warning).empty();
      if (hidden && (told || grace)) continue;
      EXPECT_EQ(built, as_simulated(shown)) << names[place(i)] << " " << names[place(j)];
      ++compared;
    }
  }
  if (gpus > 1) {
    EXPECT_GT(compared, 0U);
  }
}

std::vector<std::string> matrices() {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/tests/import_machines/data")) {
    if (entry.path().extension() == ".txt") out.push_back(entry.path().filename().string());
  }
  std::ranges::sort(out);
  return out;
}

std::string test_name(const testing::TestParamInfo<std::string>& one) {
  std::string name = one.param.substr(0, one.param.size() - 4);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryMatrix, testing::ValuesIn(matrices()), test_name);

}  // namespace
}  // namespace weft::test
