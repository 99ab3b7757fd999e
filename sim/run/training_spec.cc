// SPDX-License-Identifier: Apache-2.0
#include "sim/run/training_spec.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace weft {
namespace {

// Collects the names of a struct's fields.
struct NameCollector {
  std::vector<std::string> names;
  template <class T, class... Constraints>
  void operator()(std::string_view name, T&, std::string_view, Constraints...) {
    names.emplace_back(name);
  }
};

void read_model(const Json& model, const std::string& pointer, TrainingSpec& spec,
                Diagnostics& out) {
  const Json* kind = model.find("kind");
  if (kind != nullptr && kind->is_string() && kind->text != "llm") {
    out.error(kind->place, pointer, fmt::format("a {} is not a language model", kind->text),
              "see `weft list llms`");
    return;
  }
  spec.model = read_llm(model, pointer, out);
}

// The next multiple.
std::int64_t up(std::int64_t value, std::int64_t of) { return (value + of - 1) / of * of; }

// What tp ranks compute when every one of them has whole heads and whole columns.
void pad_model(TrainingSpec& spec, Diagnostics& out) {
  const std::int64_t tp = spec.plan.tp, etp = spec.plan.expert_tp();
  if (tp > 100'000 || etp > 100'000) return;  // refused later, and sums stay small
  LlmSpec& model = spec.model;
  const LlmSpec before = model;
  std::int64_t kv = before.kv_heads.value_or(before.heads);
  if (kv == before.heads) kv = up(kv, tp);
  while (kv % tp != 0 && tp % kv != 0) ++kv;
  model.head_dim = before.head_dim.value_or(before.hidden / before.heads);
  model.kv_heads = kv;
  model.heads = up(before.heads, std::lcm(kv, tp));
  model.intermediate = up(before.intermediate, tp);
  if (model.experts) {
    model.experts->size = up(model.experts->size, etp);
    model.experts->shared_size = up(model.experts->shared_size, tp);
  }
  if (model.heads == before.heads && model.intermediate == before.intermediate) return;
  out.warning(spec.place_of("/plan/pad"), spec.pointer + "/plan/pad",
              fmt::format("tp {} works on {} heads for {}, and on {} columns of an MLP for {}", tp,
                          model.heads, before.heads, model.intermediate, before.intermediate));
}

void check_order(const TrainingSpec& spec, Diagnostics& out) {
  const std::vector<std::string> known{"tp", "cp", "dp", "pp"};
  if (std::ranges::is_permutation(spec.order, known)) return;
  const bool experts = std::ranges::any_of(
      spec.order, [](const std::string& name) { return name == "ep" || name == "etp"; });
  out.error(spec.place_of("/placement/order"), spec.pointer + "/placement/order",
            fmt::format("[{}] does not name each parallel dimension once", join(spec.order, ", ")),
            experts ? "leave experts out: they share the ranks of tp, cp and dp"
                    : R"(e.g. ["tp", "cp", "dp", "pp"])");
}

void needs_key(const Json& job, const std::string& pointer, const char* key, const char* cure,
               Diagnostics& out) {
  if (job.find(key) == nullptr)
    out.error(job.place, pointer, fmt::format("the key \"{}\" is missing", key), cure);
}

void check_checkpoint(const TrainingSpec& spec, Diagnostics& out) {
  if (!spec.checkpoint) return;
  const bool storage = spec.checkpoint->target == CheckpointTarget::storage;
  const auto wrong = [&](std::string_view key, std::string fact, std::string cure) {
    out.error(spec.place_of(key), spec.pointer + std::string(key), std::move(fact),
              std::move(cure));
  };
  if (storage && !spec.checkpoint->rate)
    wrong("/checkpoint", "the key \"rate\" is missing", R"(e.g. "rate": "200 GB/s")");
  if (!storage && spec.checkpoint->rate)
    wrong("/checkpoint/rate", "the host's memory has the rate of its server",
          R"(say "target": "storage", or leave it out)");
}

// 0 when it does not fit in 64 bits.
std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t all = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(all, factor, &all)) return 0;
  }
  return all;
}

}  // namespace

double SoftwareSpec::slowest_of(std::int64_t ranks) const {
  return jitter > 0 && ranks > 1 ? 1 + jitter * std::sqrt(2 * std::log(static_cast<double>(ranks)))
                                 : 1;
}

double bytes_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return 4;
    case Precision::fp16:
    case Precision::bf16:
      return 2;
    case Precision::fp8:
      return 1;
    case Precision::mxfp8:
      return 1 + 1.0 / 32;  // one 8-bit scale for 32 numbers
    case Precision::nvfp4:
      return 0.5 + 1.0 / 16;  // one 8-bit scale for 16 numbers
  }
  return 4;
}

Place TrainingSpec::place_of(std::string_view key) const {
  if (!written) return {};
  const Json* at = written.get();
  Place place = at->place;
  while (!key.empty()) {
    key.remove_prefix(1);
    const std::size_t end = std::min(key.find('/'), key.size());
    at = at->find(key.substr(0, end));
    if (at == nullptr) break;
    place = at->place;
    key.remove_prefix(end);
  }
  return place;
}

std::vector<std::string> training_keys_in(const Json& job) {
  TrainingKeys keys;
  NameCollector collector;
  keys.visit(collector);
  std::erase_if(collector.names,
                [&](const std::string& name) { return job.find(name) == nullptr; });
  return collector.names;
}

TrainingSpec read_model_job(const Json& job, const std::string& pointer, TrainingKeys keys,
                            std::optional<std::int64_t> gpus, std::vector<std::string> order,
                            Diagnostics& out) {
  TrainingSpec spec;
  spec.pointer = pointer;
  spec.written = std::make_shared<const Json>(job);
  needs_key(job, pointer, "model", R"(e.g. "model": "llama-3-8b"; see `weft list llms`)", out);
  if (const Json* model = job.find("model")) read_model(*model, pointer + "/model", spec, out);
  spec.seq = keys.seq.value_or(1);
  spec.decoder_seq = keys.decoder_seq.value_or(0);
  spec.global_batch = keys.global_batch.value_or(1);
  spec.steps = keys.steps;
  spec.plan = std::move(keys.plan);
  if (spec.plan.pointer.empty()) spec.plan.pointer = pointer + "/plan";
  if (spec.plan.vpp > 1 && job.find("plan")->find("schedule") == nullptr)
    spec.plan.schedule = PipelineSchedule::interleaved;
  if (!order.empty()) spec.order = std::move(order);
  check_order(spec, out);
  if (spec.plan.pad && out.ok()) pad_model(spec, out);
  spec.dtype = keys.dtype;
  spec.software = keys.software;
  spec.optimizer = keys.optimizer;
  spec.flops = keys.flops;
  spec.lora_rank = keys.lora_rank;
  spec.checkpoint = keys.checkpoint;
  const PlanSpec& plan = spec.plan;
  spec.gpus = gpus ? *gpus : plan.dp ? product({plan.tp, plan.pp, plan.cp, *plan.dp}) : 0;
  return spec;
}

TrainingSpec read_training(const Json& job, const std::string& pointer, TrainingKeys keys,
                           std::optional<std::int64_t> gpus, std::vector<std::string> order,
                           Diagnostics& out) {
  const bool decoder_seq = keys.decoder_seq.has_value();
  TrainingSpec spec = read_model_job(job, pointer, std::move(keys), gpus, std::move(order), out);
  needs_key(job, pointer, "seq", R"(e.g. "seq": 4096)", out);
  needs_key(job, pointer, "global_batch", "sequences per step", out);
  if (const Json* dtype = job.find("dtype"); dtype != nullptr && spec.dtype.kv) {
    out.error(dtype->place, pointer + "/dtype/kv", "a training job has no cache",
              "leave it out, or ask for \"requests\"");
  }
  if (decoder_seq && out.ok() && spec.model.encoder_layers == 0)
    out.error(spec.place_of("/decoder_seq"), pointer + "/decoder_seq",
              "the model has a decoder alone", "leave it out: \"seq\" is all that it reads");
  check_checkpoint(spec, out);
  return spec;
}

}  // namespace weft
