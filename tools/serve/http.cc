// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/http.hpp"

#include <algorithm>

namespace weft {
namespace {

MakeHttpServer plugged = nullptr;

}  // namespace

std::size_t HttpHead::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(headers, [&](const auto& header) { return header.first == name; }));
}

std::string_view HttpHead::header(std::string_view name) const {
  const auto found =
      std::ranges::find_if(headers, [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::string_view{} : found->second;
}

void plug_http_server(MakeHttpServer make) { plugged = make; }

MakeHttpServer http_server() { return plugged; }

}  // namespace weft
