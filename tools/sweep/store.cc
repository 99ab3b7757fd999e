// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/store.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "sim/core/check.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/output.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifest = "sweep.json", kLogs = ".ndjson", kDamaged = ".damaged";

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw InputError(fmt::format("{}: error: cannot read this file\n", path));
  return text.str();
}

bool is_full(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO;
}

[[noreturn]] void cannot_write(const std::string& path, int error) {
  const std::string text = fmt::format("{}: {}", path, std::strerror(error));
  if (is_full(error))
    throw StoreFull(text + "; every point recorded before is kept, make room and use --resume");
  throw InputError(text + "\n");
}

// All of it, or the number of the error.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

// The records of a log, in order, and the lines that hold none; blank ones were damaged before.
struct Lines {
  std::vector<Record> records;
  std::vector<std::string_view> bad;
  std::size_t end_of_good = 0;
  bool cut = false;
};
Lines split(const std::string_view all) {
  Lines out;
  std::string_view text = all;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const bool whole = end != std::string_view::npos;
    const std::string_view line = text.substr(0, whole ? end + 1 : text.size());
    text.remove_prefix(line.size());
    std::optional<Record> record = whole ? read_line(line.substr(0, end)) : std::optional<Record>{};
    if (record) {
      out.end_of_good = static_cast<std::size_t>(line.data() - all.data()) + line.size();
      out.records.push_back(std::move(*record));
    } else if (!whole || line.find_first_not_of(" \n") != std::string_view::npos) {
      out.bad.push_back(line);
      out.cut = !whole && out.bad.size() == 1;
    }
  }
  return out;
}

Damage damage_of(const std::string& name, const Lines& lines) {
  Damage damage{name, lines.bad.size(), 0, lines.cut};
  for (const std::string_view line : lines.bad) damage.bytes += line.size();
  return damage;
}

Json names_json(const std::vector<std::string>& names) {
  Json out = Json::array();
  for (const std::string& name : names) out.push(name);
  return out;
}

std::vector<std::string> names_at(const Json& json, std::string_view key) {
  std::vector<std::string> out;
  if (const Json* list = json.find(key)) {
    for (const Json& item : list->items) out.push_back(item.text);
  }
  return out;
}

std::string text_at(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr ? value->text : std::string{};
}

}  // namespace

std::string to_text(const Damage& damage) {
  if (damage.cut)
    return fmt::format("{}: the last record was cut off after {} bytes", damage.file, damage.bytes);
  return fmt::format("{}: {} damaged {} ({} bytes)", damage.file, damage.lines,
                     damage.lines == 1 ? "line" : "lines", damage.bytes);
}

Manifest make_manifest(const Sweep& sweep, std::vector<std::string> keys) {
  Manifest out;
  out.name = sweep.name;
  out.question = sweep.question;
  out.engine = WEFT_VERSION;
  out.axes = sweep.axis_names();
  for (const SweepOutput& output : sweep.outputs) out.outputs.push_back(output.name);
  if (sweep.front) {
    out.front = Json::object();
    out.front.set("minimise", names_json(sweep.front->minimise));
    out.front.set("maximise", names_json(sweep.front->maximise));
  }
  out.points.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    out.points[i].key = std::move(keys[i]);
    for (const Json* value : sweep.values(i)) out.points[i].values.push_back(*value);
  }
  return out;
}

Json to_json(const Manifest& manifest) {
  Json out = Json::object();
  Json& head = out.set("weft", Json::object());
  head.set("version", manifest.engine);
  head.set("schema", 1);
  out.set("kind", "sweep-store");
  out.set("name", manifest.name);
  if (!manifest.question.empty()) out.set("question", manifest.question);
  out.set("axes", names_json(manifest.axes));
  out.set("outputs", names_json(manifest.outputs));
  if (manifest.front.is_object()) out.set("pareto", manifest.front);
  Json points = Json::array();
  for (const Manifest::Point& point : manifest.points) {
    Json row = Json::array();
    row.push(point.key);
    for (const Json& value : point.values) row.push(value);
    points.push(std::move(row));
  }
  out.set("points", std::move(points));
  return out;
}

bool holds_store(const std::string& folder) {
  std::error_code error;
  return fs::is_regular_file(fs::path(folder) / kManifest, error);
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = (fs::path(folder) / kManifest).string();
  if (!holds_store(folder))
    throw InputError(
        fmt::format("{}: error: there is no sweep.json in this folder\n"
                    "    a store is what `weft sweep SWEEP --out STORE` fills\n",
                    folder));
  Diagnostics problems;
  const Json json = parse_json(read_all(path), path, problems);
  Manifest out;
  out.name = text_at(json, "name");
  out.question = text_at(json, "question");
  if (const Json* head = json.find("weft")) out.engine = text_at(*head, "version");
  out.axes = names_at(json, "axes");
  out.outputs = names_at(json, "outputs");
  if (const Json* front = json.find("pareto")) out.front = *front;
  const Json* points = json.find("points");
  if (problems.ok() && (text_at(json, "kind") != "sweep-store" || points == nullptr))
    problems.error(json.place, {}, "this is not a store of a sweep");
  problems.throw_if_errors();
  for (const Json& row : points->items) {
    if (row.items.size() != out.axes.size() + 1 || !row.items.front().is_string())
      problems.error(row.place, "/points", "a point is its key and a value for each axis");
    problems.throw_if_errors();
    out.points.push_back({row.items.front().text, {row.items.begin() + 1, row.items.end()}});
  }
  return out;
}

void write_manifest(const std::string& folder, const Manifest& manifest) {
  const std::string path = (fs::path(folder) / kManifest).string();
  const std::string text = to_text(to_json(manifest), 0) + "\n";
  if (holds_store(folder) && read_all(path) == text) return;
  const OutputFile files[] = {{.path = path, .text = text, .make_folders = true}};
  write_files(files);
}

void refuse_own_file(const std::string& folder, const std::string& output) {
  std::error_code error;
  const auto is_own = [](const fs::path& path) {
    const std::string name = path.filename().string();
    return name == kManifest || path.extension() == kLogs || name.ends_with(kDamaged);
  };
  std::vector<std::string> own;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (is_own(entry.path())) own.push_back(entry.path().string());
  }
  refuse_overwriting(output, own);
  // A log that is not there yet.
  const fs::path parent = fs::path(output).parent_path();
  if (is_own(output) && fs::equivalent(parent.empty() ? "." : parent, folder, error))
    throw InputError(fmt::format(
        "{}: error: the store keeps its own files by such names\n    give another name\n", output));
}

StoreContents read_store(const std::string& folder) {
  StoreContents out;
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == kLogs) names.push_back(entry.path().filename().string());
  }
  if (error) throw InputError(fmt::format("{}: error: {}\n", folder, error.message()));
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const std::string text = read_all((fs::path(folder) / name).string());
    Lines lines = split(text);
    StoreFile& file = out.files.emplace_back(StoreFile{name, lines.records.size(), 0});
    if (!lines.bad.empty()) out.damage.push_back(damage_of(name, lines));
    for (Record& record : lines.records) {
      if (!record.ok) ++file.failed;
      const auto [at, added] = out.records.try_emplace(record.key, record);
      if (added) continue;
      ++out.repeated;
      if (record.ok && !at->second.ok) at->second = std::move(record);
    }
  }
  return out;
}

ShardLog::ShardLog(const std::string& folder, const std::string& name)
    : path_((fs::path(folder) / name).string()) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) cannot_write(path_, errno);
  // File systems without locks let two processes through; their records are still whole lines.
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file_);
    throw InputError(
        fmt::format("{}: error: another process works on this shard\n"
                    "    wait for it, or give this one another --shard or --out\n",
                    path_));
  }
  try {
    repair();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

ShardLog::~ShardLog() {
  if (file_ >= 0) ::close(file_);
}

// What is damaged at the end is cut off; what is damaged before a good line is blanked, byte by byte. No good byte moves, so a
// repair that is killed can be repeated.
void ShardLog::repair() {
  const std::string text = read_all(path_);
  const Lines lines = split(text);
  size_ = static_cast<std::int64_t>(lines.end_of_good);
  if (!lines.bad.empty()) {
    repaired_.push_back(damage_of(fs::path(path_).filename().string(), lines));
    std::ofstream aside(path_ + std::string(kDamaged), std::ios::binary | std::ios::app);
    for (const std::string_view line : lines.bad)
      aside << line << (line.ends_with('\n') ? "" : "\n");
    aside.flush();  // a courtesy: when there is no room for it the repair goes on
  }
  for (const std::string_view line : lines.bad) {
    const auto at = static_cast<std::size_t>(line.data() - text.data());
    if (at >= lines.end_of_good) break;
    const std::string blank(line.size() - 1, ' ');
    if (::pwrite(file_, blank.data(), blank.size(), static_cast<off_t>(at)) < 0)
      cannot_write(path_, errno);
  }
  if (::ftruncate(file_, size_) != 0 || ::lseek(file_, size_, SEEK_SET) < 0)
    cannot_write(path_, errno);
}

void ShardLog::append(const Record& record) {
  const std::string line = to_line(record);
  if (const int error = write_all(file_, line); error != 0) {
    if (::ftruncate(file_, size_) == 0) ::lseek(file_, size_, SEEK_SET);
    cannot_write(path_, error);
  }
  size_ += static_cast<std::int64_t>(line.size());
}

void ShardLog::sync() {
  if (::fdatasync(file_) != 0 && errno != EINVAL && errno != EROFS) cannot_write(path_, errno);
}

}  // namespace weft
