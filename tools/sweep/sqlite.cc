// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "tools/cli/cli.hpp"
#include "tools/sweep/table.hpp"

#ifdef WEFT_SQLITE
#include <memory>

#include <sqlite3.h>
#endif

namespace weft {

#ifndef WEFT_SQLITE

void write_sqlite(const std::string&, const Manifest&, const std::vector<Row>&) {
  throw Missing(
      "this weft was built without SQLite: install libsqlite3-dev and build again, or use `weft "
      "sweep csv`");
}

#else

namespace {

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class Database {
 public:
  explicit Database(const std::string& path) {
    sqlite3* raw = nullptr;
    const int code = sqlite3_open(path.c_str(), &raw);
    db_.reset(raw);
    check(code);
  }
  void run(const std::string& sql) {
    check(sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr));
  }
  void insert(const std::string& table, const std::vector<Json>& values,
              const std::string& conflict = {}) {
    if (table != table_) {
      std::string marks;
      for (std::size_t i = 0; i < values.size(); ++i) marks += i > 0 ? ",?" : "?";
      sqlite3_stmt* raw = nullptr;
      const std::string sql = fmt::format("INSERT {} INTO {} VALUES ({})", conflict, table, marks);
      check(sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, nullptr));
      statement_.reset(raw);
      table_ = table;
    }
    for (std::size_t i = 0; i < values.size(); ++i) bind(static_cast<int>(i) + 1, values[i]);
    const int code = sqlite3_step(statement_.get());
    if (code != SQLITE_DONE) check(code);
    check(sqlite3_reset(statement_.get()));
  }
  void finish() {
    statement_.reset();
    run("COMMIT");
    db_.reset();
  }

 private:
  void bind(int at, const Json& v) {
    sqlite3_stmt* s = statement_.get();
    switch (v.kind) {
      case Json::Kind::null:
        check(sqlite3_bind_null(s, at));
        break;
      case Json::Kind::boolean:
        check(sqlite3_bind_int(s, at, v.boolean ? 1 : 0));
        break;
      case Json::Kind::integer:
        check(sqlite3_bind_int64(s, at, v.integer));
        break;
      case Json::Kind::number:
        check(sqlite3_bind_double(s, at, v.number));
        break;
      default: {
        const std::string text = v.is_string() ? v.text : to_text(v, 0);
        check(sqlite3_bind_text64(s, at, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
      }
    }
  }
  void check(int code) {
    if (code == SQLITE_OK) return;
    const std::string text = db_ ? sqlite3_errmsg(db_.get()) : sqlite3_errstr(code);
    if (code == SQLITE_FULL || (code & 0xff) == SQLITE_IOERR)
      throw StoreFull("SQLite: " + text + "; nothing was replaced");
    throw InputError(fmt::format("SQLite: {}\n", text));
  }

  std::unique_ptr<sqlite3, Close> db_;
  std::unique_ptr<sqlite3_stmt, Close> statement_;
  std::string table_;
};

std::string column(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) out.append(c == '"' ? 2 : 1, c);
  return out + "\"";
}

void fill(Database& db, const Manifest& manifest, const std::vector<Row>& rows) {
  db.run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
  std::string columns = "\"point\" INTEGER PRIMARY KEY, \"key\" TEXT, \"status\" TEXT";
  for (const std::string& axis : manifest.axes) columns += ", " + column(axis);
  for (const std::string& output : manifest.outputs) columns += ", " + column(output);
  db.run(fmt::format("CREATE TABLE points ({}, \"error\" TEXT)", columns));
  db.run("CREATE TABLE effort (key TEXT PRIMARY KEY, wall_s REAL) WITHOUT ROWID");
  db.run("CREATE TABLE sweep (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID");
  for (const Row& row : rows) {
    std::vector<Json> values{Json(std::uint64_t{row.point}), Json(row.asked->key),
                             Json(row.found->ok ? "ok" : "failed")};
    for (const Json& value : row.asked->values) values.push_back(value);
    for (const std::string& output : manifest.outputs) {
      const Json* value = row.found->results.find(output);
      values.push_back(value != nullptr ? *value : Json{});
    }
    values.push_back(row.found->error.empty() ? Json{} : Json(row.found->error));
    db.insert("points", values);
  }
  for (const Row& row : rows) db.insert("effort", {row.asked->key, row.found->wall_s}, "OR IGNORE");
  db.insert("sweep", {"name", manifest.name});
  db.insert("sweep", {"question", manifest.question});
  db.insert("sweep", {"engine", manifest.engine});
  db.insert("sweep", {"points", std::to_string(manifest.points.size())});
  db.finish();
}

}  // namespace

void write_sqlite(const std::string& path, const Manifest& manifest, const std::vector<Row>& rows) {
  namespace fs = std::filesystem;
  const std::string draft = fmt::format("{}.{}.part", path, getpid());
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    throw InputError(fmt::format(
        "{}: error: not a regular file\n    give the name of a database to write\n", path));
  }
  fs::remove(draft, error);
  try {
    Database db(draft);
    fill(db, manifest, rows);
  } catch (...) {
    fs::remove(draft, error);
    throw;
  }
  fs::rename(draft, path, error);
  if (error) {
    std::error_code ignored;
    fs::remove(draft, ignored);
    throw InputError(fmt::format("{}: error: {}\n", path, error.message()));
  }
}

#endif

}  // namespace weft
