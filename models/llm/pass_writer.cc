// SPDX-License-Identifier: Apache-2.0
#include "models/llm/pass_writer.hpp"

#include <algorithm>
#include <utility>

#include "models/llm/plan.hpp"

namespace weft {
namespace {

bool below_16_bits(Precision precision) { return bytes_of(precision) < 2; }

}  // namespace

PassSizes::PassSizes(const Architecture& model, const TrainingSpec& training, bool encoder)
    : batch(real(training.plan.micro_batch)),
      seq(real(encoder ? training.seq : decoder_tokens(model, training))),
      hidden(real(model.spec().hidden)),
      tp(real(training.plan.tp)),
      cp(real(training.plan.cp)),
      ep(real(training.plan.ep)),
      etp(real(training.plan.expert_tp())),
      sp(training.plan.sp && training.plan.tp > 1),
      tokens(batch * seq / cp),
      local(sp ? tokens / tp : tokens),
      bytes(std::max(2.0, bytes_of(training.dtype.compute))),
      gathered(bytes_of(training.dtype.compute)),
      micro_batches(std::max(
          1.0, real(training.global_batch) / (batch * real(training.plan.dp.value_or(1))))),
      compute(training.dtype.compute),
      exact(below_16_bits(compute) ? Precision::bf16 : compute),
      lora(real(training.lora_rank.value_or(0))),
      overlap(training.plan.overlap),
      gradient_bytes(2 * bytes_of(training.dtype.grad)),
      encoder_seq(model.has_encoder() && !encoder ? real(training.seq) : 0) {}

PassWriter::PassWriter(const PassSizes& sizes, const KernelTimes& kernels, PassKind pass)
    : sizes_(sizes), kernels_(kernels), pass_(pass) {
  pass_steps_.reserve(16);
  pass_steps_.emplace_back();
}

// ---- kernels

void PassWriter::kernel(double seconds, double flops) {
  PassStep& step = pass_steps_.back();
  step.compute_s += seconds;
  step.kernels += 1;
  step.flops += flops;
}

void PassWriter::memory(double elements, double moves, double kernels) {
  const MemoryPass pass{elements * moves * sizes_.bytes, kernels};
  PassStep& step = pass_steps_.back();
  step.compute_s += kernels_.memory(pass);
  step.kernels += kernels_.launches(pass);
}

void PassWriter::attention(const AttentionCall& call, double times) {
  const double flops =
      attention_pairs(call) * call.batch * call.heads * 2 * (call.head_dim + call.value_dim);
  kernel(times * kernels_.attention(call), times * flops * (call.backward ? 2 : 1));
}

void PassWriter::scan_product(const Gemm& gemm, double times) {
  kernel(times * kernels_.gemm(gemm));
}

// ---- collectives

double PassWriter::ranks(Dimension dimension) const {
  switch (dimension) {
    case Dimension::tp:
      return sizes_.tp;
    case Dimension::cp:
      return sizes_.cp;
    case Dimension::ep:
      return sizes_.ep;
    default:
      return 1;
  }
}

void PassWriter::after(Dimension dimension, CollectiveKind kind, double bytes) {
  if (ranks(dimension) <= 1 || bytes <= 0) return;
  pass_steps_.back().calls.push_back({dimension, kind, bytes, 0, 1});
  pass_steps_.emplace_back();
}

void PassWriter::open() {
  if (pass_steps_.back().compute_s > 0 || !pass_steps_.back().calls.empty())
    pass_steps_.emplace_back();
}

void PassWriter::beside(Dimension dimension, CollectiveKind kind, double bytes, double share,
                        double rounds) {
  if (ranks(dimension) <= 1 || bytes <= 0) return;
  pass_steps_.back().calls.push_back({dimension, kind, bytes, share, rounds});
}

void PassWriter::beside_step(std::size_t step, Dimension dimension, CollectiveKind kind,
                             double bytes) {
  if (ranks(dimension) <= 1 || bytes <= 0) return;
  pass_steps_[step].calls.push_back({dimension, kind, bytes, 1, 1});
}

// ---- linear layers

Precision PassWriter::precision(const Linear& linear) const {
  return linear.exact ? sizes_.exact : sizes_.compute;
}

// From 16 bits to FP8 and its transpose.
void PassWriter::cast(double elements) { memory(elements, 4 / sizes_.bytes); }

// In `pieces` of the rows, one kernel each; streams of their own let them share waves, so that tiles and starts cost, not tails.
void PassWriter::rows(const Linear& l, double in, double out, double pieces) {
  const double seconds = kernels_.gemm({.m = l.tokens / pieces,
                                        .n = out,
                                        .k = in,
                                        .groups = l.groups * pieces,
                                        .precision = precision(l),
                                        .output_bytes = sizes_.bytes});
  kernel(seconds + (pieces - 1) * kernels_.gap(), 2 * l.tokens * in * out * l.groups);
  pass_steps_.back().kernels += pieces - 1;
}

void PassWriter::product(const Linear& l, double pieces) {
  if (below_16_bits(precision(l)))
    cast(l.groups * (l.tokens * l.in + l.in * l.out / sizes_.micro_batches));
  rows(l, l.in, l.out, pieces);
  if (trained() || !l.adapted) return;
  const Linear down{l.tokens, l.in, sizes_.lora, l.groups, false, true};
  const Linear up{l.tokens, sizes_.lora, l.out, l.groups, false, true};
  product(down);
  product(up);
}

void PassWriter::input_gradient(const Linear& l, double pieces) {
  if (below_16_bits(precision(l))) cast(l.groups * l.tokens * l.out);
  rows(l, l.out, l.in, pieces);
  if (trained() || !l.adapted) return;
  input_gradient({l.tokens, sizes_.lora, l.out, l.groups, false, true});
  input_gradient({l.tokens, l.in, sizes_.lora, l.groups, false, true});
}

void PassWriter::weight_gradient(const Linear& l) {
  const auto write = [&](double in, double out, Precision p) {
    kernel(kernels_.gemm({.m = in,
                          .n = out,
                          .k = l.tokens,
                          .groups = l.groups,
                          .precision = p,
                          .output_bytes = sizes_.gradient_bytes}),
           2 * l.tokens * in * out * l.groups);
  };
  if (trained()) return write(l.in, l.out, precision(l));
  if (!l.adapted) return;
  write(sizes_.lora, l.out, sizes_.exact);
  write(l.in, sizes_.lora, sizes_.exact);
}

// Products of what all ranks of a tensor group have a part of, where sequences are split: `each` takes one and its pieces.
template <class Each>
void PassWriter::of_gathered(Linears linears, double width, const Each& each) {
  const double bytes = sizes_.tokens * width * sizes_.gathered;
  const bool chunked = sizes_.sp && sizes_.overlap.tp;
  if (chunked) {
    open();
    beside(Dimension::tp, CollectiveKind::all_gather, bytes, chunks());
  } else if (sizes_.sp) {
    after(Dimension::tp, CollectiveKind::all_gather, bytes);
  }
  for (const Linear& l : linears) each(l, chunked ? sizes_.tp : 1);
  if (chunked) open();
}

void PassWriter::column(Linears linears, double width) {
  of_gathered(linears, width, [this](const Linear& l, double pieces) { product(l, pieces); });
}

void PassWriter::row(Linears linears) {
  const double bytes = sizes_.tokens * sizes_.hidden * sizes_.bytes;
  const bool chunked = sizes_.sp && sizes_.overlap.tp;
  if (chunked) {
    open();
    beside(Dimension::tp, CollectiveKind::reduce_scatter, bytes, chunks());
  }
  for (const Linear& l : linears) product(l, chunked ? sizes_.tp : 1);
  if (chunked) {  // what the other ranks sent is added up
    memory(sizes_.tokens * sizes_.hidden, 1 + 1 / sizes_.tp);
    return open();
  }
  after(Dimension::tp, sizes_.sp ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
        bytes);
}

void PassWriter::column_back(Linears linears, double width) {
  const double elements = sizes_.tokens * width;
  const bool under = sizes_.overlap.tp_backward;  // else several products add up to what is reduced
  const bool gathers = under && sizes_.sp && weights() && trained();
  const auto gather = CollectiveKind::all_gather;
  const auto reduce = sizes_.sp ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  const bool later = under && weights() && trained();  // beside the weights' gradients
  if (inputs()) {
    const bool chunked = under && !later && sizes_.sp && sizes_.overlap.tp;
    if (gathers || chunked) open();
    if (gathers) beside(Dimension::tp, gather, elements * sizes_.gathered, 1);
    if (chunked) beside(Dimension::tp, reduce, elements * sizes_.bytes, chunks());
    for (const Linear& l : linears) input_gradient(l, chunked ? sizes_.tp : 1);
    if (chunked) memory(elements, 1 + 1 / sizes_.tp);
    if (!later && !chunked) after(Dimension::tp, reduce, elements * sizes_.bytes);
  } else if (gathers) {
    after(Dimension::tp, gather, elements * sizes_.gathered);
  }
  if (!weights()) return;
  if (inputs() && later && sizes_.tp > 1) {
    open();
    beside(Dimension::tp, reduce, elements * sizes_.bytes, 1);
  }
  for (const Linear& l : linears) weight_gradient(l);
  if (inputs() && later && sizes_.tp > 1) open();
}

void PassWriter::row_back(Linears linears) {
  if (inputs()) {
    of_gathered(linears, sizes_.hidden,
                [this](const Linear& l, double pieces) { input_gradient(l, pieces); });
  }
  if (!weights()) return;
  for (const Linear& l : linears) weight_gradient(l);
}

// A host that cannot issue as fast as the GPU works sets the pace.
LayerPass PassWriter::finish() {
  LayerPass out{std::move(pass_steps_)};
  double kernels = 0;
  for (const PassStep& step : out.steps) kernels += step.kernels;
  const double seconds = out.compute_s();
  const double host = kernels * kernels_.launch() + host_s_;
  if (seconds > 0 && host > seconds) {
    for (PassStep& step : out.steps) step.compute_s *= host / seconds;
  }
  const PassStep& last = out.steps.back();
  if (last.compute_s <= 0 && last.calls.empty() && out.steps.size() > 1) out.steps.pop_back();
  return out;
}

}  // namespace weft
