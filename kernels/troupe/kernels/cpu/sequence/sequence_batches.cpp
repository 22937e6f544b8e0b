// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/sequence/sequence_batches.hpp>

#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <algorithm>
#include <numeric>

namespace troupe::cpu {

sequence_batches::sequence_batches(const std::vector<std::uint64_t>& offsets,
                                   bool reverse)
  : order_(offsets.size() - 1), starts_{0} {
  const auto first = [&](std::int64_t i) {
    return static_cast<std::int64_t>(offsets[static_cast<std::size_t>(i)]);
  };
  const auto length = [&](std::int64_t i) { return first(i + 1) - first(i); };
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](auto a, auto b) { return length(a) > length(b); });
  const auto longest = order_.empty() ? 0 : length(order_.front());
  for (std::int64_t step = 0; step < longest; ++step) {
    for (auto i : order_)
      if (step < length(i))
        rows_.push_back(first(i) + (reverse ? length(i) - 1 - step : step));
    starts_.push_back(static_cast<std::int64_t>(rows_.size()));
  }
}

void sequence_batches::gather(float* out, const float* x,
                              std::int64_t width) const {
  for (auto row : rows_) {
    copy(out, x + row * width, width);
    out += width;
  }
}

void sequence_batches::scatter(float* out, const float* x,
                               std::int64_t width) const {
  for (auto row : rows_) {
    copy(out + row * width, x, width);
    x += width;
  }
}

void sequence_batches::gather_sequences(float* out, const float* x,
                                        std::int64_t width) const {
  for (auto i : order_) {
    copy(out, x + i * width, width);
    out += width;
  }
}

void sequence_batches::scatter_sequences(float* out, const float* x,
                                         std::int64_t width) const {
  for (auto i : order_) {
    copy(out + i * width, x, width);
    x += width;
  }
}

} // namespace troupe::cpu
