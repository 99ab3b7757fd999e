// SPDX-License-Identifier: Apache-2.0
#include "models/llm/plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/llm/pipeline/pipeline.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

using Wide = __int128;  // four plausible numbers of ranks multiply beyond 64 bits

bool divides(std::int64_t part, std::int64_t whole) { return whole % part == 0; }

// "8 or 16": the legal values next to `value` below and above. Empty when there is none from 1 to `most`.
template <class Legal>
std::string neighbours(std::int64_t value, std::int64_t most, Legal&& legal) {
  most = std::min(most, 16 * value + 4096);  // what is farther is no help, and takes long to find
  std::string out;
  for (std::int64_t below = std::min(value - 1, most); below >= 1; --below) {
    if (!legal(below)) continue;
    out = std::to_string(below);
    break;
  }
  for (std::int64_t above = value + 1; above <= most; ++above) {
    if (!legal(above)) continue;
    out += (out.empty() ? "" : " or ") + std::to_string(above);
    break;
  }
  return out;
}

template <class Legal>
std::string use(std::string_view key, std::int64_t value, std::int64_t most, Legal&& legal) {
  const std::string values = neighbours(value, most, legal);
  return values.empty() ? std::string{} : fmt::format("\"{}\": {}", key, values);
}

// What there is of several cures.
std::string either(std::initializer_list<std::string> cures) {
  std::string out;
  for (const std::string& cure : cures) {
    if (!cure.empty()) out += (out.empty() ? "" : ", or ") + cure;
  }
  return out;
}

std::string multiples(std::int64_t value, std::int64_t of) {
  const std::int64_t below = value / of * of;
  return below == 0 ? std::to_string(of) : fmt::format("{} or {}", below, below + of);
}

struct Words {
  std::string fact, cure;
};

class Rules {
 public:
  Rules(const Architecture& model, TrainingSpec& spec, Diagnostics* out)
      : model_(model), llm_(model.spec()), spec_(spec), plan_(spec.plan), out_(out) {}

  bool hold() {
    replicas();
    tensor();
    sequence();
    sharding();
    experts();
    recompute();
    encoder();
    const bool stages_fit = stages();
    if (dp_ > 0) {
      expert_ranks();
      if (batch() && stages_fit) schedule();
    }
    return good_;
  }

 private:
  // One rule. `words` are made only when somebody reads them. `key` counts from the job.
  template <class MakeWords>
  bool need(bool holds, std::string_view key, MakeWords&& words) {
    if (holds) return true;
    good_ = false;
    if (out_ == nullptr) return false;
    const Words said = words();
    out_->error(spec_.place_of(key), spec_.pointer + std::string(key), said.fact, said.cure);
    return false;
  }

  // gpus = tp x pp x cp x dp.
  void replicas() {
    const Wide one = Wide{plan_.tp} * plan_.pp * plan_.cp;
    const auto shape = [&] {
      return fmt::format("tp {} x pp {} x cp {}", plan_.tp, plan_.pp, plan_.cp);
    };
    if (plan_.dp) {
      const bool equal = one * *plan_.dp == spec_.gpus;
      need(equal, "/plan/dp", [&]() -> Words {
        return {fmt::format("{} x dp {} = {} GPUs, the job has {}", shape(), *plan_.dp,
                            in_words(one * *plan_.dp), spec_.gpus),
                spec_.gpus % one == 0
                    ? fmt::format("\"dp\": {}, or leave it out", in_words(spec_.gpus / one))
                    : fmt::format("\"gpus\": {}", in_words(one * *plan_.dp))};
      });
      dp_ = equal ? *plan_.dp : 0;
      return;
    }
    const bool fits = spec_.gpus % one == 0;
    need(fits, "/plan", [&]() -> Words {
      std::string cure = one > spec_.gpus
                             ? fmt::format("at least {} GPUs", in_words(one))
                             : fmt::format("\"gpus\": {}", multiples(spec_.gpus, narrow(one)));
      const std::string tp = use("tp", plan_.tp, spec_.gpus, [&](std::int64_t value) {
        return spec_.gpus % (Wide{value} * plan_.pp * plan_.cp) == 0 && tp_fits(value);
      });
      const std::string pp = use("pp", plan_.pp, model_.layers(), [&](std::int64_t value) {
        return spec_.gpus % (Wide{value} * plan_.tp * plan_.cp) == 0;
      });
      return {fmt::format("{} GPUs cannot be split into replicas of {} = {}", spec_.gpus, shape(),
                          in_words(one)),
              either({cure, tp, pp})};
    });
    dp_ = fits ? narrow(spec_.gpus / one) : 0;
    if (fits) plan_.dp = dp_;
  }

  static std::int64_t narrow(Wide value) { return static_cast<std::int64_t>(value); }
  static std::string in_words(Wide value) {
    return value > Wide{1'000'000'000'000} ? "more than 10^12" : std::to_string(narrow(value));
  }

  bool has_attention() const {
    return llm_.pattern.empty() || llm_.pattern.find('*') != std::string::npos;
  }
  bool has_dense() const {
    if (!llm_.pattern.empty()) return llm_.pattern.find('-') != std::string::npos;
    return !llm_.experts || llm_.experts->dense_layers > 0 || llm_.experts->step > 1;
  }
  bool heads_fit(std::int64_t tp) const { return !has_attention() || divides(tp, model_.heads()); }
  // Fewer heads of keys and values than ranks are copied.
  bool kv_heads_fit(std::int64_t tp) const {
    return !has_attention() || llm_.latent || divides(tp, model_.kv_heads()) ||
           divides(model_.kv_heads(), tp);
  }
  bool width_fits(std::int64_t tp) const { return !has_dense() || divides(tp, llm_.intermediate); }
  bool shared_fits(std::int64_t tp) const {
    return !llm_.experts || divides(tp, llm_.experts->shared_size);
  }
  bool mamba_fits(std::int64_t tp) const {
    return !llm_.mamba || (divides(tp, llm_.mamba->heads) && divides(tp, llm_.mamba->groups));
  }
  bool tp_fits(std::int64_t tp) const {
    return heads_fit(tp) && kv_heads_fit(tp) && width_fits(tp) && shared_fits(tp) &&
           mamba_fits(tp) && (plan_.etp != 0 || expert_size_fits(tp));
  }
  bool expert_size_fits(std::int64_t etp) const {
    return !llm_.experts || divides(etp, llm_.experts->size);
  }

  void tensor() {
    const std::int64_t tp = plan_.tp;
    const auto rule = [&](bool holds, auto&& what) {
      need(holds, "/plan/tp", [&]() -> Words {
        return {fmt::format("{} do not divide by tp {}", what(), tp),
                either({use("tp", tp, model_.heads(),
                            [&](std::int64_t value) { return tp_fits(value); }),
                        llm_.mamba ? "" : R"("pad": true)"})};
      });
    };
    rule(heads_fit(tp), [&] { return fmt::format("{} attention heads", model_.heads()); });
    rule(kv_heads_fit(tp) || !heads_fit(tp), [&] {
      return fmt::format("{} heads of keys and values, which can be copied {} times,",
                         model_.kv_heads(), std::max<std::int64_t>(tp / model_.kv_heads(), 1));
    });
    rule(width_fits(tp), [&] { return fmt::format("{} columns of the MLP", llm_.intermediate); });
    rule(shared_fits(tp), [&] {
      return fmt::format("{} columns of the shared experts", llm_.experts->shared_size);
    });
    rule(mamba_fits(tp), [&] {
      return fmt::format("{} heads of {} groups of the state space layers", llm_.mamba->heads,
                         llm_.mamba->groups);
    });
    if (plan_.etp == 0)
      rule(expert_size_fits(tp),
           [&] { return fmt::format("{} columns of an expert", llm_.experts->size); });
  }

  void sequence() {
    need(!plan_.sp || plan_.tp > 1, "/plan/sp", [&]() -> Words {
      return {"sequence parallel parts lie between tensor parallel ones: tp is 1",
              "\"sp\": false, or \"tp\": 2 or more"};
    });
    const bool ring = plan_.context == ContextParallel::ring;
    const std::int64_t parts = plan_.cp > 1 && ring ? 2 * plan_.cp : plan_.cp;
    need(spec_.seq % parts == 0, "/plan/cp", [&]() -> Words {
      return {fmt::format("{} tokens do not divide into {} parts for cp {}{}", spec_.seq, parts,
                          plan_.cp, ring ? " (two per rank balance the causal mask)" : ""),
              either({use("cp", plan_.cp, spec_.seq,
                          [&](std::int64_t cp) {
                            return divides(ring && cp > 1 ? 2 * cp : cp, spec_.seq);
                          }),
                      fmt::format("\"seq\": {}", multiples(spec_.seq, parts))})};
    });
    const Wide share = Wide{plan_.cp} * (plan_.sp ? plan_.tp : 1);
    need(!plan_.sp || spec_.seq % parts != 0 || spec_.seq % share == 0, "/plan/sp", [&]() -> Words {
      return {
          fmt::format("{} tokens do not divide by cp {} x tp {}", spec_.seq, plan_.cp, plan_.tp),
          fmt::format("\"seq\": {}", multiples(spec_.seq, narrow(share)))};
    });
    const auto heads_left = [&](std::int64_t cp) {
      return model_.heads() % (Wide{plan_.tp} * cp) == 0;
    };
    need(plan_.context != ContextParallel::ulysses || !heads_fit(plan_.tp) || heads_left(plan_.cp),
         "/plan/cp", [&]() -> Words {
           return {
               fmt::format("Ulysses spreads heads: {} do not divide by tp {} x cp {}",
                           model_.heads(), plan_.tp, plan_.cp),
               either({use("cp", plan_.cp, model_.heads(), heads_left), R"("context": "ring")"})};
         });
    need(llm_.positions != Positions::learned || !llm_.context || spec_.seq <= *llm_.context,
         "/seq", [&]() -> Words {
           return {fmt::format("{} tokens, the model has learned positions for {}", spec_.seq,
                               *llm_.context),
                   fmt::format("\"seq\": {} or less", *llm_.context)};
         });
  }

  void sharding() {
    need(plan_.zero < 2 || plan_.pp == 1, "/plan/zero", [&]() -> Words {
      return {fmt::format("ZeRO-{} would reduce gradients after every micro-batch of the pipeline",
                          plan_.zero),
              R"("zero": 1, or "fsdp": {"reshard": false, "reduce_every_micro_batch": false})"};
    });
    need(plan_.zero == 0 || !plan_.fsdp, "/plan/zero", [&]() -> Words {
      return {"fsdp shards weights, gradients and optimizer state already", "leave \"zero\" out"};
    });
    if (!plan_.fsdp || !plan_.fsdp->shard || dp_ == 0) return;
    const std::int64_t shard = *plan_.fsdp->shard;
    need(divides(shard, dp_), "/plan/fsdp/shard", [&]() -> Words {
      return {fmt::format("{} replicas do not divide into shards of {}", dp_, shard),
              use("shard", shard, dp_, [&](std::int64_t value) { return divides(value, dp_); })};
    });
  }

  void experts() {
    const bool some = llm_.experts.has_value();
    const auto only_experts = [&](bool unset, std::string_view key) {
      need(some || unset, key, [&]() -> Words {
        return {"the model has no experts", "leave it out"};
      });
    };
    only_experts(plan_.ep == 1, "/plan/ep");
    only_experts(plan_.etp <= 1 || plan_.etp == plan_.tp, "/plan/etp");
    only_experts(plan_.expert_skew == 1, "/plan/expert_skew");
    only_experts(plan_.expert_capacity == 0, "/plan/expert_capacity");
    only_experts(plan_.expert_servers == 0, "/plan/expert_servers");
    if (!some) return;
    need(plan_.expert_servers == 0 || plan_.dispatcher == Dispatcher::deepep,
         "/plan/expert_servers", [&]() -> Words {
           return {"it changes nothing where a token is sent once for each of its experts",
                   R"(add "dispatcher": "deepep", or leave it out)"};
         });
    need(divides(plan_.ep, llm_.experts->count), "/plan/ep", [&]() -> Words {
      return {fmt::format("{} experts do not divide over ep {}", llm_.experts->count, plan_.ep),
              use("ep", plan_.ep, llm_.experts->count,
                  [&](std::int64_t ep) { return divides(ep, llm_.experts->count); })};
    });
    need(plan_.etp == 0 || expert_size_fits(plan_.etp), "/plan/etp", [&]() -> Words {
      return {fmt::format("{} columns of an expert do not divide by etp {}", llm_.experts->size,
                          plan_.etp),
              use("etp", plan_.etp, llm_.experts->size,
                  [&](std::int64_t etp) { return expert_size_fits(etp); })};
    });
  }

  // Experts share the ranks of a stage.
  void expert_ranks() {
    if (!llm_.experts) return;
    const Wide stage = Wide{plan_.tp} * plan_.cp * dp_;
    const auto fits = [&](std::int64_t ep) { return stage % (Wide{plan_.expert_tp()} * ep) == 0; };
    need(fits(plan_.ep), "/plan/ep", [&]() -> Words {
      return {
          fmt::format("ep {} x etp {} do not divide the {} ranks of a stage (tp {} x cp {} x dp "
                      "{})",
                      plan_.ep, plan_.expert_tp(), in_words(stage), plan_.tp, plan_.cp, dp_),
          use("ep", plan_.ep, llm_.experts->count,
              [&](std::int64_t ep) { return fits(ep) && divides(ep, llm_.experts->count); })};
    });
  }

  void recompute() {
    need(!plan_.recompute_layers || plan_.recompute != Recompute::none, "/plan/recompute_layers",
         [&]() -> Words {
           return {"nothing is recomputed", R"(add "recompute": "full", or leave it out)"};
         });
    need(!plan_.recompute_layers || *plan_.recompute_layers <= model_.layers(),
         "/plan/recompute_layers", [&]() -> Words {
           return {fmt::format("{} layers of a stage, the model has {}", *plan_.recompute_layers,
                               model_.layers()),
                   "leave it out to recompute all of them"};
         });
  }

  // Of what Megatron-LM does not run with an encoder and a decoder either.
  void encoder() {
    if (!model_.has_encoder()) return;
    const auto without = [&](bool unset, std::string_view key, std::string_view what) {
      need(unset, key, [&]() -> Words {
        return {fmt::format("not yet: {} of a model with an encoder", what), "leave it out"};
      });
    };
    without(plan_.cp == 1, "/plan/cp", "context parallel ranks");
    without(plan_.vpp == 1, "/plan/vpp", "chunks of layers");
    without(plan_.schedule != PipelineSchedule::dualpipe, "/plan/schedule", "two directions");
    const std::int64_t written = decoder_tokens(model_, spec_);
    need(!plan_.sp || written % plan_.tp == 0, "/decoder_seq", [&]() -> Words {
      return {fmt::format("{} tokens of the decoder do not divide by tp {}", written, plan_.tp),
              fmt::format("\"decoder_seq\": {}, or \"sp\": false", multiples(written, plan_.tp))};
    });
  }

  bool stages() {
    Diagnostics silent;
    Diagnostics& out = out_ != nullptr ? *out_ : silent;
    if (plan_.layout.kind == Json::Kind::null) {  // the common case, without allocating
      const std::int64_t chunks = plan_.schedule == PipelineSchedule::dualpipe ? 1 : plan_.vpp;
      if (Wide{plan_.pp} * chunks <= model_.layers()) return true;
    }
    const bool read = !stage_layout(model_, plan_, out).empty();
    good_ = good_ && read;
    return read;
  }

  bool batch() {
    const Wide together = Wide{dp_} * plan_.micro_batch;
    if (spec_.global_batch % together == 0) return true;
    need(false, "/global_batch", [&]() -> Words {
      std::string cure = fmt::format("\"global_batch\": {}",
                                     together > spec_.global_batch
                                         ? in_words(together)
                                         : multiples(spec_.global_batch, narrow(together)));
      if (spec_.global_batch % dp_ == 0)
        cure = either({cure, use("micro_batch", plan_.micro_batch, spec_.global_batch / dp_,
                                 [&](std::int64_t micro_batch) {
                                   return divides(micro_batch, spec_.global_batch / dp_);
                                 })});
      return {fmt::format("{} sequences do not divide by dp {} x micro_batch {}",
                          spec_.global_batch, dp_, plan_.micro_batch),
              cure};
    });
    return false;
  }

  void schedule() {
    const std::int64_t m = spec_.global_batch / (dp_ * plan_.micro_batch);
    std::string cure;
    std::string broken = pipeline_entry(plan_.schedule).refuse({plan_.pp, plan_.vpp, m}, cure);
    if (broken.empty()) return;
    if (cure.find("micro-batches") != std::string::npos)
      cure += fmt::format("; now global_batch {} / (dp {} x micro_batch {}) = {}",
                          spec_.global_batch, dp_, plan_.micro_batch, m);
    const bool chunks = plan_.schedule != PipelineSchedule::interleaved && plan_.vpp > 1;
    need(false, chunks ? "/plan/vpp" : "/plan/schedule", [&]() -> Words {
      return {std::move(broken), std::move(cure)};
    });
  }

  const Architecture& model_;
  const LlmSpec& llm_;
  TrainingSpec& spec_;
  PlanSpec& plan_;
  Diagnostics* out_;
  std::int64_t dp_ = 0;  // 0: not known
  bool good_ = true;
};

}  // namespace

void check_plan(const Architecture& model, TrainingSpec& spec, Diagnostics& out) {
  Rules(model, spec, &out).hold();
}

bool legal_plan(const Architecture& model, TrainingSpec& spec) {
  return Rules(model, spec, nullptr).hold();
}

}  // namespace weft
