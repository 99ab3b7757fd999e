// SPDX-License-Identifier: Apache-2.0
#include "models/llm/inference.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "models/llm/site.hpp"
#include "sim/core/quantile.hpp"
#include "sim/core/seconds.hpp"
#include "sim/run/report.hpp"
#include "sim/run/scenario.hpp"

namespace weft {
namespace {

struct Spread {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
  explicit Spread(std::vector<double> sample) {
    if (sample.empty()) return;
    std::ranges::sort(sample);
    for (const double value : sample) mean += value / static_cast<double>(sample.size());
    p50 = quantile(sample, 0.5);
    p90 = quantile(sample, 0.9);
    p99 = quantile(sample, 0.99);
  }
  Json json() const {
    Json out = Json::object();
    out.set("mean", mean);
    out.set("p50", p50);
    out.set("p90", p90);
    out.set("p99", p99);
    return out;
  }
  std::string text() const {
    const auto time = [](double seconds) { return to_text(time_from_seconds(seconds)); };
    return fmt::format("mean {}, p50 {}, p90 {}, p99 {}", time(mean), time(p50), time(p90),
                       time(p99));
  }
};

// What the report says, from what happened.
class Answers {
 public:
  Answers(const InferenceSpec& spec, const InferenceEngine& engine, const ServeResult& result)
      : spec_(spec), engine_(engine), result_(result) {
    std::vector<double> ttft, tpot, e2e;
    for (const RequestTimes& r : result.requests) {
      if (r.refused) {
        ++refused_;
        continue;
      }
      ++answered_;
      prompt_ += static_cast<double>(r.prompt);
      output_ += static_cast<double>(r.output);
      ttft.push_back(r.ttft());
      e2e.push_back(r.e2e());
      if (r.output > 1) tpot.push_back(r.tpot());
      const SloSpec& slo = spec.serving.slo;
      if ((!slo.ttft || r.ttft() <= slo.ttft->seconds()) &&
          (!slo.tpot || r.tpot() <= slo.tpot->seconds()))
        ++good_;
    }
    ttft_ = Spread(std::move(ttft));
    tpot_ = Spread(std::move(tpot));
    e2e_ = Spread(std::move(e2e));
  }

  Json json() const;
  void lines(JobReport& out) const;
  std::vector<std::string> notes() const;

 private:
  double rate(double amount) const { return result_.makespan > 0 ? amount / result_.makespan : 0; }
  // Of the time that replicas iterate.
  double share(double seconds) const {
    const double all = result_.sum.total();
    return all > 0 ? seconds / all : 0;
  }
  double peak_cache() const { return engine_.pages(result_.peak_cache_tokens); }

  const InferenceSpec& spec_;
  const InferenceEngine& engine_;
  const ServeResult& result_;
  std::int64_t answered_ = 0, refused_ = 0, good_ = 0;
  double prompt_ = 0, output_ = 0;
  Spread ttft_{{}}, tpot_{{}}, e2e_{{}};
};

Json Answers::json() const {
  const double gpus = static_cast<double>(spec_.gpus);
  // Two operations per parameter that a token uses (arXiv 2001.08361); attention is left out.
  const double read = engine_.model().encoder_parameters(), all = engine_.model().active();
  const double flops =
      2 * (read > 0 ? read * prompt_ + (all - read) * output_ : all * (prompt_ + output_));
  Json j = Json::object();
  j.set("ttft_s", ttft_.json());
  j.set("tpot_s", tpot_.json());
  j.set("e2e_s", e2e_.json());
  j.set("requests", std::uint64_t(result_.requests.size()));
  j.set("refused", refused_);
  j.set("requests_per_s", rate(static_cast<double>(answered_)));
  j.set("output_tokens_per_s", rate(output_));
  j.set("tokens_per_s", rate(prompt_ + output_));
  j.set("output_tokens_per_s_per_gpu", rate(output_) / gpus);
  j.set("goodput_at_slo", rate(static_cast<double>(good_)));
  j.set("within_slo",
        answered_ > 0 ? static_cast<double>(good_) / static_cast<double>(answered_) : 0);
  j.set("preemptions", result_.preemptions);
  j.set("engine_iterations", result_.iterations);
  j.set("mean_batch", result_.mean_batch);
  j.set("peak_batch", result_.peak_batch);
  j.set("mfu", rate(flops) / gpus / engine_.peak_flops());
  j.set("model_flops_per_s_per_gpu", rate(flops) / gpus);
  const IterationTime& sum = result_.sum;
  j.set("compute_s", sum.compute);
  Json& exposed = j.set("exposed_comm_s", Json::object());
  exposed.set("tp", sum.tp);
  exposed.set("ep", sum.ep);
  exposed.set("pp", sum.pp);
  Json& shares = j.set("time_share", Json::object());
  shares.set("compute", share(sum.compute));
  shares.set("tp", share(sum.tp));
  shares.set("ep", share(sum.ep));
  shares.set("pp", share(sum.pp));
  Json& between = j.set("between_servers", Json::object());
  const auto spans = [&](Dimension dimension, double seconds) {
    return engine_.network().between_servers(dimension) ? share(seconds) : 0;
  };
  between.set("tp", spans(Dimension::tp, sum.tp));
  between.set("ep", spans(Dimension::ep, sum.ep));
  j.set("kv_transfer_s", result_.transfer);
  Json& memory = j.set("memory_bytes_per_gpu", Json::object());
  const double weights = engine_.memory().weights(), workspace = engine_.memory().workspace();
  memory.set("weights", weights);
  memory.set("gradients", 0.0);
  memory.set("optimizer", 0.0);
  memory.set("activations", workspace);
  memory.set("kv_cache", peak_cache());
  memory.set("kv_cache_room", std::max(0.0, engine_.cache_room()));
  memory.set("total", weights + workspace + peak_cache());
  memory.set("capacity", engine_.capacity());
  j.set("kv_cache_tokens", engine_.cache_tokens());
  j.set("fits", engine_.fits());
  Json& plan = j.set("plan", Json::object());
  const PlanSpec& p = spec_.plan;
  for (const auto& [name, value] :
       {std::pair{"tp", p.tp}, std::pair{"pp", p.pp}, std::pair{"dp", p.dp.value_or(1)},
        std::pair{"ep", p.ep}, std::pair{"etp", p.expert_tp()}})
    plan.set(name, value);
  plan.set("prefill_replicas", spec_.serving.prefill_gpus / (p.tp * p.pp));
  Json dtype = Json::object();
  dtype.set("compute", write_config(spec_.dtype.compute));
  dtype.set("param", write_config(spec_.dtype.param));
  dtype.set("kv", write_config(spec_.kv_precision()));
  plan.set("dtype", std::move(dtype));
  return j;
}

void Answers::lines(JobReport& out) const {
  const auto line = [&](const char* what, std::string value) {
    out.lines.emplace_back(what, std::move(value));
  };
  line("first token", ttft_.text());
  line("further tokens", tpot_.text());
  line("whole answer", e2e_.text());
  line("throughput", fmt::format("{:.4g} requests/s, {:.4g} tokens/s written ({:.4g} per GPU)",
                                 rate(static_cast<double>(answered_)), rate(output_),
                                 rate(output_) / static_cast<double>(spec_.gpus)));
  if (spec_.serving.slo.ttft || spec_.serving.slo.tpot) {
    line("goodput", fmt::format("{:.4g} requests/s within the service level ({:.1f} %)",
                                rate(static_cast<double>(good_)),
                                answered_ > 0 ? 100.0 * static_cast<double>(good_) /
                                                    static_cast<double>(answered_)
                                              : 0));
  }
  line("batch", fmt::format("{:.3g} answered together on average, {} at most; {} put back",
                            result_.mean_batch, result_.peak_batch, result_.preemptions));
  const IterationTime& sum = result_.sum;
  std::string parts = fmt::format("computing {:.1f} %", 100 * share(sum.compute));
  const auto part = [&](const char* what, Dimension dimension, double seconds) {
    if (seconds <= 0) return;
    parts += fmt::format(", {}{} {:.1f} %", what,
                         engine_.network().between_servers(dimension) ? " between servers" : "",
                         100 * share(seconds));
  };
  part("all-reduce", Dimension::tp, sum.tp);
  part("experts", Dimension::ep, sum.ep);
  if (sum.pp > 0) parts += fmt::format(", stages {:.1f} %", 100 * share(sum.pp));
  line("time goes to", parts);
  constexpr double kGiga = 1e9;
  line("memory",
       fmt::format("weights {:.1f} GB + workspace {:.1f} GB + cache {:.1f} GB (room for "
                   "{} tokens) of {:.1f} GB",
                   engine_.memory().weights() / kGiga, engine_.memory().workspace() / kGiga,
                   peak_cache() / kGiga, engine_.cache_tokens(), engine_.capacity() / kGiga));
}

std::vector<std::string> Answers::notes() const {
  std::vector<std::string> out;
  if (!engine_.fits()) {
    out.push_back(fmt::format(
        "does not fit: weights {:.1f} GB + workspace {:.1f} GB + cache of one request {:.2f} GB "
        "over {:.2f} of {:.1f} GB; times are of a GPU with enough memory",
        engine_.memory().weights() / 1e9, engine_.memory().workspace() / 1e9,
        engine_.longest() / 1e9, spec_.serving.memory_share, engine_.capacity() / 1e9));
  }
  if (refused_ > 0)
    out.push_back(fmt::format("{} requests are longer than the cache and were refused", refused_));
  if (!engine_.network().fallback().empty()) out.push_back(engine_.network().fallback());
  return out;
}

// Faults that act from the start are in the routes.
void check_faults(const JobSite& site, Diagnostics& out) {
  for (const FaultSpec& fault : site.scenario.faults) {
    const bool lost = fault.action == FaultAction::down && fault.at.ps == 0 && !fault.until;
    if (fault.action == FaultAction::slow || lost) continue;
    out.error(fault.place, fault.pointer, "not yet: links that change while an inference job runs",
              "take a link down from the start and for good, or change it in /fabric");
  }
}

// Every token of a prompt sees those behind it: no part of it can be read first, or kept for another prompt.
void check_encoder(const InferenceSpec& spec, Diagnostics& out) {
  const auto whole = [&](bool holds, std::string_view key, const char* what) {
    if (!holds)
      out.error(spec.place_of(key), fmt::format("{}{}", spec.pointer, key),
                fmt::format("{}, where an encoder reads every prompt whole", what), "leave it out");
  };
  whole(!spec.serving.chunk, "/serving/chunk", "chunks of prompts");
  whole(spec.requests.prefix_share <= 0, "/requests/prefix_share", "a part that was read before");
  for (std::size_t i = 0; i < spec.requests.trace.size(); ++i)
    whole(spec.requests.trace[i].cached <= 0, fmt::format("/requests/trace/{}/cached", i),
          "a part that was read before");
}

// Of the longest: lengths that vary may still be longer, and are then beyond what the model can place.
void check_context(const InferenceSpec& spec, Diagnostics& out) {
  if (spec.model.positions != Positions::learned || !spec.model.context) return;
  const auto check = [&](std::int64_t prompt, std::int64_t output, const std::string& key) {
    if (prompt <= *spec.model.context - output) return;
    out.error(spec.place_of(key), spec.pointer + key,
              fmt::format("{} tokens with the answer, the model has learned positions for {}",
                          prompt + output, *spec.model.context),
              "ask for less, in prompt or output");
  };
  const RequestsSpec& requests = spec.requests;
  if (requests.trace.empty()) return check(requests.prompt, requests.output, "/requests");
  for (std::size_t i = 0; i < requests.trace.size(); ++i)
    check(requests.trace[i].prompt, requests.trace[i].output, fmt::format("/requests/trace/{}", i));
}

// By replica: a slow GPU sets its pace.
std::vector<double> slowness(const JobSite& site, const InferenceSpec& spec) {
  const double worst = spec.software.slowest_of(spec.plan.tp * spec.plan.pp);
  const std::vector<SlowGpu> slow = slow_gpus(site);
  if (worst <= 1 && slow.empty()) return {};
  const RankLayout ranks(spec.plan, spec.order);
  std::vector<double> out(static_cast<std::size_t>(*spec.plan.dp), worst);
  for (const auto& [rank, factor] : slow)
    out[static_cast<std::size_t>(ranks.at(rank).dp)] /= factor;
  return out;
}

class InferenceJob : public ModelledJob {
 public:
  InferenceJob(const JobSite& site, InferenceSpec spec, StageLayout layout)
      : spec_(std::move(spec)),
        layout_(std::move(layout)),
        gpus_(site.gpus),
        timer_(site.make_timer(spec_.software.graphs ? JobSite::Timing::graphs
                                                     : JobSite::Timing::host)),
        wires_(site.make_timer(JobSite::Timing::bare)),
        engine_(site.fabric, site.routes, {*timer_, *wires_}, spec_, layout_, gpus_),
        result_(engine_.serve(slowness(site, spec_), static_cast<std::uint64_t>(site.scenario.seed),
                              site.progress)) {}

  void append(Workload& workload, Lockstep&, OpId start) override {
    workload.depend(start, workload.add_delay(time_from_seconds(result_.makespan)));
  }

  void report(const Executor&, const Report&, JobReport& out) const override {
    const Answers answers(spec_, engine_, result_);
    out.details = answers.json();
    answers.lines(out);
    for (std::string& note : answers.notes()) out.notes.push_back(std::move(note));
  }

 private:
  InferenceSpec spec_;
  StageLayout layout_;
  std::vector<NodeId> gpus_;
  std::unique_ptr<CollectiveTimer> timer_, wires_;
  InferenceEngine engine_;
  ServeResult result_;
};

}  // namespace

std::unique_ptr<ModelledJob> make_inference(const JobSite& site, Diagnostics& out) {
  const std::size_t before = out.error_count();
  InferenceSpec spec = *site.spec.inference;
  spec.gpus = static_cast<std::int64_t>(site.gpus.size());
  spec.global_batch = spec.gpus;  // of no meaning here; a multiple of every number of replicas
  const GpuSpec& gpu = site.fabric.gpu_spec(site.gpus.front());
  has_one_kind_of_gpu(site, out);
  if (spec.written->find("attention") == nullptr) spec.software.attention = fastest_attention(gpu);
  const Architecture model(spec.model);
  if (spec.model.masked)
    out.error(spec.place_of("/model"), spec.pointer + "/model",
              "the model fills gaps, it writes no answers", "give a model with a decoder");
  if (model.has_encoder()) check_encoder(spec, out);
  check_context(spec, out);
  check_plan(model, spec, out);
  check_kernels(gpu, spec.software, spec.dtype, site.spec.place, site.spec.pointer, out);
  if (out.error_count() != before) return nullptr;
  StageLayout layout = stage_layout(model, spec.plan, out);
  check_faults(site, out);
  if (out.error_count() != before) return nullptr;
  return std::make_unique<InferenceJob>(site, std::move(spec), std::move(layout));
}

}  // namespace weft
