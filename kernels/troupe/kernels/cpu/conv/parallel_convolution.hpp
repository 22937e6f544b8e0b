// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/conv/convolution.hpp>
#include <troupe/kernels/cpu/reduce/even_cut.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::cpu {

/// A convolution in one direction, shared by the workers of its device: each
/// takes some of the samples. Two kinds of work are not cut: filter gradients,
/// which are sums over samples, and what `convolution` itself shares among
/// workers. A filter that several parts read is packed once, by all workers.
/// Thread rule: one thread at a time, any thread.
class parallel_convolution {
public:
  explicit parallel_convolution(conv_direction direction,
                                const kernel_options& options = {})
    : direction_(direction), options_(options) {
    parts_.emplace_back(direction, options);
  }

  /// As `convolution::prepare`, for up to `workers` threads; `workers` must be
  /// the same in each call.
  image_format prepare(const conv_problem& problem, std::size_t workers);

  /// As `convolution::makes_filter_blocks`.
  bool makes_filter_blocks() const noexcept {
    return parts_.front().makes_filter_blocks();
  }

  /// As `convolution::run`.
  void run(kernel_context& ctx, stored_values a, stored_values b,
           stored_results result);

private:
  bool prepared_samples(const conv_problem& problem, std::size_t threads);
  const filter_pack* shared_pack() const;
  tensor packed(kernel_context& ctx, const filter_pack& pack,
                const float* filter) const;

  conv_direction direction_;
  kernel_options options_;
  conv_problem prepared_;
  bool ready_ = false;
  even_cut samples_{0, 1};
  std::int64_t given_step_ = 0; // elements per sample of the first operand
  std::int64_t result_step_ = 0;
  image_format result_;
  std::vector<convolution> parts_;
};

} // namespace troupe::cpu
