// SPDX-License-Identifier: Apache-2.0
// Who may ask what. A page in any tab of the browser can send requests to 127.0.0.1, and with a name of its own that resolves
// there (DNS rebinding) can read the answers: so every request shows a secret, names this server as its host, and comes from a page of
// this server or from none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/serve/http.hpp"

namespace weft {

struct Gate {
  static constexpr std::size_t kMostBody = std::size_t{16} << 10;

  std::string token;
  std::uint16_t port = 0;

  // What refuses a request, by its head alone.
  std::optional<HttpReply> refuse(const HttpHead& head) const;
};

// 192 random bits of the system, in hexadecimal digits.
std::string new_token();

// In a time that depends on the lengths only.
bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace weft
