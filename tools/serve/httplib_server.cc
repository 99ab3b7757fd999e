// SPDX-License-Identifier: Apache-2.0
// The server of http.hpp on cpp-httplib. The library's own limits are per read, so that a client that sends a byte now and then
// would hold a thread for ever; here a connection has one deadline and one budget of bytes, kept by the stream that the library
// reads from.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/core/diagnostics.hpp"
#include "tools/serve/http.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::chrono::milliseconds kLook{100};  // between two looks at whether it shall end
constexpr int kBacklog = 256;
constexpr std::chrono::milliseconds kLinger{300};  // for what a refused client still sends

class Connection final : public httplib::Stream {
 public:
  // `ending`: no byte is waited for any more.
  Connection(socket_t socket, const HttpLimits& limits, const std::atomic<bool>& ending)
      : socket_(socket),
        limits_(limits),
        ending_(ending),
        read_until_(Clock::now() + limits.to_ask) {}

  bool is_readable() const override { return at_ < end_ || ready(POLLIN, read_until_); }
  bool is_writable() const override { return ready(POLLOUT, write_until()); }

  ssize_t read(char* to, size_t size) override {
    if (at_ == end_) {
      if (taken_ >= limits_.most_bytes || !ready(POLLIN, read_until_)) return -1;
      const ssize_t got = recv(socket_, buffer_, sizeof buffer_, 0);
      if (got <= 0) return got;
      at_ = 0;
      end_ = static_cast<size_t>(got);
      taken_ += end_;
    }
    const size_t count = std::min(size, end_ - at_);
    std::memcpy(to, buffer_ + at_, count);
    at_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* from, size_t size) override {
    if (!ready(POLLOUT, write_until())) return -1;
    return send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // A reply is lost when the connection closes while the client still sends.
  void finish() {
    shutdown(socket_, SHUT_WR);
    const Clock::time_point until = Clock::now() + kLinger;
    for (std::size_t left = std::size_t{1} << 20; left > 0 && ready(POLLIN, until);) {
      const ssize_t got = recv(socket_, buffer_, sizeof buffer_, MSG_DONTWAIT);
      if (got <= 0) break;
      left -= std::min(left, static_cast<std::size_t>(got));
    }
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = kLoopback;
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip = kLoopback;
    port = 0;
  }
  socket_t socket() const override { return socket_; }

 private:
  Clock::time_point write_until() const {
    if (!write_until_) write_until_ = Clock::now() + limits_.to_listen;
    return *write_until_;
  }

  bool ready(short event, Clock::time_point until) const {
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      pollfd poll_for{socket_, event, 0};
      const int found =
          poll(&poll_for, 1, static_cast<int>(std::clamp<long>(left + 1, 0, kLook.count())));
      if (found > 0) return left > 0;
      if (left <= 0 || ending_) return false;
      if (found < 0 && errno != EINTR) return false;
    }
  }

  socket_t socket_;
  const HttpLimits& limits_;
  const std::atomic<bool>& ending_;
  Clock::time_point read_until_;
  mutable std::optional<Clock::time_point> write_until_;  // from the first byte of the reply
  char buffer_[4096];
  size_t at_ = 0, end_ = 0;
  std::size_t taken_ = 0;
};

// Threads come with connections and go when nothing is left to do.
class Threads final : public httplib::TaskQueue {
 public:
  explicit Threads(unsigned most) : most_(most) {}

  void enqueue(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (running_ >= most_) return;
    try {
      std::thread([this] { work(); }).detach();
      ++running_;
    } catch (const std::system_error&) {
      // No thread to be had now: those that run, or the next connection, see to it.
    }
  }
  void shutdown() override {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!tasks_.empty()) {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
    --running_;
    idle_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<std::function<void()>> tasks_;
  unsigned running_ = 0, most_;
};

HttpHead head_of(const httplib::Request& request) {
  HttpHead head{request.method, request.path, {}, {}};
  if (request.has_param("token")) head.token = request.get_param_value("token");
  for (const auto& [name, value] : request.headers) {
    std::string lower = name;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    head.headers.emplace_back(std::move(lower), value);
  }
  return head;
}

class Server final : public HttpServer, private httplib::Server {
 public:
  Server(HttpService service, HttpLimits limits)
      : service_(std::move(service)), limits_(std::move(limits)) {
    new_task_queue = [this] { return new Threads(limits_.most_threads); };
    // Not SO_REUSEPORT, the library's choice: another program could take the same port and half of the requests.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_payload_max_length(limits_.most_bytes);
    set_default_headers({{"Cache-Control", "no-store"},
                         {"Content-Security-Policy",
                          "default-src 'none'; script-src 'unsafe-inline'; style-src "
                          "'unsafe-inline'; img-src data: blob:; connect-src 'self'; "
                          "frame-ancestors 'none'; form-action 'none'; base-uri 'none'"},
                         {"Referrer-Policy", "no-referrer"},
                         {"X-Content-Type-Options", "nosniff"},
                         {"X-Frame-Options", "DENY"}});
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      const HttpHead head = head_of(request);
      std::optional<HttpReply> refused = service_.admit(head);
      // What has no body is answered here: no other path of the library is needed.
      if (!refused && head.method != "POST") refused = service_.answer(head, {});
      if (!refused) return HandlerResponse::Unhandled;
      put(std::move(*refused), response);
      return HandlerResponse::Handled;
    });
    Post("/api/run", [this](const httplib::Request& request, httplib::Response& response) {
      put(service_.answer(head_of(request), request.body), response);
    });
    set_exception_handler([](const httplib::Request&, httplib::Response& response,
                             std::exception_ptr) { response.status = 500; });
  }

  std::uint16_t bind(std::uint16_t port) override {
    const int bound =
        port != 0 ? (bind_to_port(kLoopback, port) ? port : -1) : bind_to_any_port(kLoopback);
    if (bound <= 0)
      throw InputError("error: port " + std::to_string(port) +
                       " cannot be had\n    another program may have it; without --port any free "
                       "one is taken\n");
    ::listen(svr_sock_, kBacklog);  // the library lets five wait
    return static_cast<std::uint16_t>(bound);
  }

  void serve(const std::function<bool()>& stop) override {
    std::atomic<bool> ended = false;
    std::thread watch([&] {
      while (!ended && !(is_running() && stop())) std::this_thread::sleep_for(kLook);
      ending_ = true;
      if (!ended) httplib::Server::stop();
    });
    listen_after_bind();
    ended = true;
    watch.join();
  }

 private:
  static void put(HttpReply reply, httplib::Response& response) {
    response.status = reply.status;
    response.set_content(std::move(reply.body), reply.type);
  }

  bool process_and_close_socket(socket_t socket) override {
    bool done = false;
    {
      Connection connection(socket, limits_, ending_);
      bool closed = false;
      try {
        done = process_request(connection, true, closed, nullptr);
      } catch (...) {
        // Memory ran out on the way: the connection ends, the server does not.
      }
      connection.finish();
    }
    close(socket);
    return done;
  }

  HttpService service_;
  HttpLimits limits_;
  std::atomic<bool> ending_ = false;
};

}  // namespace

std::unique_ptr<HttpServer> make_http_server(HttpService service, HttpLimits limits) {
  return std::make_unique<Server>(std::move(service), limits);
}

}  // namespace weft
