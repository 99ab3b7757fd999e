// SPDX-License-Identifier: Apache-2.0
// weft serve: a page on this machine with sliders, whose answers are runs.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ostream>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/cli/cli.hpp"
#include "tools/cli/page.hpp"
#include "tools/serve/answer.hpp"
#include "tools/serve/gate.hpp"
#include "tools/sweep/interrupt.hpp"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kGrace{2};
constexpr unsigned kMostAtOnce = 4;  // answers; one near the limit of time takes a GB

// A machine that is being built cannot be interrupted, and nothing that this program does is on a disk: after the grace it ends
// whatever it is at.
class Patience {
 public:
  bool over() {
    if (!Interrupts::seen()) return false;
    const auto now = std::chrono::steady_clock::now();
    if (!since_) since_ = now;
    return now - *since_ > kGrace;
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> since_;
};

class ServeCommand final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("--port", port_, "of 127.0.0.1; default: any free one")
        ->check(CLI::Range(std::uint16_t{0}, std::uint16_t{65535}));
    app.add_option("--seconds", limits_.most_seconds, "most time of one answer")
        ->check(number_between(0.1, 600))
        ->capture_default_str();
  }

  int run(Io& io) override {
    const MakeHttpServer make = http_server();
    if (make == nullptr)
      throw Missing(
          "weft serve was not built: it needs cpp-httplib (libcpp-httplib-dev) when weft is built");
    const Choices choices;
    if (!choices.left_out().empty())
      io.err << "weft: the page does without these:\n" << choices.left_out();
    const std::string documents[] = {to_text(choices.to_json(), 0)};
    const std::optional<std::string> page = page_of("serve.html", documents);
    if (!page) throw Missing(kNoPage);
    limits_.at_once = std::clamp(std::thread::hardware_concurrency(), 1U, kMostAtOnce);
    const Interrupts interrupts;
    Answerer answerer(choices, limits_, &Interrupts::seen);
    Gate gate{new_token()};
    HttpService service;
    service.admit = [&gate](const HttpHead& head) { return gate.refuse(head); };
    service.answer = [&](const HttpHead& head, const std::string& body) -> HttpReply {
      if (head.method == "GET") return {200, "text/html; charset=utf-8", *page};
      return answerer.answer(body);
    };
    const std::unique_ptr<HttpServer> server = make(std::move(service), {});
    gate.port = server->bind(port_);
    io.err << fmt::format("http://127.0.0.1:{}/?token={}\nCtrl-C ends it\n", gate.port, gate.token)
           << std::flush;
    const std::jthread last_word([](const std::stop_token& ended) {
      Patience patience;
      while (!ended.stop_requested() && !patience.over()) std::this_thread::sleep_for(kLook);
      if (!ended.stop_requested()) std::_Exit(kOk);
    });
    server->serve(&Interrupts::seen);
    return kOk;
  }

 private:
  std::uint16_t port_ = 0;
  AnswerLimits limits_;
};

}  // namespace

extern const Verb kServe;
const Verb kServe{"serve",
                  "a local page with sliders: what if bandwidth, plan or size were different",
                  make_command<ServeCommand>};

}  // namespace weft
