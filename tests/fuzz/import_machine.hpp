// SPDX-License-Identifier: Apache-2.0
// What every importer of machines owes: problems with places, facts that agree with each other, and a server that `weft run`
// would take.
#pragma once

#include "calibrate/import/import.hpp"
#include "models/catalog.hpp"
#include "sim/fabric/fabric.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft::fuzz {

inline void check_distances(const Json& facts) {
  const Json* distances = facts.find("distances");
  if (distances == nullptr) return;
  const Json& rows = *distances->find("matrix");
  FUZZ_CHECK(rows.items.size() == distances->find("names")->items.size());
  for (std::size_t a = 0; a < rows.items.size(); ++a) {
    FUZZ_CHECK(rows.items[a].items.size() == rows.items.size());
    FUZZ_CHECK(rows.items[a].items[a].text == "X");
    for (std::size_t b = 0; b < a; ++b)
      FUZZ_CHECK(rows.items[a].items[b].text == rows.items[b].items[a].text);
  }
}

inline void check_server(const Json& server) {
  CatalogueAndInput files(to_text(server));
  Diagnostics problems;
  Loader loader(files, problems);
  const Json document = loader.load_file("input.json");
  FUZZ_CHECK(problems.ok());
  FabricSpec spec = read_fabric(document, {}, problems);
  FUZZ_CHECK(problems.ok());
  const Fabric fabric = build_fabric(std::move(spec), link_classes(), problems);
  // The one thing that may be wrong with a machine as it was shown: parts that no path joins, or too many of them.
  FUZZ_CHECK(problems.ok() || !problems.text().empty());
}

inline void check_import(std::string_view kind, std::string_view text) {
  constexpr std::size_t kLongest = 16'384;
  if (text.size() > kLongest) return;
  // A server costs a hundred times what reading does: one input in sixteen makes one, by a sum over its bytes.
  unsigned sum = 0;
  for (const char c : text) sum = sum * 31 + static_cast<unsigned char>(c);
  CatalogueAndInput catalogue("");
  ImportOptions options;
  options.name = "imported";
  if (sum % 16 == 0) options.catalogue = &catalogue;
  if (sum % 32 == 0)
    options.answers = {{"gpu", "a100-sxm4-80gb"}, {"nic", "cx6-hdr"}, {"nvlink", "switched"}};
  for (const Importer* importer : importers()) {
    if (importer->name != kind) continue;
    Diagnostics problems;
    const Imported imported = importer->read(text, "input", options, problems);
    check_problems(problems);
    for (const ImportNote& note : imported.notes) FUZZ_CHECK(!note.text.empty());
    if (!problems.ok()) continue;
    check_distances(imported.facts);
    FUZZ_CHECK(imported.server.is_object() || !imported.open_questions.empty());
    if (imported.server.is_object()) check_server(imported.server);
  }
}

}  // namespace weft::fuzz
