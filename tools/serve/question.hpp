// SPDX-License-Identifier: Apache-2.0
// What the local page can ask: a training step of a model on a fabric of the catalogue, with the values of its sliders. A question
// names parts of the catalogue and holds numbers, nothing else: no path of a file and no part of a fabric of its own can come in.
//
//   {"fabric": "hgx-h100+ib-ndr", "model": "llama-3-70b", "gpus": 64, "tp": 8, "pp": 4, "dp": 2, "bandwidth": 0.5}
//
// It becomes a scenario as a person would write it; that is what runs, and what the page shares.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.hpp"
#include "sim/run/training_spec.hpp"

namespace weft {

// The levels that answer at once; the packet level is for `weft run`.
enum class QuickLevel { analytic, fluid };
constexpr auto enum_names(QuickLevel) {
  using enum QuickLevel;
  return std::array<EnumName<QuickLevel>, 2>{{{analytic, "analytic"}, {fluid, "fluid"}}};
}

struct Question {
  static constexpr std::int64_t kMostGpus = 16384;

  std::string fabric = "hgx-h100+ib-ndr", model = "llama-3-70b";
  QuickLevel fidelity = QuickLevel::fluid;
  std::int64_t gpus = 64, tp = 8, pp = 4, dp = 2, ep = 1, vpp = 1, micro_batch = 1,
               global_batch = 128, seq = 4096, zero = 1;
  Recompute recompute = Recompute::selective;
  double bandwidth = 1;
  std::optional<double> oversubscription;
  bool quick = false;
  template <class V>
  void visit(V&& v) {
    v("fabric", fabric, "a fabric of the catalogue", not_empty);
    v("model", model, "an LLM of the catalogue", not_empty);
    v("fidelity", fidelity, "analytic or fluid");
    v("gpus", gpus, "GPUs of the job; servers follow", between(1, double{kMostGpus}));
    v("tp", tp, "tensor parallel ranks", between(1, 1024));
    v("pp", pp, "pipeline stages", between(1, 1024));
    v("dp", dp, "data parallel replicas", between(1, double{kMostGpus}));
    v("ep", ep, "ranks that share the experts of a layer", between(1, double{kMostGpus}));
    v("vpp", vpp, "chunks of layers per stage", between(1, 100));
    v("micro_batch", micro_batch, "sequences per pass", between(1, 1024));
    v("global_batch", global_batch, "sequences per step", between(1, 1'000'000));
    v("seq", seq, "tokens of a sequence", between(1, 1'048'576));
    v("zero", zero, "sharding of optimizer state (1), gradients (2), weights (3)", between(0, 3));
    v("recompute", recompute, "none, selective, full");
    v("bandwidth", bandwidth, "of the network, over the catalogue's", between(0.05, 16));
    v("oversubscription", oversubscription,
      "host bandwidth of a leaf over its uplinks'; default: the catalogue's", between(0.25, 64));
    v("quick", quick, "leave out the second runs that show what limits the time");
  }
};

// The key of the question to which a pointer into it, or into the scenario that it becomes, belongs; empty when there is none.
std::string control_of(const std::string& pointer);

// A fabric as the page offers it.
struct FabricChoice {
  std::string name, summary, generator;
  std::int64_t gpus_per_server = 0;
  bool oversubscribes = false;  // its generator has leaves with uplinks
  double oversubscription = 1;
  struct Rate {
    std::string pointer;  // of the rate, in the fabric
    Bandwidth value;      // of the catalogue
  };
  // What its GPUs train in: bf16 where they have it, else fp16; flash2 where it runs.
  Precision precision = Precision::bf16;
  AttentionKernel attention = AttentionKernel::flash2;
  std::vector<Rate> rates;  // ports of NICs first, then cables between switches
};

struct ModelChoice {
  std::string name, summary;
  double parameters = 0;
  std::int64_t layers = 0;
  bool experts = false;
};

// What there is to choose from: every fabric of one kind of server with a network, every LLM.
class Choices {
 public:
  Choices();
  const std::vector<FabricChoice>& fabrics() const { return fabrics_; }
  const std::vector<ModelChoice>& models() const { return models_; }
  // What is in the catalogue and cannot be read, with the reason.
  const std::string& left_out() const { return left_out_; }

  // The scenario that a question stands for. Names that are not offered and steps that a fabric cannot take go to `out`.
  Json scenario(const Question& question, Diagnostics& out) const;

  // For the page: all of this, and the question it starts with.
  Json to_json() const;

 private:
  std::vector<FabricChoice> fabrics_;
  std::vector<ModelChoice> models_;
  std::string left_out_;
};

}  // namespace weft
