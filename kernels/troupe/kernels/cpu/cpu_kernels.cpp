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
  {"matmul", cpu::make_matmul},
  {"matmul_grad", cpu::make_matmul_grad},
  {"bmm", cpu::make_matmul},
  {"bmm_grad", cpu::make_matmul_grad},
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
  {"softmax", cpu::run_softmax},
  {"softmax_grad", cpu::run_softmax_grad},
  {"log_softmax", cpu::run_log_softmax},
  {"log_softmax_grad", cpu::run_log_softmax_grad},
  {"cross_entropy", cpu::run_cross_entropy},
  {"cross_entropy_grad", cpu::run_cross_entropy_grad},
  {"cross_entropy2", cpu::run_cross_entropy2},
  {"cross_entropy_grad2", cpu::run_cross_entropy2_grad},
  {"huber_loss", cpu::run_huber_loss},
  {"huber_loss_grad", cpu::run_huber_loss_grad},
  {"dot", cpu::run_dot},
  {"dot_grad", cpu::run_dot_grad},
  {"scale", cpu::run_scale},
  {"cumsum", cpu::run_cumsum},
  {"cumsum_grad", cpu::run_cumsum_grad},
  {"increment", cpu::run_increment},
  {"clip", cpu::run_clip},
  {"clip_grad", cpu::run_clip_grad},
  {"assign", cpu::run_assign},
  {"cast", cpu::run_cast},
  {"sum", cpu::run_sum},
  {"range", cpu::run_range},
  {"tril_triu", cpu::run_tril_triu},
  {"tril_triu_grad", cpu::run_tril_triu_grad},
  {"stack", cpu::run_stack},
  {"stack_grad", cpu::run_stack_grad},
  {"unstack", cpu::run_unstack},
  {"unstack_grad", cpu::run_unstack_grad},
  {"reshape", cpu::run_reshape},
  {"reshape_grad", cpu::run_reshape_grad},
  {"reshape2", cpu::run_reshape},
  {"reshape2_grad", cpu::run_reshape_grad},
  {"squeeze", cpu::run_squeeze},
  {"squeeze_grad", cpu::run_reshape_grad},
  {"squeeze2", cpu::run_squeeze},
  {"squeeze2_grad", cpu::run_reshape_grad},
  {"unsqueeze", cpu::run_unsqueeze},
  {"unsqueeze_grad", cpu::run_reshape_grad},
  {"unsqueeze2", cpu::run_unsqueeze},
  {"unsqueeze2_grad", cpu::run_reshape_grad},
  {"flatten", cpu::run_flatten_matrix},
  {"flatten_grad", cpu::run_reshape_grad},
  {"flatten2", cpu::run_flatten_matrix},
  {"flatten2_grad", cpu::run_reshape_grad},
  {"flatten_contiguous_range", cpu::run_flatten},
  {"flatten_contiguous_range_grad", cpu::run_reshape_grad},
  {"transpose", cpu::run_transpose},
  {"transpose_grad", cpu::run_transpose_grad},
  {"transpose2", cpu::run_transpose},
  {"transpose2_grad", cpu::run_transpose_grad},
  {"expand_v2", cpu::run_expand},
  {"expand_v2_grad", cpu::run_expand_grad},
  {"expand_as_v2", cpu::run_expand_as},
  {"expand_as_v2_grad", cpu::run_expand_grad},
  {"tile", cpu::run_tile},
  {"tile_grad", cpu::run_tile_grad},
  {"slice", cpu::run_slice},
  {"slice_grad", cpu::run_slice_grad},
  {"strided_slice", cpu::run_strided_slice},
  {"strided_slice_grad", cpu::run_strided_slice_grad},
  {"gather", cpu::run_gather},
  {"gather_grad", cpu::run_gather_grad},
  {"index_select", cpu::run_index_select},
  {"index_select_grad", cpu::run_index_select_grad},
  {"gather_nd", cpu::run_gather_nd},
  {"gather_nd_grad", cpu::run_gather_nd_grad},
  {"scatter", cpu::run_scatter},
  {"scatter_grad", cpu::run_scatter_grad},
  {"scatter_nd_add", cpu::run_scatter_nd_add},
  {"scatter_nd_add_grad", cpu::run_scatter_nd_add_grad},
  {"pad", cpu::run_pad},
  {"pad_grad", cpu::run_pad_grad},
  {"pad3d", cpu::run_pad3d},
  {"pad3d_grad", cpu::run_pad3d_grad},
  {"flip", cpu::run_flip},
  {"roll", cpu::run_roll},
  {"roll_grad", cpu::run_roll_grad},
  {"meshgrid", cpu::run_meshgrid},
  {"meshgrid_grad", cpu::run_meshgrid_grad},
  {"where", cpu::run_where},
  {"where_grad", cpu::run_where_grad},
  {"where_index", cpu::run_where_index},
  {"one_hot", cpu::run_one_hot_column},
  {"one_hot_v2", cpu::run_one_hot},
  {"shape", cpu::run_shape},
  {"size", cpu::run_size},
  {"top_k", cpu::run_top_k},
  {"top_k_grad", cpu::run_top_k_grad},
  {"top_k_v2", cpu::run_top_k},
  {"top_k_v2_grad", cpu::run_top_k_grad},
  {"argsort", cpu::run_argsort},
  {"argsort_grad", cpu::run_top_k_grad},
  {"arg_max", cpu::run_arg_max},
  {"arg_min", cpu::run_arg_min},
  {"share_data", cpu::run_assign},
  {"memcpy", cpu::run_assign},
  {"concat", cpu::run_concat},
  {"concat_grad", cpu::run_concat_grad},
  {"split", cpu::run_split},
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
  cpu::add_activations(table);
  cpu::add_unary_math(table);
  cpu::add_elementwise(table);
  cpu::add_elementwise_gradients(table);
  cpu::add_comparisons(table);
  cpu::add_reductions(table);
  cpu::add_reduction_gradients(table);
  cpu::add_norms(table);
  cpu::add_pointwise_losses(table);
  return table;
}

} // namespace troupe
