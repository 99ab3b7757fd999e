// SPDX-License-Identifier: Apache-2.0
// A store is a folder that any number of processes fill, each with a file of its own:
//
//   STORE/sweep.json               what was asked: columns, and each point's key and values
//   STORE/shard-0-of-2.ndjson      records, one a line, appended as points finish
//   STORE/mpi-3.ndjson             the same, of a rank of weft-mpi
//   STORE/*.ndjson.damaged         lines that a checksum condemned, kept for who wants to look
//
// A record is one write to the end of a file, so a process may be killed at any instant: at worst the last line is cut, and
// whoever opens the file next takes it off. What a table shows is found by key, so a store may serve a sweep that has grown.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/core/check.hpp"
#include "tools/sweep/record.hpp"

namespace weft {

// The disk is full (or a quota is): what was recorded before is safe.
struct StoreFull : LimitReached {
  using LimitReached::LimitReached;
};

struct Damage {
  std::string file;
  std::size_t lines = 0, bytes = 0;
  bool cut = false;  // the last line only, and it has no end: a process was killed while it wrote
};
std::string to_text(const Damage& damage);

// What was asked, as sweep.json holds it.
struct Manifest {
  std::string name, question, engine;
  std::vector<std::string> axes, outputs;
  Json front;  // null, or as in the sweep's file
  struct Point {
    std::string key;
    std::vector<Json> values;  // in the order of `axes`
  };
  std::vector<Point> points;
};

Json to_json(const Manifest& manifest);
Manifest make_manifest(const Sweep& sweep, std::vector<std::string> keys);

bool holds_store(const std::string& folder);
// Throws InputError when there is none, or it cannot be read.
Manifest read_manifest(const std::string& folder);
// Makes the folder too. Writes only what differs.
void write_manifest(const std::string& folder, const Manifest& manifest);

// Throws InputError when something that is made from a store would be written over the store itself.
void refuse_own_file(const std::string& folder, const std::string& output);

struct StoreFile {
  std::string name;
  std::size_t records = 0, failed = 0;
};
struct StoreContents {
  std::map<std::string, Record> records;  // by key; of several the first that is ok
  std::vector<StoreFile> files;
  std::vector<Damage> damage;  // left out, not repaired
  std::size_t repeated = 0;    // records of keys that were there before
};
StoreContents read_store(const std::string& folder);

// The file that one process appends to.
class ShardLog {
 public:
  // Creates it when it is missing; cuts off and keeps aside what is damaged. Throws InputError when another process has it.
  ShardLog(const std::string& folder, const std::string& name);
  ShardLog(const ShardLog&) = delete;
  ShardLog& operator=(const ShardLog&) = delete;
  ~ShardLog();

  const std::vector<Damage>& repaired() const { return repaired_; }

  // Throws StoreFull, after which the file ends with the last whole record.
  void append(const Record& record);
  // To the disk itself. Throws StoreFull.
  void sync();

 private:
  void repair();

  std::string path_;
  int file_ = -1;
  std::int64_t size_ = 0;
  std::vector<Damage> repaired_;
};

}  // namespace weft
