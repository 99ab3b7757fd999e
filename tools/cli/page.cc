// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/page.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "sim/core/diagnostics.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/output.hpp"

#ifndef WEFT_PAGE
#define WEFT_PAGE ""
#endif

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSlot = "<script id=\"weft-data\" type=\"application/json\">";

std::optional<std::string> read_page(const std::string& name) {
  // Where weft is installed, or a package of Python, it lies beside the catalogue.
  const std::array places{fs::path(find_configs_root()).parent_path() / name,
                          fs::path(WEFT_PAGE).replace_filename(name)};
  std::error_code error;
  for (const fs::path& place : places) {
    if (!fs::is_regular_file(place, error)) continue;
    std::ifstream file(place, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (file && text.str().find(kSlot) != std::string::npos) return text.str();
  }
  return std::nullopt;
}

// A "<" in JSON is always inside a string; unescaped it could end the script that holds it.
void append_for_script(std::string_view json, std::string& out) {
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
}

}  // namespace

std::optional<Json> read_report(const std::string& path, Diagnostics& diagnostics) {
  Configs files("");
  const std::optional<std::string> text = read_capture(files, path, diagnostics);
  if (!text) return std::nullopt;
  const std::size_t known = diagnostics.problems().size();
  Json json = parse_json(*text, path, diagnostics);
  if (diagnostics.problems().size() > known) return std::nullopt;
  return json;
}

std::string page_document(const std::string& file, const Json& report) {
  Json out = Json::object();
  out.set("file", file);
  out.set("report", report);
  return to_text(out, 0);
}

std::optional<std::string> page_of(const std::string& name,
                                   std::span<const std::string> documents) {
  const std::optional<std::string> page = read_page(name);
  if (!page) return std::nullopt;
  const std::size_t begin = page->find(kSlot) + kSlot.size();
  const std::size_t end = page->find("</script>", begin);
  if (end == std::string::npos) return std::nullopt;
  std::string out = page->substr(0, begin) + "[";
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (i > 0) out += ",\n";
    append_for_script(documents[i], out);
  }
  return out + "]" + page->substr(end);
}

std::optional<std::string> report_page(std::span<const std::string> documents) {
  return page_of("report.html", documents);
}

void write_report_page(const std::string& path, std::span<const std::string> documents) {
  const std::optional<std::string> page = report_page(documents);
  if (!page) throw Missing(kNoPage);
  write_file(path, *page);
}

}  // namespace weft
