// SPDX-License-Identifier: Apache-2.0
// From a question to its answer: the rules it breaks, next to the control that breaks them, or the report.
//
//   200  {"scenario": {...}, "report": {...}, "notes": [...], "estimate": {...}}
//   422  {"problems": [{"control": "tp", "pointer": "/jobs/0/plan/tp", "fact": "...", "cure": "..."}], "estimate": {...}}
//   503  as many questions as cores are being answered
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "tools/serve/http.hpp"
#include "tools/serve/question.hpp"

namespace weft {

struct AnswerLimits {
  double most_seconds = 10;                   // of one answer
  unsigned at_once = 2;                       // answers
  std::chrono::milliseconds to_wait{10'000};  // for a turn
};

class Answerer {
 public:
  // `stop` ends what is being computed.
  Answerer(const Choices& choices, AnswerLimits limits, std::function<bool()> stop)
      : choices_(choices), limits_(limits), stop_(std::move(stop)) {}

  // Any text; called by any number of threads.
  HttpReply answer(const std::string& body);

 private:
  HttpReply compute(const Question& question, const Json& scenario, Diagnostics& out);
  class Turn;

  const Choices& choices_;
  AnswerLimits limits_;
  std::function<bool()> stop_;
  std::mutex mutex_;
  std::condition_variable free_;
  unsigned running_ = 0;
};

}  // namespace weft
