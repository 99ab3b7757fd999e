// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/plan_output.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/cli/terminal.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostRules = 4;  // told of a refusal

// Computing first.
std::vector<TimePart> parts(const StepEstimate& time) {
  std::vector<TimePart> out{{"computing", time.compute_s}, {"bubble", time.bubble_s}};
  for (std::size_t d = 0; d < kDimensions; ++d)
    out.push_back({std::string(dimension_name(static_cast<Dimension>(d))), time.exposed_s[d]});
  return out;
}

std::string bottleneck(const StepEstimate& time) {
  const std::vector<TimePart> all = parts(time);
  return costs_most(std::span(all).subspan(1), time.step_s);
}

std::string sharding(const PlanSpec& plan) {
  if (!plan.fsdp) return fmt::format("zero {}", plan.zero);
  return plan.fsdp->reshard ? "fsdp" : "fsdp, weights kept";
}

}  // namespace

Json plan_document(const PlanSpec& plan, bool experts) {
  const Json all = write_config(plan);
  Json out = Json::object();
  const auto keep = [&](std::string_view key) {
    if (const Json* value = all.find(key)) out.set(key, *value);
  };
  for (const std::string_view key : {"tp", "pp", "dp", "cp", "vpp", "micro_batch"}) keep(key);
  if (experts) {
    keep("ep");
    keep("etp");
  }
  if (plan.fsdp)
    keep("fsdp");
  else
    keep("zero");
  for (const std::string_view key : {"sp", "schedule"}) keep(key);
  if (!plan.scatter_sends) keep("scatter_sends");
  out.set("layout", plan.layout.kind == Json::Kind::null ? Json("even") : plan.layout);
  for (const std::string_view key :
       {"recompute", "recompute_layers", "context", "dispatcher", "overlap", "bucket"})
    keep(key);
  if (plan.offload) keep("offload");
  if (plan.pad) keep("pad");
  if (plan.expert_skew != 1) keep("expert_skew");
  if (plan.expert_capacity != 0) keep("expert_capacity");
  return out;
}

std::string shape_words(const PlanSpec& plan, bool experts) {
  std::string out = fmt::format("tp {} pp {}", plan.tp, plan.pp);
  if (plan.dp) out += fmt::format(" dp {}", *plan.dp);
  if (plan.cp > 1) out += fmt::format(" cp {}", plan.cp);
  if (experts) out += fmt::format(" ep {}", plan.ep);
  if (experts && plan.expert_tp() != plan.tp) out += fmt::format(" etp {}", plan.expert_tp());
  return out;
}

std::string plan_words(const PlanSpec& plan, bool experts) {
  std::string out = fmt::format("{}, micro_batch {}, {}", shape_words(plan, experts),
                                plan.micro_batch, sharding(plan));
  if (plan.pp > 1) out += fmt::format(", {}", write_config(plan.schedule).text);
  if (plan.vpp > 1) out += fmt::format(" x {}", plan.vpp);
  if (plan.layout.is_string()) out += fmt::format(", {}", plan.layout.text);
  if (plan.recompute != Recompute::none)
    out += fmt::format(", recompute {}", write_config(plan.recompute).text);
  return out;
}

std::string costs_most(std::span<const TimePart> waiting, double whole) {
  const TimePart& most = *std::ranges::max_element(waiting, {}, &TimePart::seconds);
  const double share = 100 * most.seconds / whole;
  return share < 0.05 ? "computing" : fmt::format("{} {:.1f} %", most.name, share);
}

std::string difference(const StepEstimate& first, const StepEstimate& second) {
  std::vector<TimePart> all = parts(second);
  const std::vector<TimePart> before = parts(first);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].seconds -= before[i].seconds;
  std::ranges::stable_sort(all, std::ranges::greater{},
                           [](const TimePart& part) { return std::abs(part.seconds); });
  std::string out;
  for (const TimePart& part : all) {
    const double share = 100 * part.seconds / first.step_s;
    if (std::abs(share) < 0.05) break;
    out += fmt::format("{}{} {:+.1f} %", out.empty() ? "" : ", ", part.name, share);
  }
  return out.empty() ? "nothing: equally fast" : out;
}

void refuse_all(const std::vector<BrokenRule>& broken, bool experts) {
  Diagnostics out;
  out.error({}, {}, "no plan keeps all rules; those that come closest break these",
            "other --gpus or --global-batch, fewer --fix");
  for (std::size_t i = 0; i < std::min(broken.size(), kMostRules); ++i) {
    const auto& [problem, plan, plans] = broken[i];
    const std::string more =
        plans > 1 ? fmt::format(" and {} more alike", plans - 1) : std::string{};
    out.error({}, problem.pointer,
              fmt::format("{} ({}{})", problem.fact, shape_words(plan, experts), more),
              problem.cure);
  }
  throw InputError(out.text());
}

Json plan_row(const RankedPlan& row, bool experts) {
  const StepEstimate& time = row.candidate.time;
  Json out = Json::object();
  out.set("plan", plan_document(row.candidate.plan, experts));
  out.set("step_time_s", row.step_s());
  out.set("fidelity", row.simulated_s ? "fluid" : "analytic");
  out.set("estimated_step_time_s", time.step_s);
  out.set("mfu", row.mfu);
  out.set("memory_bytes", row.candidate.memory_bytes);
  out.set("bottleneck", bottleneck(time));
  Json& shares = out.set("estimated_s", Json::object());
  for (const TimePart& part : parts(time)) shares.set(part.name, part.seconds);
  return out;
}

std::string plan_table(const std::vector<RankedPlan>& rows, bool experts, double capacity) {
  Table table({"step s", "estimate", "MFU", "memory", "costs most", "plan"});
  for (const RankedPlan& row : rows) {
    table.row({row.simulated_s ? fmt::format("{:.4g}", *row.simulated_s) : "",
               fmt::format("{:.4g}", row.candidate.time.step_s),
               fmt::format("{:.1f} %", 100 * row.mfu),
               fmt::format("{:.1f} of {:.0f} GB", row.candidate.memory_bytes / 1e9, capacity / 1e9),
               bottleneck(row.candidate.time), plan_words(row.candidate.plan, experts)});
  }
  return table.text();
}

}  // namespace weft
