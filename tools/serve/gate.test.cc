// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/gate.hpp"

#include <set>

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr const char* kToken = "00112233445566778899aabbccddeeff0011223344556677";

HttpHead page() { return {"GET", "/", kToken, {{"host", "127.0.0.1:8123"}}}; }
HttpHead question() {
  return {"POST",
          "/api/run",
          {},
          {{"host", "localhost:8123"},
           {"x-weft-token", kToken},
           {"content-type", "application/json"},
           {"content-length", "40"}}};
}

int status(const HttpHead& head) {
  const std::optional<HttpReply> refused = Gate{kToken, 8123}.refuse(head);
  return refused ? refused->status : 200;
}
int with(HttpHead head, const std::string& name, const std::string& value) {
  std::erase_if(head.headers, [&](const auto& header) { return header.first == name; });
  head.headers.emplace_back(name, value);
  return status(head);
}
int twice(HttpHead head, const std::string& name, const std::string& value) {
  head.headers.emplace_back(name, value);
  return status(head);
}

TEST(Gate, LetsThePageAndItsQuestionsIn) {
  EXPECT_EQ(status(page()), 200);
  EXPECT_EQ(status(question()), 200);
  EXPECT_EQ(with(question(), "origin", "http://localhost:8123"), 200);
  EXPECT_EQ(with(question(), "sec-fetch-site", "same-origin"), 200);
}

TEST(Gate, WantsTheWholeToken) {
  for (const std::string& wrong : {std::string{}, std::string(kToken).substr(1),
                                   std::string(48, '0'), kToken + std::string("0")}) {
    HttpHead head = page();
    head.token = wrong;
    EXPECT_EQ(status(head), 403) << wrong;
    EXPECT_EQ(with(question(), "x-weft-token", wrong), 403) << wrong;
  }
  // A form of another site can put the token nowhere but into the query.
  HttpHead form = question();
  form.token = kToken;
  EXPECT_EQ(with(form, "x-weft-token", ""), 403);
}

TEST(Gate, KnowsItsNames) {
  for (const char* host :
       {"evil.example:8123", "127.0.0.1", "127.0.0.1:80", "localhost:8123.evil", "[::1]:8123", ""})
    EXPECT_EQ(with(page(), "host", host), 403) << host;
  EXPECT_EQ(twice(page(), "host", "evil.example"), 403);
  HttpHead none = page();
  none.headers.clear();
  EXPECT_EQ(status(none), 403);
}

TEST(Gate, KeepsOtherSitesOut) {
  EXPECT_EQ(with(question(), "origin", "http://evil.example"), 403);
  EXPECT_EQ(with(question(), "origin", "null"), 403);
  EXPECT_EQ(with(question(), "sec-fetch-site", "cross-site"), 403);
}

TEST(Gate, HasTwoPathsOnly) {
  for (const char* path : {"/..", "/../etc/passwd", "//", "/api", "/api/run/", "/index.html", ""}) {
    HttpHead head = page();
    head.path = path;
    EXPECT_EQ(status(head), 404) << path;
  }
  for (const char* method : {"HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"}) {
    HttpHead head = page();
    head.method = method;
    EXPECT_EQ(status(head), 405) << method;
  }
  HttpHead wrong_way = question();
  wrong_way.path = "/";
  EXPECT_EQ(status(wrong_way), 404);
}

TEST(Gate, TakesPlainSmallBodies) {
  EXPECT_EQ(with(question(), "content-length", "16384"), 200);
  EXPECT_EQ(with(question(), "content-length", "16385"), 413);
  EXPECT_EQ(with(question(), "content-length", "99999999999999999999999"), 400);
  EXPECT_EQ(with(question(), "content-length", "-1"), 400);
  EXPECT_EQ(with(question(), "content-length", "4 0"), 400);
  EXPECT_EQ(twice(question(), "content-length", "40"), 411);
  EXPECT_EQ(with(question(), "transfer-encoding", "chunked"), 415);
  EXPECT_EQ(with(question(), "content-encoding", "gzip"), 415);
  EXPECT_EQ(with(question(), "content-type", "multipart/form-data; boundary=x"), 415);
  EXPECT_EQ(with(page(), "range", "bytes=0-1"), 400);
}

TEST(Gate, TokensDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(new_token());
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(seen.begin()->size(), 48U);
}

}  // namespace
}  // namespace weft
