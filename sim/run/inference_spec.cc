// SPDX-License-Identifier: Apache-2.0
#include "sim/run/inference_spec.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

// Keys of the job that only training knows, by the object they are in.
struct Foreign {
  const char *object, *key;
};
constexpr Foreign kForeign[] = {{"", "seq"},
                                {"", "global_batch"},
                                {"", "steps"},
                                {"", "optimizer"},
                                {"", "flops_convention"},
                                {"", "lora_rank"},
                                {"dtype", "grad"},
                                {"dtype", "reduce"},
                                {"dtype", "gather"},
                                {"dtype", "optimizer"},
                                {"plan", "vpp"},
                                {"plan", "micro_batch"},
                                {"plan", "zero"},
                                {"plan", "sp"},
                                {"plan", "schedule"},
                                {"plan", "recompute"},
                                {"plan", "recompute_layers"},
                                {"plan", "fsdp"},
                                {"plan", "overlap"},
                                {"plan", "bucket"},
                                {"plan", "offload"},
                                {"plan", "expert_capacity"},
                                {"plan", "scatter_sends"},
                                {"", "checkpoint"}};
// Keys that inference could know.
constexpr Foreign kLater[] = {
    {"plan", "cp"}, {"plan", "context"}, {"plan", "dispatcher"}, {"plan", "expert_servers"}};

const Json* find(const Json& job, const Foreign& at) {
  if (*at.object == '\0') return job.find(at.key);
  const Json* object = job.find(at.object);
  return object != nullptr && object->is_object() ? object->find(at.key) : nullptr;
}

void refuse(const Json& job, const std::string& pointer, Diagnostics& out) {
  const auto pointer_of = [&](const Foreign& at) {
    return *at.object == '\0' ? fmt::format("{}/{}", pointer, at.key)
                              : fmt::format("{}/{}/{}", pointer, at.object, at.key);
  };
  for (const Foreign& at : kForeign) {
    if (const Json* found = find(job, at))
      out.error(found->place, pointer_of(at), "an inference job does not take this key",
                "leave it out");
  }
  for (const Foreign& at : kLater) {
    if (const Json* found = find(job, at))
      out.error(found->place, pointer_of(at),
                fmt::format("not yet: \"{}\" of an inference job", at.key), "leave it out");
  }
}

void check_requests(const InferenceSpec& spec, const Json& job, Diagnostics& out) {
  const RequestsSpec& r = spec.requests;
  const Json* written = job.find("requests");
  if (written == nullptr || !written->is_object()) return;
  const std::string pointer = spec.pointer + "/requests";
  const auto refuse_key = [&](const char* key, const char* fact, const char* cure) {
    if (const Json* found = written->find(key))
      out.error(found->place, fmt::format("{}/{}", pointer, key), fact, cure);
  };
  if (written->find("trace") != nullptr) {
    if (r.trace.empty())
      refuse_key("trace", "a trace without requests",
                 R"(e.g. [{"at": "0 s", "prompt": 512, "output": 128}])");
    for (const char* key :
         {"arrival", "count", "rate", "concurrency", "prompt", "output", "spread", "prefix_share"})
      refuse_key(key, "the trace says when and how long", "leave it out, or the trace");
    return;
  }
  const bool timed = r.arrival == Arrival::uniform || r.arrival == Arrival::poisson;
  if (timed && !r.rate)
    out.error(written->place, pointer, "the key \"rate\" is missing", R"(e.g. "rate": "4 /s")");
  if (!timed)
    refuse_key("rate", "only uniform and poisson arrivals have a rate",
               R"(say "arrival": "poisson", or leave it out)");
  if (r.arrival != Arrival::closed)
    refuse_key("concurrency", "only a closed loop has clients",
               R"(say "arrival": "closed", or leave it out)");
}

void check_serving(const InferenceSpec& spec, const Json& job, Diagnostics& out) {
  const ServingSpec& s = spec.serving;
  const auto wrong = [&](const char* key, std::string fact, std::string cure) {
    out.error(spec.place_of(std::string("/serving/") + key), spec.pointer + "/serving/" + key,
              std::move(fact), std::move(cure));
  };
  const std::int64_t replica = spec.plan.tp * spec.plan.pp;
  if (s.prefill_gpus > 0 && s.prefill_gpus % replica != 0) {
    wrong("prefill_gpus",
          fmt::format("{} GPUs are not whole replicas of tp {} x pp {}", s.prefill_gpus,
                      spec.plan.tp, spec.plan.pp),
          fmt::format("e.g. {}", (s.prefill_gpus / replica + 1) * replica));
  }
  if (s.prefill_gpus > 0 && spec.gpus > 0 && s.prefill_gpus >= spec.gpus) {
    wrong("prefill_gpus",
          fmt::format("{} of {} GPUs read prompts, none is left to answer", s.prefill_gpus,
                      spec.gpus),
          "give fewer");
  }
  const std::int64_t experts = spec.plan.ep * spec.plan.expert_tp();
  if (s.prefill_gpus > 0 && experts > spec.plan.tp) {
    wrong("prefill_gpus", "not yet: replicas that share experts, some of them for prompts only",
          "keep ep x etp within tp, or leave it out");
  }
  if (s.chunk && *s.chunk <= s.max_batch && job.find("serving")->find("max_batch") != nullptr) {
    wrong("chunk",
          fmt::format("{} tokens of an iteration leave none for prompts beside {} answers",
                      *s.chunk, s.max_batch),
          "give more than max_batch");
  }
}

}  // namespace

InferenceSpec read_inference(const Json& job, const std::string& pointer, TrainingKeys common,
                             InferenceKeys keys, std::optional<std::int64_t> gpus,
                             std::vector<std::string> order, Diagnostics& out) {
  InferenceSpec spec;
  refuse(job, pointer, out);
  static_cast<TrainingSpec&>(spec) =
      read_model_job(job, pointer, std::move(common), gpus, std::move(order), out);
  // Engines decode from graphs, and weights are stored as they are multiplied.
  if (job.find("graphs") == nullptr) spec.software.graphs = true;
  const Json* dtype = job.find("dtype");
  if (dtype == nullptr || dtype->find("param") == nullptr) spec.dtype.param = spec.dtype.compute;
  spec.requests = keys.requests.value_or(RequestsSpec{});
  spec.serving = keys.serving.value_or(ServingSpec{});
  check_requests(spec, job, out);
  check_serving(spec, job, out);
  return spec;
}

}  // namespace weft
