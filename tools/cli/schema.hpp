// SPDX-License-Identifier: Apache-2.0
// JSON Schemas (draft 2020-12) of the catalogue's files, generated from the structs that read them. configs/schema holds them
// for editors and other tools; a test compares them, and WEFT_UPDATE=1 in its environment writes them anew:
//
//   WEFT_UPDATE=1 tools/test -R tests_catalog/Schema
//
// What a schema cannot say is left to the reader: names that exist, laws of link classes, ranges of node names.
#pragma once

#include <map>
#include <string>

namespace weft {

// File name ("gpu.schema.json") -> text, for every kind that `weft check` knows.
std::map<std::string, std::string> schema_files();

}  // namespace weft
