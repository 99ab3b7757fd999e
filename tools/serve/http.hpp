// SPDX-License-Identifier: Apache-2.0
// A small HTTP server for one person on one machine: it listens on 127.0.0.1, takes one request per connection, and gives nobody
// more time or room than a request needs.
//
//   admit(head)          before the body is read: what refuses it, or nothing
//   answer(head, body)   the reply of an admitted request
//
// The library behind it (cpp-httplib) is optional, and only the program links it: weft plugs its server in when it has one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

struct HttpHead {
  std::string method, path, token;                           // `token`: of the query
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  std::size_t count(std::string_view name) const;
  std::string_view header(std::string_view name) const;  // the first; empty when there is none
};

struct HttpReply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8", body;
};

struct HttpService {
  std::function<std::optional<HttpReply>(const HttpHead&)> admit;
  std::function<HttpReply(const HttpHead&, const std::string& body)> answer;
};

struct HttpLimits {
  std::size_t most_bytes = std::size_t{48} << 10;  // of a request, its head included
  std::chrono::milliseconds to_ask{3000};          // from the connection to the end of the request
  std::chrono::milliseconds to_listen{15000};      // for the reply to be taken
  unsigned most_threads = 256;                     // connections beyond wait
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;
  // Takes a port of 127.0.0.1, any when 0, and returns it. Throws InputError when it is taken.
  virtual std::uint16_t bind(std::uint16_t port) = 0;
  // Until `stop` says so, which is asked several times a second.
  virtual void serve(const std::function<bool()>& stop) = 0;
};

using MakeHttpServer = std::unique_ptr<HttpServer> (*)(HttpService, HttpLimits);
void plug_http_server(MakeHttpServer make);
MakeHttpServer http_server();  // nullptr: built without

// The one made of cpp-httplib; defined only in programs that link it.
std::unique_ptr<HttpServer> make_http_server(HttpService service, HttpLimits limits);

}  // namespace weft
