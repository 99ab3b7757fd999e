// SPDX-License-Identifier: Apache-2.0
// Documents between processes over TCP: one JSON document per line.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/json.hpp"

namespace weft {

// The other end has gone, does not answer in time or talks nonsense.
struct ChannelLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class CrewChannel {
 public:
  CrewChannel() = default;
  explicit CrewChannel(int socket) : socket_(socket) {}
  ~CrewChannel();
  CrewChannel(CrewChannel&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), rest_(std::move(other.rest_)) {}
  CrewChannel& operator=(CrewChannel&& other) noexcept {
    std::swap(socket_, other.socket_);
    std::swap(rest_, other.rest_);
    return *this;
  }

  void send(const Json& document);
  Json receive(double seconds);

  // Keeps trying until somebody listens.
  static CrewChannel connect(const std::string& host, int port, double seconds);

 private:
  int socket_ = -1;
  std::string rest_;  // received beyond the last line
};

class Listener {
 public:
  explicit Listener(int port);  // 0: any
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int port() const { return port_; }
  CrewChannel accept(double seconds);

 private:
  int socket_ = -1, port_ = 0;
};

}  // namespace weft
