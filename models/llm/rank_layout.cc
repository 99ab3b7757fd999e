// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "models/llm/plan.hpp"
#include "sim/core/check.hpp"

namespace weft {

std::int64_t decoder_tokens(const Architecture& model, const TrainingSpec& spec) {
  return model.has_encoder() && spec.decoder_seq > 0 ? spec.decoder_seq : spec.seq;
}

std::int64_t micro_batches(const TrainingSpec& spec) {
  return spec.global_batch / (spec.plan.dp.value_or(1) * spec.plan.micro_batch);
}

std::int64_t expert_replicas(const PlanSpec& plan) {
  return plan.tp * plan.cp * plan.dp.value_or(1) / (plan.expert_tp() * plan.ep);
}

RankLayout::RankLayout(const PlanSpec& plan, std::vector<std::string> order)
    : size_{plan.tp, plan.cp, plan.dp.value_or(1), plan.pp}, etp_(plan.expert_tp()), ep_(plan.ep) {
  static constexpr std::array<std::string_view, kCount> kNames{"tp", "cp", "dp", "pp"};
  WEFT_CHECK(order.size() == kCount, order.size());
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto found = std::ranges::find(kNames, order[i]);
    WEFT_CHECK(found != kNames.end(), order[i]);
    order_[i] = static_cast<Dimension>(found - kNames.begin());
    stride_[order_[i]] = stride;
    stride *= size_[order_[i]];
  }
}

std::int64_t RankLayout::size() const { return size_[kTp] * size_[kCp] * size_[kDp] * size_[kPp]; }

std::int64_t RankLayout::rank(At at) const {
  return at.tp * stride_[kTp] + at.cp * stride_[kCp] + at.dp * stride_[kDp] + at.pp * stride_[kPp];
}

RankLayout::At RankLayout::at(std::int64_t rank) const {
  const auto of = [&](Dimension d) { return rank / stride_[d] % size_[d]; };
  return {of(kTp), of(kCp), of(kDp), of(kPp)};
}

std::vector<std::int64_t> RankLayout::tp_group(At at) const {
  std::vector<std::int64_t> out;
  for (at.tp = 0; at.tp < size_[kTp]; ++at.tp) out.push_back(rank(at));
  return out;
}

std::vector<std::int64_t> RankLayout::cp_group(At at) const {
  std::vector<std::int64_t> out;
  for (at.cp = 0; at.cp < size_[kCp]; ++at.cp) out.push_back(rank(at));
  return out;
}

std::vector<std::int64_t> RankLayout::dp_group(At at, bool with_cp) const {
  std::vector<std::int64_t> out;
  for (at.dp = 0; at.dp < size_[kDp]; ++at.dp) {
    if (with_cp)
      std::ranges::copy(cp_group(at), std::back_inserter(out));
    else
      out.push_back(rank(at));
  }
  std::ranges::sort(out);
  return out;
}

std::vector<std::int64_t> RankLayout::pp_group(At at) const {
  std::vector<std::int64_t> out;
  for (at.pp = 0; at.pp < size_[kPp]; ++at.pp) out.push_back(rank(at));
  return out;
}

std::int64_t RankLayout::inside(At at) const {
  const Index index{at.tp, at.cp, at.dp, at.pp};
  std::int64_t position = 0, stride = 1;
  for (const Dimension d : order_) {
    if (d == kPp) continue;
    position += index[d] * stride;
    stride *= size_[d];
  }
  return position;
}

std::int64_t RankLayout::from_inside(std::int64_t position, std::int64_t pp) const {
  std::int64_t out = pp * stride_[kPp];
  for (const Dimension d : order_) {
    if (d == kPp) continue;
    out += position % size_[d] * stride_[d];
    position /= size_[d];
  }
  return out;
}

std::vector<std::int64_t> RankLayout::expert_group(At at, std::int64_t stride,
                                                   std::int64_t count) const {
  const std::int64_t position = inside(at);
  const std::int64_t first = position - position / stride % count * stride;
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(from_inside(first + i * stride, at.pp));
  return out;
}

std::vector<std::int64_t> RankLayout::etp_group(At at) const { return expert_group(at, 1, etp_); }

std::vector<std::int64_t> RankLayout::ep_group(At at) const { return expert_group(at, etp_, ep_); }

std::vector<std::int64_t> RankLayout::edp_group(At at) const {
  return expert_group(at, etp_ * ep_, size() / size_[kPp] / (etp_ * ep_));
}

}  // namespace weft
