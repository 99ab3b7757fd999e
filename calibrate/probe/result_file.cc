// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/result_file.hpp"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft {
namespace {

constexpr double kCheckpointShare = 20;  // a checkpoint may cost one part in so many of the time

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::string why(const std::string& path) {
  return fmt::format("{}: {}", path, std::strerror(errno));
}

// All of it, or false with errno.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::optional<Measurement> parse(std::string_view text, const std::string& name,
                                 std::string& problem) {
  Diagnostics out;
  Measurement measurement = read_measurement(parse_json(text, name, out), out);
  if (out.ok()) return measurement;
  problem = out.text();
  return std::nullopt;
}

}  // namespace

std::string replace_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp";  // one name: what a kill leaves is written over
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return why(temporary);
  bool good = write_all(file, text) && ::fdatasync(file) == 0;
  std::string trouble = good ? "" : why(temporary);
  if (::close(file) != 0 && good) {
    good = false;
    trouble = why(temporary);
  }
  if (good && ::rename(temporary.c_str(), path.c_str()) != 0) trouble = why(path);
  if (!trouble.empty()) ::unlink(temporary.c_str());
  return trouble;
}

ResultFile::ResultFile(std::string path, const Measurement& head, Open how)
    : path_(std::move(path)), journal_(path_ + ".journal") {
  struct stat status {};
  const bool there = ::stat(path_.c_str(), &status) == 0;
  if (there && !S_ISREG(status.st_mode))
    throw UnusablePath(fmt::format("{} is not a regular file", path_));
  const bool begun = there || ::access(journal_.c_str(), F_OK) == 0;
  if (begun && how == Open::fresh) {
    throw UnusablePath(fmt::format(
        "{} is there already: --resume goes on with it, --overwrite starts anew", path_));
  }
  all_.add(head);
  file_ = ::open(journal_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) throw UnusablePath(why(journal_));
  try {
    // A folder that knows no locks is no reason not to measure.
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw UnusablePath(fmt::format("another weft-probe is writing {}", path_));
    open_journal(head, how);
  } catch (const UnusablePath&) {
    ::close(file_);
    if (!begun) ::unlink(journal_.c_str());
    throw;
  }
}

void ResultFile::open_journal(const Measurement& head, Open how) {
  if (how == Open::resume) read_back(head);
  if (::ftruncate(file_, length_) != 0 || ::lseek(file_, length_, SEEK_SET) < 0)
    throw UnusablePath(why(journal_));
  if (const std::string trouble =
          replace_file(path_, to_text(write_measurement(all_.result())) + "\n");
      !trouble.empty()) {
    throw UnusablePath(trouble);
  }
  checkpoint_at_ = seconds_now();
}

ResultFile::~ResultFile() {
  if (file_ >= 0) ::close(file_);
}

void ResultFile::read_back(const Measurement& head) {
  std::vector<Measurement> parts;
  std::string problem;
  if (const auto text = read_file(path_)) {
    if (auto part = parse(*text, path_, problem)) {
      parts.push_back(std::move(*part));
    } else {
      throw UnusablePath(fmt::format("{} cannot be resumed:\n{}", path_, problem));
    }
  }
  if (const auto text = read_file(journal_)) {
    std::size_t at = 0;
    for (std::size_t end = text->find('\n'); end != std::string::npos; end = text->find('\n', at)) {
      auto part = parse(std::string_view(*text).substr(at, end - at), journal_, problem);
      if (!part) break;  // a line that was damaged, and whatever follows it
      parts.push_back(std::move(*part));
      at = end + 1;
      length_ = static_cast<std::int64_t>(at);
    }
  }
  if (!parts.empty()) {
    Diagnostics out;
    const std::vector<Measurement> pair{head, parts.front()};
    merge_measurements(pair, {}, out);
    if (!out.ok()) throw UnusablePath(fmt::format("{} cannot be resumed:\n{}", path_, out.text()));
    refuse_other_run(head, parts.front());
  }
  for (const Measurement& part : parts) take(part);
  resumed_ = known_.size();
}

// How a run is made, as far as both files say it: numbers of two ways do not belong into one file.
void ResultFile::refuse_other_run(const Measurement& head, const Measurement& before) const {
  if (before.tool != head.tool)
    throw UnusablePath(
        fmt::format("{} cannot be resumed: it is of {}, not of {}", path_, before.tool, head.tool));
  std::set<std::string> keys;
  for (const auto& [key, value] : head.setup) keys.insert(key);
  for (const auto& [key, value] : before.setup) keys.insert(key);
  std::string differ;
  for (const std::string& key : keys) {
    if (key == "nccl") continue;  // warned of, as other versions are
    const auto value = [&](const Measurement& m) {
      const auto found = m.setup.find(key);
      return found == m.setup.end() ? std::string("none") : found->second;
    };
    if (value(head) == value(before) || before.setup.empty()) continue;
    differ += fmt::format("{}{} was {} and is {}", differ.empty() ? "" : ", ", key, value(before),
                          value(head));
  }
  if (!differ.empty()) throw UnusablePath(fmt::format("{} cannot be resumed: {}", path_, differ));
}

void ResultFile::take(const Measurement& part) {
  for (const ProbeTest& test : part.tests) {
    if (test.state != TestState::not_run) known_.insert(test.test);
  }
  all_.add(part);
}

bool ResultFile::append(const std::string& line) {
  if (write_all(file_, line)) {
    length_ += static_cast<std::int64_t>(line.size());
    return true;
  }
  remember(why(journal_));
  // What was written of the line must not stand before the next one.
  if (::ftruncate(file_, length_) != 0 || ::lseek(file_, length_, SEEK_SET) < 0)
    remember(why(journal_));
  return false;
}

void ResultFile::remember(std::string trouble) {
  if (told_.insert(trouble).second) trouble_ = std::move(trouble);
}

std::string ResultFile::take_trouble() { return std::exchange(trouble_, {}); }

void ResultFile::add(const Measurement& part) {
  take(part);
  unwritten_.push_back(to_text(write_measurement(part), 0) + "\n");
  std::size_t written = 0;
  while (written < unwritten_.size() && append(unwritten_[written])) ++written;
  unwritten_.erase(unwritten_.begin(), unwritten_.begin() + static_cast<std::ptrdiff_t>(written));
  if (seconds_now() >= checkpoint_at_) checkpoint();
}

void ResultFile::checkpoint() {
  const double start = seconds_now();
  std::string trouble = replace_file(path_, to_text(write_measurement(all_.result())) + "\n");
  const double end = seconds_now();
  checkpoint_at_ = end + kCheckpointShare * (end - start);
  if (!trouble.empty()) remember(std::move(trouble));
}

ResultFile::Written ResultFile::finish() {
  Written out;
  out.document = to_text(write_measurement(all_.result())) + "\n";
  out.trouble = replace_file(path_, out.document);
  if (out.trouble.empty()) {
    out.path = path_;
    ::unlink(journal_.c_str());
  } else {
    const std::string name = std::filesystem::path(path_).filename().string();
    std::vector<std::string> folders;
    std::error_code none;
    folders.push_back(std::filesystem::temp_directory_path(none).string());
    if (const char* home = std::getenv("HOME")) folders.emplace_back(home);
    folders.emplace_back("/dev/shm");
    for (const std::string& folder : folders) {
      if (folder.empty()) continue;
      const std::string path = fmt::format("{}/{}", folder, name);
      if (::access(path.c_str(), F_OK) == 0 || !replace_file(path, out.document).empty()) continue;
      out.path = path;
      break;
    }
  }
  out.whole = !out.path.empty();
  if (out.whole) out.document.clear();
  return out;
}

}  // namespace weft
