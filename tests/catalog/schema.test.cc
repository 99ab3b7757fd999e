// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/schema.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "sim/fabric/spec.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(WEFT_SOURCE_DIR) / "configs/schema";

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Schema, FilesAreWhatTheStructsGenerate) {
  const bool update = std::getenv("WEFT_UPDATE") != nullptr;
  for (const auto& [name, text] : schema_files()) {
    const fs::path path = kFolder / name;
    if (update) write(path, text);
    if (text_of(path) == text) continue;
    write(path.string() + ".new", text);
    ADD_FAILURE() << path << " differs from " << name
                  << ".new beside it; if the new one is right:\n"
                  << "    WEFT_UPDATE=1 tools/test -R tests_catalog/Schema";
  }
}

TEST(Schema, NoFileIsLeftOver) {
  const auto files = schema_files();
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".json") continue;
    EXPECT_TRUE(files.contains(entry.path().filename().string())) << entry.path();
  }
}

TEST(Schema, IsOneJsonDocumentThatForbidsUnknownKeys) {
  for (const auto& [name, text] : schema_files()) {
    Diagnostics out;
    const Json schema = parse_json(text, name, out);
    ASSERT_TRUE(out.ok()) << out.text();
    EXPECT_EQ(schema.find("$id")->text, name);
    EXPECT_FALSE(schema.find("additionalProperties")->boolean);
  }
}

// The reader lists the keys it knows when it meets one that it does not.
TEST(Schema, FabricHasTheKeysOfItsReader) {
  Diagnostics parsing, reading;
  const Json document = parse_json(
      R"({"qqqqqqqq": 1, "server": {"nodes": [{"id": "gpu0", "kind": "gpu"}]}})", "f", parsing);
  read_fabric(document, {}, reading);
  std::string known;
  for (const Problem& problem : reading.problems()) {
    if (problem.pointer == "/qqqqqqqq") known = problem.cure;
  }
  const Json schema = parse_json(schema_files().at("fabric.schema.json"), "s", parsing);
  std::string expected = "known keys: ";
  for (const JsonMember& member : schema.find("properties")->members) {
    expected += (expected.ends_with(": ") ? "" : ", ") + member.key;
  }
  EXPECT_EQ(known, expected);
}

}  // namespace
}  // namespace weft
