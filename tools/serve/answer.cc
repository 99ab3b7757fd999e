// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/answer.hpp"

#include <algorithm>
#include <chrono>
#include <new>

#include <fmt/format.h>

#include "models/llm/plan.hpp"
#include "tools/cli/simulate.hpp"
#include "tools/serve/estimate.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kJson = "application/json";
constexpr const char* kName = "what-if.json";

struct Stopped {};
struct TooLong {
  double done = 0;  // operations
};

HttpReply reply(int status, const Json& json) { return {status, kJson, to_text(json, 0) + "\n"}; }

Json problem_json(const std::string& pointer, const std::string& fact, const std::string& cure) {
  Json out = Json::object();
  out.set("control", control_of(pointer));
  out.set("pointer", pointer);
  out.set("fact", fact);
  out.set("cure", cure);
  return out;
}

Json problems_of(const Diagnostics& out, Problem::Severity severity) {
  Json problems = Json::array();
  for (const Problem& problem : out.problems()) {
    if (problem.severity == severity)
      problems.push(problem_json(problem.pointer, problem.fact, problem.cure));
  }
  return problems;
}

// `otherwise`: what is told when no problem has a place.
HttpReply refused(const Diagnostics& out, const std::string& otherwise) {
  Json problems = problems_of(out, Problem::Severity::error);
  if (problems.items.empty()) problems.push(problem_json({}, otherwise, {}));
  Json answer = Json::object();
  answer.set("problems", std::move(problems));
  return reply(422, answer);
}

Json to_json(const Estimate& estimate, double limit) {
  Json out = Json::object();
  out.set("operations", estimate.operations);
  out.set("seconds", estimate.seconds);
  out.set("limit_s", limit);
  return out;
}

HttpReply too_long(const Estimate& estimate, double limit, const std::string& fact) {
  Json problems = Json::array();
  problems.push(problem_json(
      {}, fact, "take fewer micro-batches or GPUs, or download the scenario and `weft run` it"));
  Json out = Json::object();
  out.set("problems", std::move(problems));
  out.set("estimate", to_json(estimate, limit));
  return reply(422, out);
}

// The rules of plans, which are cheap, before anything is estimated or built.
void check_rules(const Scenario& scenario, Diagnostics& out) {
  for (const JobSpec& job : scenario.jobs) {
    if (!job.training) continue;
    TrainingSpec training = *job.training;
    check_plan(Architecture(training.model), training, out);
  }
}

}  // namespace

// A place among the answers that are being computed.
class Answerer::Turn {
 public:
  explicit Turn(Answerer& all) : all_(all) {
    std::unique_lock lock(all_.mutex_);
    has_ = all_.free_.wait_for(lock, all_.limits_.to_wait,
                               [&] { return all_.running_ < all_.limits_.at_once; });
    if (has_) ++all_.running_;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!has_) return;
    const std::lock_guard lock(all_.mutex_);
    --all_.running_;
    all_.free_.notify_one();
  }
  explicit operator bool() const { return has_; }

 private:
  Answerer& all_;
  bool has_ = false;
};

HttpReply Answerer::answer(const std::string& body) {
  Diagnostics out;
  try {
    const Json document = parse_json(body, "question", out);
    Question question;
    if (out.ok()) read_config(document, {}, question, out);
    out.throw_if_errors();
    const Json scenario = choices_.scenario(question, out);
    out.throw_if_errors();
    const Turn turn(*this);
    if (!turn) return {503, "text/plain; charset=utf-8", "busy: ask again\n"};
    return compute(question, scenario, out);
  } catch (const InputError& problem) {
    return refused(out, problem.what());
  } catch (const Stopped&) {
    return {503, "text/plain; charset=utf-8", "weft serve is ending\n"};
  } catch (const LimitReached& problem) {
    return refused({}, problem.what());
  } catch (const std::bad_alloc&) {
    return refused({}, "out of memory");
  } catch (const std::exception& problem) {
    return {500, "text/plain; charset=utf-8", fmt::format("weft: bug: {}\n", problem.what())};
  }
}

HttpReply Answerer::compute(const Question& question, const Json& document, Diagnostics& out) {
  Scenario scenario = load_scenario(document, kName, out);
  check_rules(scenario, out);
  out.throw_if_errors();
  const auto model = std::ranges::find(choices_.models(), question.model, &ModelChoice::name);
  const Estimate expected = estimate(question, model->layers);
  if (expected.seconds > limits_.most_seconds)
    return too_long(expected, limits_.most_seconds,
                    fmt::format("some {:.1f} million operations, about {:.0f} s; the page answers "
                                "what takes {:.0f} s at most",
                                expected.operations / 1e6, expected.seconds, limits_.most_seconds));
  scenario.observe.top = 0;
  RunContext context = run_models();
  context.explain = !question.quick;
  const Clock::time_point until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(limits_.most_seconds));
  double before = 0, last = 0;  // operations of the runs that ended, and of the present one
  context.progress = [&](Time, std::uint64_t events) {
    const auto now = static_cast<double>(events);
    if (now < last) before += last;
    last = now;
    if (stop_ && stop_()) throw Stopped{};
    if (Clock::now() > until) throw TooLong{before + last};
  };
  try {
    Report report = run_timed(scenario, context, out);
    report.effective = Json::object();
    Json json = Json::object();
    json.set("scenario", document);
    json.set("report", weft::to_json(report));
    json.set("notes", problems_of(out, Problem::Severity::warning));
    json.set("estimate", to_json(expected, limits_.most_seconds));
    return reply(200, json);
  } catch (const TooLong& late) {
    const double share = std::clamp(late.done / expected.operations, 0.0, 1.0);
    const std::string rest = share > 0.001 && share < 1 ? fmt::format("about {:.0f} s in all",
                                                                      limits_.most_seconds / share)
                                                        : std::string("far more in all");
    return too_long(expected, limits_.most_seconds,
                    fmt::format("stopped after {:.0f} s and {:.1f} million operations; it would "
                                "take {}",
                                limits_.most_seconds, late.done / 1e6, rest));
  }
}

}  // namespace weft
