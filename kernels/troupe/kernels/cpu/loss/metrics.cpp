// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

std::int64_t count_correct(const index_values& indices, std::int64_t k,
                           const index_values& label, std::int64_t samples) {
  std::int64_t correct = 0;
  for (std::int64_t n = 0; n < samples; ++n)
    for (std::int64_t i = 0; i < k; ++i)
      if (indices[n * k + i] == label[n]) {
        ++correct;
        break;
      }
  return correct;
}

void write_count(kernel_context& ctx, std::string_view slot,
                 std::int64_t count) {
  if (ctx.has_output(slot))
    ctx.output(slot, {}, dtype::int32).data<std::int32_t>()[0] =
      static_cast<std::int32_t>(count);
}

} // namespace

void run_accuracy(kernel_context& ctx) {
  const tensor indices = ctx.input("Indices");
  const tensor label = ctx.input("Label");
  require_rank("Indices", indices.dims(), 2);
  const std::int64_t samples = indices.dims()[0];
  if (label.numel() != samples)
    throw_shapes("Label", label.dims(), "Indices", indices.dims(),
                 "expected one label per sample");
  const std::int64_t correct =
    count_correct(index_values(indices, "Indices"), indices.dims()[1],
                  index_values(label, "Label"), samples);
  tensor accuracy = float_output(ctx, "Accuracy", {});
  accuracy.data<float>()[0] =
    samples == 0 ? 0.0f
                 : static_cast<float>(correct) / static_cast<float>(samples);
  write_count(ctx, "Correct", correct);
  write_count(ctx, "Total", samples);
}

} // namespace troupe::cpu
