// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

struct ranked {
  float value = 0.0f;
  std::int64_t index = 0;
};

// The k best so far, best first; of equals the first stays ahead.
class best_list {
public:
  best_list(std::int64_t k, bool largest)
    : items_(static_cast<std::size_t>(k)), largest_(largest) {}

  void clear() noexcept { size_ = 0; }

  void offer(float value, std::int64_t index) {
    if (size_ == items_.size() && !better(value, items_[size_ - 1].value))
      return;
    std::size_t at = size_ < items_.size() ? size_++ : size_ - 1;
    for (; at > 0 && better(value, items_[at - 1].value); --at)
      items_[at] = items_[at - 1];
    items_[at] = {value, index};
  }

  const ranked& operator[](std::int64_t i) const {
    return items_[static_cast<std::size_t>(i)];
  }

private:
  bool better(float a, float b) const { return largest_ ? a > b : a < b; }

  std::vector<ranked> items_;
  std::size_t size_ = 0;
  bool largest_;
};

std::int64_t wanted_count(const kernel_context& ctx) {
  if (!ctx.has_input("K"))
    return ctx.attributes().get_int("k", 1);
  const tensor k = ctx.input("K");
  if (k.numel() != 1)
    throw_shape("K", k.dims(), "expected one element");
  return index_values(k, "K")[0];
}

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

void run_top_k(kernel_context& ctx) {
  const tensor x = float_input(ctx, "X");
  const auto& attributes = ctx.attributes();
  const std::size_t axis =
    normal_axis(attributes.get_int("axis", -1), x.dims().rank(), "X");
  const std::int64_t k = wanted_count(ctx);
  const axis_view v(x.dims(), axis);
  if (k < 1 || k > v.extent)
    throw error(errc::out_of_range, "top " + std::to_string(k) + " of "
                                      + std::to_string(v.extent) + " elements");
  shape dims = x.dims();
  dims[axis] = k;
  tensor out = float_output(ctx, "Out", dims);
  tensor indices = ctx.output("Indices", dims, dtype::int64);
  best_list best(k, attributes.get_bool("largest", true));
  for (std::int64_t line = 0; line < v.outer * v.inner; ++line) {
    const std::int64_t o = line / v.inner;
    const std::int64_t i = line % v.inner;
    best.clear();
    for (std::int64_t e = 0; e < v.extent; ++e)
      best.offer(x.data<float>()[(o * v.extent + e) * v.inner + i], e);
    for (std::int64_t e = 0; e < k; ++e) {
      const std::int64_t at = (o * k + e) * v.inner + i;
      out.data<float>()[at] = best[e].value;
      indices.data<std::int64_t>()[at] = best[e].index;
    }
  }
}

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
