// SPDX-License-Identifier: Apache-2.0
// Reading what people have: captures and logs of other tools, one format per file.
//
// An importer is tolerant of form (escape codes, prefixes, lines of other programs) and strict about meaning: what it cannot
// know it names as unknown, what it did not use it names as ignored, and where two readings are possible it refuses. Nothing
// is read from the machine that runs weft.
//
//   Imported imported = importer.read(text, "topo.txt", options, diagnostics);
//
// Errors go to `diagnostics` with their line and column; the result is complete only when diagnostics.ok().
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/core/json.hpp"

namespace weft {

class FileSource;

// What a person is told about the reading, one line each.
struct ImportNote {
  enum class Kind {
    read,     // a fact that was found: "8 GPUs, 16 NVLink edges, 24 links"
    ignored,  // text that was not used and why
    unknown,  // what the capture cannot tell and whoever runs it should add: "speed of the PCIe links"
    warning,  // what looks wrong with the machine or the capture: "3 links is unusual, a healthy bridge shows 4"
    belief,  // what NCCL would take the machine for where that differs from what it is
  };
  Kind kind = Kind::read;
  std::string text;
  Place place{};  // line and column in the capture; line 0: of the capture as a whole
};

struct Imported {
  std::string kind;  // of the importer: "topo-m"
  std::vector<ImportNote> notes;
  // What was found, as `weft import --json` prints it under "facts"; each importer's header names its keys.
  Json facts;
  // A server description that `weft run` accepts; null when the capture does not describe a machine, or not enough of one.
  Json server;
  // A language model of kind llm (sim/run/llm_spec.hpp); null when the capture describes none.
  Json llm;
  // Why there is none of these and what to do about it: "which PCIe link joins the GPUs? add --pcie pcie4-x16".
  // `weft import -o` refuses with these lines.
  std::vector<std::string> open_questions;
  // A file of kind "measurement" (calibrate/measurement.hpp); null when nothing was measured.
  Json measurement;

  void note(ImportNote::Kind note_kind, std::string text, Place place = {}) {
    notes.push_back({note_kind, std::move(text), place});
  }
};

struct ImportOptions {
  std::string name;    // of what is written; default: the stem of the file
  bool force = false;  // keep a measurement that failed its own check; recorded in what is written
  // Answers to what the capture cannot tell: "gpu" -> "v100-sxm2", "nic" -> "cx5-edr", "pcie" -> "pcie3-x16" ...
  std::map<std::string, std::string> answers;
  FileSource* catalogue =
      nullptr;  // where the parts of a machine are looked up; without it no server is written
};

struct Importer {
  std::string_view name;       // "topo-m", as the command line takes it
  std::string_view summary;    // "nvidia-smi topo -m"
  std::string_view reference;  // where the format is described
  std::string_view answers{};  // keys of ImportOptions::answers that it reads: "gpu nic pcie"
  Imported (*read)(std::string_view text, const std::string& file, const ImportOptions& options,
                   Diagnostics& diagnostics);
};

// Every importer that weft ships, in the order of `weft list importers`.
std::span<const Importer* const> importers();

}  // namespace weft
