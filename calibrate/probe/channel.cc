// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/channel.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft {
namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 20;

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::string reason() { return std::strerror(errno); }

// False when the time is up.
bool readable(int socket, double seconds) {
  pollfd waiting{socket, POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max(0.0, seconds) * 1e3));
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

void no_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

CrewChannel::~CrewChannel() {
  if (socket_ >= 0) ::close(socket_);
}

void CrewChannel::send(const Json& document) {
  const std::string line = to_text(document, 0) + "\n";
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t sent = ::send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) throw ChannelLost(fmt::format("another process has gone: {}", reason()));
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
}

Json CrewChannel::receive(double seconds) {
  const double until = seconds_now() + seconds;
  std::size_t end = rest_.find('\n');
  while (end == std::string::npos) {
    if (!readable(socket_, until - seconds_now()))
      throw ChannelLost(fmt::format("another process did not answer within {:.0f} s", seconds));
    char buffer[65536];
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw ChannelLost("another process has gone");
    const std::size_t known = rest_.size();
    rest_.append(buffer, static_cast<std::size_t>(count));
    if (rest_.size() > kLongestLine) throw ChannelLost("another process sends too much");
    end = rest_.find('\n', known);
  }
  Diagnostics out;
  Json document = parse_json(std::string_view(rest_).substr(0, end), "message", out);
  rest_.erase(0, end + 1);
  if (!out.ok()) throw ChannelLost("another process sent what is no document");
  return document;
}

CrewChannel CrewChannel::connect(const std::string& host, int port, double seconds) {
  const double until = seconds_now() + seconds;
  std::string why = "no address";
  do {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    const std::string service = fmt::format("{}", port);
    if (::getaddrinfo(host.c_str(), service.c_str(), &hints, &found) == 0) {
      const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
      for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
        const int socket = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);
        if (socket < 0) continue;
        if (::connect(socket, at->ai_addr, at->ai_addrlen) == 0) {
          no_delay(socket);
          return CrewChannel(socket);
        }
        why = reason();
        ::close(socket);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  } while (seconds_now() < until);
  throw ChannelLost(
      fmt::format("the first process cannot be reached at {}:{}: {}", host, port, why));
}

Listener::Listener(int port) {
  socket_ = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool wide = socket_ >= 0;
  if (!wide) socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1, off = 0;
  ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage address{};
  socklen_t length = 0;
  if (wide) {
    ::setsockopt(socket_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    auto& any = reinterpret_cast<sockaddr_in6&>(address);
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(static_cast<std::uint16_t>(port));
    length = sizeof any;
  } else {
    auto& any = reinterpret_cast<sockaddr_in&>(address);
    any.sin_family = AF_INET;
    any.sin_port = htons(static_cast<std::uint16_t>(port));
    length = sizeof any;
  }
  if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(socket_, 1024) != 0) {
    const std::string why = reason();
    ::close(socket_);
    throw ChannelLost(fmt::format("cannot listen at port {}: {}; set WEFT_PROBE_PORT", port, why));
  }
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
  port_ = ntohs(wide ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                     : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

Listener::~Listener() {
  if (socket_ >= 0) ::close(socket_);
}

CrewChannel Listener::accept(double seconds) {
  if (!readable(socket_, seconds))
    throw ChannelLost(fmt::format("not all processes have come within {:.0f} s", seconds));
  const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) throw ChannelLost(reason());
  no_delay(socket);
  return CrewChannel(socket);
}

}  // namespace weft
