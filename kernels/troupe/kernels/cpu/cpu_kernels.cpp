// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/factories.hpp>

namespace troupe {

namespace {

struct made_kernel {
  const char* op_type;
  kernel_factory make;
};

struct plain_kernel {
  const char* op_type;
  kernel_function run;
};

constexpr made_kernel made_kernels[] = {
  {"mul", cpu::make_mul},
  {"mul_grad", cpu::make_mul_grad},
  {"matmul_v2", cpu::make_matmul},
  {"matmul_v2_grad", cpu::make_matmul_grad},
  {"elementwise_add", cpu::make_elementwise_add},
  {"elementwise_add_grad", cpu::make_elementwise_add_grad},
  {"elementwise_sub", cpu::make_elementwise_sub},
  {"elementwise_sub_grad", cpu::make_elementwise_sub_grad},
  {"elementwise_mul", cpu::make_elementwise_mul},
  {"elementwise_mul_grad", cpu::make_elementwise_mul_grad},
  {"conv2d", cpu::make_conv2d},
  {"conv2d_grad", cpu::make_conv2d_grad},
  {"depthwise_conv2d", cpu::make_conv2d},
  {"depthwise_conv2d_grad", cpu::make_conv2d_grad},
  {"pool2d", cpu::make_pool2d},
  {"pool2d_grad", cpu::make_pool2d_grad},
  {"batch_norm", cpu::make_batch_norm},
  {"batch_norm_grad", cpu::make_batch_norm_grad},
  {"layer_norm", cpu::make_layer_norm},
  {"layer_norm_grad", cpu::make_layer_norm_grad},
  {"dropout", cpu::make_dropout},
  {"dropout_grad", cpu::make_dropout_grad},
  {"lookup_table", cpu::make_lookup_column},
  {"lookup_table_grad", cpu::make_lookup_column_grad},
  {"lookup_table_v2", cpu::make_lookup},
  {"lookup_table_v2_grad", cpu::make_lookup_grad},
  {"sequence_pool", cpu::make_sequence_pool},
  {"sequence_pool_grad", cpu::make_sequence_pool_grad},
  {"softmax_with_cross_entropy", cpu::make_cross_entropy},
  {"softmax_with_cross_entropy_grad", cpu::make_cross_entropy_grad},
  {"reduce_sum", cpu::make_reduce_sum},
  {"reduce_sum_grad", cpu::make_reduce_sum_grad},
  {"reduce_mean", cpu::make_reduce_mean},
  {"reduce_mean_grad", cpu::make_reduce_mean_grad},
  {"sgd", cpu::make_sgd},
  {"momentum", cpu::make_momentum},
  {"dgc_momentum", cpu::make_dgc_momentum},
  {"adam", cpu::make_adam},
  {"adamw", cpu::make_adamw},
  {"adagrad", cpu::make_adagrad},
  {"decayed_adagrad", cpu::make_decayed_adagrad},
  {"adadelta", cpu::make_adadelta},
  {"adamax", cpu::make_adamax},
  {"rmsprop", cpu::make_rmsprop},
  {"ftrl", cpu::make_ftrl},
  {"lamb", cpu::make_lamb},
  {"lars_momentum", cpu::make_lars_momentum},
};

constexpr plain_kernel plain_kernels[] = {
  {"relu", cpu::run_relu},
  {"relu_grad", cpu::run_relu_grad},
  {"sigmoid", cpu::run_sigmoid},
  {"sigmoid_grad", cpu::run_sigmoid_grad},
  {"tanh", cpu::run_tanh},
  {"tanh_grad", cpu::run_tanh_grad},
  {"square", cpu::run_square},
  {"square_grad", cpu::run_square_grad},
  {"gelu", cpu::run_gelu},
  {"gelu_grad", cpu::run_gelu_grad},
  {"softmax", cpu::run_softmax},
  {"softmax_grad", cpu::run_softmax_grad},
  {"mean", cpu::run_mean},
  {"mean_grad", cpu::run_mean_grad},
  {"scale", cpu::run_scale},
  {"assign", cpu::run_assign},
  {"cast", cpu::run_cast},
  {"sum", cpu::run_sum},
  {"reshape2", cpu::run_reshape},
  {"reshape2_grad", cpu::run_reshape_grad},
  {"flatten_contiguous_range", cpu::run_flatten},
  {"flatten_contiguous_range_grad", cpu::run_reshape_grad},
  {"range", cpu::run_range},
  {"tril_triu", cpu::run_tril_triu},
  {"tril_triu_grad", cpu::run_tril_triu_grad},
  {"stack", cpu::run_stack},
  {"stack_grad", cpu::run_stack_grad},
  {"unstack", cpu::run_unstack},
  {"unstack_grad", cpu::run_unstack_grad},
  {"transpose2", cpu::run_transpose},
  {"transpose2_grad", cpu::run_transpose_grad},
  {"concat", cpu::run_concat},
  {"concat_grad", cpu::run_concat_grad},
  {"split", cpu::run_split},
  {"slice", cpu::run_slice},
  {"slice_grad", cpu::run_slice_grad},
  {"top_k_v2", cpu::run_top_k},
  {"accuracy", cpu::run_accuracy},
  {"clip_by_norm", cpu::run_clip_by_norm},
  {"dgc_clip_by_norm", cpu::run_dgc_clip_by_norm},
  {"squared_l2_norm", cpu::run_squared_l2_norm},
  {"squared_l2_norm_grad", cpu::run_squared_l2_norm_grad},
  {"merge_selected_rows", cpu::run_merge_selected_rows},
  {"get_tensor_from_selected_rows", cpu::run_get_tensor_from_selected_rows},
  {"check_finite_and_unscale", cpu::run_check_finite_and_unscale},
  {"update_loss_scaling", cpu::run_update_loss_scaling},
  {"sequence_expand", cpu::run_sequence_expand},
  {"sequence_expand_grad", cpu::run_sequence_expand_grad},
  {"sequence_expand_as", cpu::run_sequence_expand_as},
  {"sequence_expand_as_grad", cpu::run_sequence_expand_as_grad},
  {"sequence_concat", cpu::run_sequence_concat},
  {"sequence_concat_grad", cpu::run_sequence_concat_grad},
  {"sequence_reverse", cpu::run_sequence_reverse},
  {"sequence_pad", cpu::run_sequence_pad},
  {"sequence_pad_grad", cpu::run_sequence_pad_grad},
  {"sequence_unpad", cpu::run_sequence_unpad},
  {"sequence_unpad_grad", cpu::run_sequence_unpad_grad},
  {"sequence_softmax", cpu::run_sequence_softmax},
  {"sequence_softmax_grad", cpu::run_sequence_softmax_grad},
  {"lod_reset", cpu::run_lod_reset},
  {"lod_reset_grad", cpu::run_lod_reset_grad},
  {"fill_constant", cpu::run_fill_constant},
  {"uniform_random", cpu::run_uniform_random},
  {"gaussian_random", cpu::run_gaussian_random},
  {"truncated_gaussian_random", cpu::run_truncated_gaussian_random},
};

} // namespace

kernel_table cpu_kernels() {
  kernel_table table;
  for (const auto& entry : made_kernels)
    table.add(entry.op_type, device_kind::cpu, entry.make);
  for (const auto& entry : plain_kernels)
    table.add(entry.op_type, device_kind::cpu, entry.run);
  return table;
}

} // namespace troupe
