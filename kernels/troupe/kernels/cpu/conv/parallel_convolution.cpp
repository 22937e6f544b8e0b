// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/conv/parallel_convolution.hpp>

#include <troupe/kernels/cpu/layout/layout_traffic.hpp>

namespace troupe::cpu {

namespace {

conv_problem with_samples(conv_problem p, std::int64_t samples) {
  p.in[0] = samples;
  p.out[0] = samples;
  return p;
}

} // namespace

// Prepares all parts; false if their results differ in format. Filter gradients
// stay whole, because they are sums over samples.
bool parallel_convolution::prepared_samples(const conv_problem& problem,
                                            std::size_t threads) {
  const bool whole = direction_ == conv_direction::filter_gradient
                     || parts_.front().shares_its_work(problem);
  samples_ = {problem.in[0], whole ? 1 : threads};
  while (parts_.size() < samples_.parts())
    parts_.emplace_back(direction_, options_);
  for (std::size_t i = 0; i < samples_.parts(); ++i) {
    const auto format =
      parts_[i].prepare(with_samples(problem, samples_.size(i)));
    if (i > 0 && format != result_)
      return false;
    result_ = format;
  }
  return true;
}

image_format parallel_convolution::prepare(const conv_problem& problem,
                                           std::size_t workers) {
  if (ready_ && same_in_kernel(prepared_, problem))
    return result_;
  ready_ = false;
  const auto threads = worthwhile_parts(workers, problem);
  if (!prepared_samples(problem, threads))
    prepared_samples(problem, 1);
  const auto in = problem.in.numel(1, 4);
  const auto out = problem.out.numel(1, 4);
  const auto forward = direction_ == conv_direction::forward;
  given_step_ = forward ? in : out;
  result_step_ = forward ? out : in;
  prepared_ = problem;
  ready_ = true;
  return result_;
}

// The common packing of the filter, if there are several parts and they agree.
const filter_pack* parallel_convolution::shared_pack() const {
  const auto* pack = samples_.parts() > 1 ? parts_.front().pack() : nullptr;
  for (std::size_t i = 1; pack && i < samples_.parts(); ++i)
    if (!parts_[i].pack() || !(*parts_[i].pack() == *pack))
      return nullptr;
  return pack;
}

tensor parallel_convolution::packed(kernel_context& ctx,
                                    const filter_pack& pack,
                                    const float* filter) const {
  tensor to =
    ctx.scratch(static_cast<std::int64_t>(pack.packed_bytes() / sizeof(float)));
  const even_cut cut{
    pack.out_blocks(),
    worthwhile_parts(ctx.workers(), prepared_.filter.numel(), least_elements)};
  ctx.in_parts(cut.parts(), [&](std::size_t i) {
    pack.run(filter, to.raw(), cut.first(i), cut.size(i));
  });
  add_layout_traffic(static_cast<std::size_t>(prepared_.filter.numel())
                       * sizeof(float)
                     + pack.packed_bytes());
  return to;
}

void parallel_convolution::run(kernel_context& ctx, stored_values a,
                               stored_values b, stored_results result) {
  const auto* pack = shared_pack();
  const tensor filter = pack ? packed(ctx, *pack, b.floats()) : tensor();
  ctx.in_parts(samples_.parts(), [&](std::size_t i) {
    const auto first = samples_.first(i);
    const auto given = a + first * given_step_;
    const auto made = result + first * result_step_;
    if (pack)
      parts_[i].run_packed(ctx, given, filter.raw(), made);
    else
      parts_[i].run(ctx, given, b, made);
  });
}

} // namespace troupe::cpu
