// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/gate.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>
#include <sys/random.h>

namespace weft {
namespace {

HttpReply refusal(int status, std::string_view why) {
  return {status, "text/plain; charset=utf-8", fmt::format("{}\n", why)};
}

std::optional<std::size_t> length_of(std::string_view digits) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) return {};
  return value;
}

std::optional<HttpReply> refuse_body(const HttpHead& head) {
  if (head.count("transfer-encoding") > 0 || head.count("content-encoding") > 0)
    return refusal(415, "the body comes as it is: no encoding");
  if (head.count("content-length") != 1) return refusal(411, "say how long the body is");
  const std::optional<std::size_t> length = length_of(head.header("content-length"));
  if (!length) return refusal(400, "the length of the body is no number");
  if (*length > Gate::kMostBody)
    return refusal(413, fmt::format("a question has at most {} bytes", Gate::kMostBody));
  if (head.header("content-type") != "application/json")
    return refusal(415, "a question is application/json");
  return {};
}

}  // namespace

std::optional<HttpReply> Gate::refuse(const HttpHead& head) const {
  const std::string hosts[] = {fmt::format("127.0.0.1:{}", port),
                               fmt::format("localhost:{}", port)};
  const auto is_here = [&](std::string_view host) {
    return std::ranges::find(hosts, host) != std::end(hosts);
  };
  if (head.count("host") != 1 || !is_here(head.header("host")))
    return refusal(403, "this server is known by another name");
  constexpr std::string_view kScheme = "http://";
  const std::string_view origin = head.header("origin"), site = head.header("sec-fetch-site");
  const bool own_origin =
      origin.empty() || (origin.starts_with(kScheme) && is_here(origin.substr(kScheme.size())));
  const bool asks = head.method == "POST";
  // Who opens the page from elsewhere has the token; answers are for the page alone.
  const bool own_site = !asks || site.empty() || site == "same-origin" || site == "none";
  if (!own_origin || !own_site) return refusal(403, "another site asks");
  const std::string_view shown = asks ? head.header("x-weft-token") : std::string_view(head.token);
  if (!equal_secrets(shown, token))
    return refusal(403, "the token is missing or wrong: open the address that weft serve printed");
  if (head.method != "GET" && !asks) return refusal(405, "GET the page, or POST a question");
  if (head.path != (asks ? "/api/run" : "/")) return refusal(404, "there is no such page");
  if (head.count("range") > 0) return refusal(400, "pages come as a whole");
  return asks ? refuse_body(head) : std::nullopt;
}

std::string new_token() {
  unsigned char bytes[24];
  for (std::size_t have = 0; have < sizeof bytes;) {
    const ssize_t got = getrandom(bytes + have, sizeof bytes - have, 0);
    if (got < 0 && errno != EINTR) throw std::runtime_error("the system gives no random bytes");
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

bool equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace weft
