// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/elementwise.hpp>
#include <troupe/kernels/cuda/bodies/losses.hpp>
#include <troupe/kernels/cuda/bodies/movement.hpp>
#include <troupe/kernels/cuda/bodies/norms.hpp>
#include <troupe/kernels/cuda/bodies/random.hpp>
#include <troupe/kernels/cuda/bodies/rows.hpp>
#include <troupe/kernels/cuda/bodies/updates.hpp>
#include <troupe/kernels/cuda/bodies/windows.hpp>

#include <array>
#include <cstddef>
#include <type_traits>

namespace troupe::cuda {

/// A list of bodies; a body's number is its place in the list.
template <class... Bodies>
struct body_list {
  static constexpr std::size_t size = sizeof...(Bodies);

  template <class Body>
  static constexpr std::uint32_t number() {
    static_assert((std::is_same_v<Body, Bodies> || ...), "not in the list");
    std::uint32_t found = 0;
    for (const bool same : {std::is_same_v<Body, Bodies>...}) {
      if (same)
        return found;
      ++found;
    }
    return found;
  }

  /// `Make<Body>::value` of each body.
  template <template <class> class Make>
  static constexpr auto table() {
    return std::array{Make<Bodies>::value...};
  }
};

/// All kernels. A driver knows them by their numbers.
using all_bodies = body_list<
  // elementwise.hpp
  unary<relu_function>, unary<tanh_function>, unary<sigmoid_function>,
  unary<square_function>, unary<sqrt_function>, unary<gelu_function>,
  unary<gelu_by_tanh_function>, unary_gradient<relu_function>,
  unary_gradient<tanh_function>, unary_gradient<sigmoid_function>,
  unary_gradient<sqrt_function>, unary_gradient_at<square_function>,
  unary_gradient_at<gelu_function>, unary_gradient_at<gelu_by_tanh_function>,
  scale, add, fill<float>, fill<std::int64_t>, fill<std::int32_t>,
  fill<std::uint8_t>, add_repeated<float>, add_repeated<std::int64_t>,
  add_repeated<std::int32_t>, combine_repeated<multiply_function>,
  combine_repeated<divide_function>, combine_repeated<larger_function>,
  combine_repeated<twice_product_function>,
  combine_gradient<multiply_gradient::x>,
  combine_gradient<multiply_gradient::y>, combine_gradient<divide_gradient::x>,
  combine_gradient<divide_gradient::y>, combine_gradient<larger_gradient::x>,
  combine_gradient<larger_gradient::y>, sum_repeated, scale_repeated,
  // losses.hpp
  softmax_rows, cross_entropy_gradient, softmax_gradient, sigmoid_cross_entropy,
  sigmoid_cross_entropy_gradient, sum_all, sum_squares, spread, best_of_rows,
  count_right,
  // movement.hpp
  move_elements<std::uint8_t>, move_elements<std::uint32_t>,
  move_elements<std::uint64_t>, keep_triangle<std::uint8_t>,
  keep_triangle<std::uint32_t>, keep_triangle<std::uint64_t>, count_up<float>,
  count_up<std::int64_t>, count_up<std::int32_t>, look_up,
  // norms.hpp
  batch_statistics, invert_variance, normalize_channels,
  norm_parameter_gradients, batch_norm_input_gradient, normalize_rows,
  layer_norm_input_gradient,
  // random.hpp
  drop_out, apply_mask,
  // rows.hpp
  number_rows, link_rows, sum_rows, merge_entries, find_rows,
  // updates.hpp
  sgd_update<dense_gradient>, sgd_update<present_rows>,
  momentum_update<dense_gradient>, momentum_update<all_rows>,
  adam_update<dense_gradient>, adam_update<present_rows>, adam_update<all_rows>,
  advance_powers,
  // windows.hpp
  unfold, fold, pool, pool_gradient>;

} // namespace troupe::cuda
