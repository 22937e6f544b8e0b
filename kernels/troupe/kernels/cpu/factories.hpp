// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/kernel_options.hpp>

#include <memory>

/// The fast CPU kernels. `make_...` makes a kernel that keeps something between
/// steps, `run_...` is one that does not. `add_...` adds a family to the table.
/// Slots and attributes are Paddle's; indices are int64 or int32. Kernels throw
/// errors for shapes and dtypes that they do not support. Long work is cut into
/// parts that the device's workers share. Gradients compute only the outputs
/// that the op has.
namespace troupe::cpu {

// mul.cpp, matmul.cpp (both versions, bmm), dot.cpp
std::unique_ptr<kernel> make_mul(const attribute_map&, const kernel_options&);
std::unique_ptr<kernel> make_mul_grad(const attribute_map&,
                                      const kernel_options&);
std::unique_ptr<kernel> make_gathered_mul_grad(const attribute_map&,
                                               const kernel_options&);
std::unique_ptr<kernel> make_matmul(const attribute_map&,
                                    const kernel_options&);
std::unique_ptr<kernel> make_matmul_grad(const attribute_map&,
                                         const kernel_options&);
void run_dot(kernel_context&);
void run_dot_grad(kernel_context&);

// elementwise.cpp, elementwise_grad.cpp, comparison.cpp
void add_elementwise(kernel_table&);
void add_elementwise_gradients(kernel_table&);
void add_comparisons(kernel_table&);

// conv2d.cpp, conv2d_transpose.cpp (both depthwise too), pool2d.cpp,
// pool2d_index.cpp
std::unique_ptr<kernel> make_conv2d(const attribute_map&,
                                    const kernel_options&);
std::unique_ptr<kernel> make_conv2d_grad(const attribute_map&,
                                         const kernel_options&);
std::unique_ptr<kernel> make_conv2d_transpose(const attribute_map&,
                                              const kernel_options&);
std::unique_ptr<kernel> make_conv2d_transpose_grad(const attribute_map&,
                                                   const kernel_options&);
std::unique_ptr<kernel> make_pool2d(const attribute_map&);
std::unique_ptr<kernel> make_pool2d_grad(const attribute_map&);
void run_max_pool2d_with_index(kernel_context&);
void run_max_pool2d_with_index_grad(kernel_context&);

// group_norm.cpp, l2_normalize.cpp, prelu.cpp
void run_group_norm(kernel_context&);
void run_group_norm_grad(kernel_context&);
void run_instance_norm(kernel_context&);
void run_instance_norm_grad(kernel_context&);
void run_l2_normalize(kernel_context&);
void run_l2_normalize_grad(kernel_context&);
void run_prelu(kernel_context&);
void run_prelu_grad(kernel_context&);

// batch_norm.cpp, layer_norm.cpp
std::unique_ptr<kernel> make_batch_norm(const attribute_map&);
std::unique_ptr<kernel> make_batch_norm_grad(const attribute_map&);
std::unique_ptr<kernel> make_layer_norm(const attribute_map&);
std::unique_ptr<kernel> make_layer_norm_grad(const attribute_map&);

// sync_batch_norm.cpp
void run_sync_batch_norm_moments(kernel_context&);
void run_sync_batch_norm_normalize(kernel_context&);
void run_sync_batch_norm_running(kernel_context&);
void run_sync_batch_norm_grad_sums(kernel_context&);
void run_sync_batch_norm_grad_apply(kernel_context&);

// dropout.cpp, embedding.cpp
std::unique_ptr<kernel> make_dropout(const attribute_map&);
std::unique_ptr<kernel> make_dropout_grad(const attribute_map&);
std::unique_ptr<kernel> make_lookup(const attribute_map&);
std::unique_ptr<kernel> make_lookup_grad(const attribute_map&);
std::unique_ptr<kernel> make_lookup_column(const attribute_map&);
std::unique_ptr<kernel> make_lookup_column_grad(const attribute_map&);

// metrics.cpp
void run_accuracy(kernel_context&);

// activation.cpp, unary_math.cpp: families of one table each
void add_activations(kernel_table&);
void add_unary_math(kernel_table&);

// softmax.cpp, cross_entropy.cpp
void run_softmax(kernel_context&);
void run_softmax_grad(kernel_context&);
void run_log_softmax(kernel_context&);
void run_log_softmax_grad(kernel_context&);
std::unique_ptr<kernel> make_cross_entropy(const attribute_map&);
std::unique_ptr<kernel> make_cross_entropy_grad(const attribute_map&);

// class_losses.cpp, huber.cpp, pointwise_losses.cpp
void run_cross_entropy(kernel_context&);
void run_cross_entropy_grad(kernel_context&);
void run_cross_entropy2(kernel_context&);
void run_cross_entropy2_grad(kernel_context&);
void run_huber_loss(kernel_context&);
void run_huber_loss_grad(kernel_context&);
void add_pointwise_losses(kernel_table&);

// running_sum.cpp, clip.cpp
void run_cumsum(kernel_context&);
void run_cumsum_grad(kernel_context&);
void run_increment(kernel_context&);
void run_clip(kernel_context&);
void run_clip_grad(kernel_context&);

// reduce.cpp, reduce_grad.cpp, norm.cpp
void add_reductions(kernel_table&);
void add_reduction_gradients(kernel_table&);
void add_norms(kernel_table&);

// arithmetic.cpp
void run_scale(kernel_context&);
void run_assign(kernel_context&);
void run_shape_of(kernel_context&);
void run_cast(kernel_context&);
void run_sum(kernel_context&);

// expand.cpp; run_expand_grad is also the gradient of run_expand_as
void run_expand(kernel_context&);
void run_expand_as(kernel_context&);
void run_expand_grad(kernel_context&);
void run_tile(kernel_context&);
void run_tile_grad(kernel_context&);

// gather.cpp, scatter.cpp
void run_gather(kernel_context&);
void run_gather_grad(kernel_context&);
void run_index_select(kernel_context&);
void run_index_select_grad(kernel_context&);
void run_gather_nd(kernel_context&);
void run_gather_nd_grad(kernel_context&);
void run_scatter(kernel_context&);
void run_scatter_grad(kernel_context&);
void run_scatter_nd_add(kernel_context&);
void run_scatter_nd_add_grad(kernel_context&);

// pad.cpp, rearrange.cpp
void run_pad(kernel_context&);
void run_pad_grad(kernel_context&);
void run_pad3d(kernel_context&);
void run_pad3d_grad(kernel_context&);
void run_flip(kernel_context&);
void run_roll(kernel_context&);
void run_roll_grad(kernel_context&);
void run_meshgrid(kernel_context&);
void run_meshgrid_grad(kernel_context&);

// where.cpp, one_hot.cpp
void run_where(kernel_context&);
void run_where_grad(kernel_context&);
void run_where_index(kernel_context&);
void run_one_hot(kernel_context&);
void run_one_hot_column(kernel_context&);
void run_shape(kernel_context&);
void run_size(kernel_context&);

// ranking.cpp; run_top_k_grad is also the gradient of argsort
void run_top_k(kernel_context&);
void run_top_k_grad(kernel_context&);
void run_argsort(kernel_context&);
void run_arg_max(kernel_context&);
void run_arg_min(kernel_context&);

// range.cpp, triangle.cpp
void run_range(kernel_context&);
void run_tril_triu(kernel_context&);
void run_tril_triu_grad(kernel_context&);

// stack.cpp
void run_stack(kernel_context&);
void run_stack_grad(kernel_context&);
void run_unstack(kernel_context&);
void run_unstack_grad(kernel_context&);
void run_unbind(kernel_context&);

// transpose.cpp, concat.cpp, slice.cpp
void run_transpose(kernel_context&);
void run_transpose_grad(kernel_context&);
void run_coalesce_tensor(kernel_context& ctx);
void run_concat(kernel_context&);
void run_concat_grad(kernel_context&);
void run_split(kernel_context&);
void run_slice(kernel_context&);
void run_slice_grad(kernel_context&);
void run_strided_slice(kernel_context&);
void run_strided_slice_grad(kernel_context&);

// rnn.cpp
std::unique_ptr<kernel> make_rnn(const attribute_map&);
std::unique_ptr<kernel> make_rnn_grad(const attribute_map&);

// dynamic_lstm.cpp, dynamic_gru.cpp, gru_unit.cpp
void run_lstm(kernel_context&);
void run_lstm_grad(kernel_context&);
void run_gru(kernel_context&);
void run_gru_grad(kernel_context&);
void run_gru_unit(kernel_context&);
void run_gru_unit_grad(kernel_context&);

// tensor_arrays.cpp
void run_write_to_array(kernel_context&);
void run_read_from_array(kernel_context&);
void run_lod_array_length(kernel_context&);
void run_tensor_array_to_tensor(kernel_context&);
void run_tensor_array_to_tensor_grad(kernel_context&);
void run_select_input(kernel_context&);
void run_select_output(kernel_context&);

// sequence_rows.cpp, sequence_pool.cpp, lod_reset.cpp
void run_sequence_expand(kernel_context&);
void run_sequence_expand_grad(kernel_context&);
void run_sequence_expand_as(kernel_context&);
void run_sequence_expand_as_grad(kernel_context&);
void run_sequence_concat(kernel_context&);
void run_sequence_concat_grad(kernel_context&);
void run_sequence_reverse(kernel_context&);
void run_sequence_pad(kernel_context&);
void run_sequence_pad_grad(kernel_context&);
void run_sequence_unpad(kernel_context&);
void run_sequence_unpad_grad(kernel_context&);
std::unique_ptr<kernel> make_sequence_pool(const attribute_map&);
std::unique_ptr<kernel> make_sequence_pool_grad(const attribute_map&);
void run_sequence_softmax(kernel_context&);
void run_sequence_softmax_grad(kernel_context&);
void run_lod_reset(kernel_context&);
void run_lod_reset_grad(kernel_context&);

// fill.cpp
void run_fill_constant(kernel_context&);
void run_fill_any_like(kernel_context&);
void run_fill_zeros_like(kernel_context&);
void run_fill_constant_batch_size_like(kernel_context&);

// random_fill.cpp
void run_uniform_random(kernel_context&);
void run_uniform_random_batch_size_like(kernel_context&);
void run_gaussian_random(kernel_context&);
void run_gaussian_random_batch_size_like(kernel_context&);
void run_truncated_gaussian_random(kernel_context&);
void run_randint(kernel_context&);

// set_value.cpp
void run_assign_value(kernel_context&);
void run_set_value(kernel_context&);
void run_set_value_grad(kernel_context&);

// auc.cpp
void run_auc(kernel_context&);

// cos_sim.cpp, smooth_l1_loss.cpp, label_smooth.cpp
void run_label_smooth(kernel_context&);
void run_label_smooth_grad(kernel_context&);
void run_cos_sim(kernel_context&);
void run_cos_sim_grad(kernel_context&);
void run_smooth_l1_loss(kernel_context&);
void run_smooth_l1_loss_grad(kernel_context&);

// overflow.cpp
void run_isfinite(kernel_context&);
void run_isinf(kernel_context&);
void run_isnan(kernel_context&);

// norm_clip.cpp
void run_clip_by_norm(kernel_context&);
void run_dgc_clip_by_norm(kernel_context&);
void run_squared_l2_norm(kernel_context&);
void run_squared_l2_norm_grad(kernel_context&);
void run_merge_selected_rows(kernel_context&);
void run_get_tensor_from_selected_rows(kernel_context&);

// loss_scaling.cpp
void run_check_finite_and_unscale(kernel_context&);
void run_update_loss_scaling(kernel_context&);

// accumulate.cpp
std::unique_ptr<kernel> make_accumulate(const attribute_map&);

// sgd.cpp, momentum.cpp, adam.cpp
std::unique_ptr<kernel> make_sgd(const attribute_map&, const kernel_options&);
std::unique_ptr<kernel> make_momentum(const attribute_map&,
                                      const kernel_options&);
std::unique_ptr<kernel> make_dgc_momentum(const attribute_map&);
std::unique_ptr<kernel> make_adam(const attribute_map&, const kernel_options&);
std::unique_ptr<kernel> make_adamw(const attribute_map&, const kernel_options&);

// elementwise_optimizers.cpp
std::unique_ptr<kernel> make_adagrad(const attribute_map&);
std::unique_ptr<kernel> make_decayed_adagrad(const attribute_map&);
std::unique_ptr<kernel> make_adadelta(const attribute_map&);
std::unique_ptr<kernel> make_adamax(const attribute_map&);
std::unique_ptr<kernel> make_rmsprop(const attribute_map&);
std::unique_ptr<kernel> make_ftrl(const attribute_map&);

// layerwise_optimizers.cpp
std::unique_ptr<kernel> make_lamb(const attribute_map&);
std::unique_ptr<kernel> make_lars_momentum(const attribute_map&);

} // namespace troupe::cpu
