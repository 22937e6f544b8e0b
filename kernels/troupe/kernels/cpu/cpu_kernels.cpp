// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/kernel_options.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/norm/fused_batch_norm.hpp>
#include <troupe/kernels/views/reshape.hpp>
#include <troupe/kernels/write_apart.hpp>

#include <string>

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

/// A kernel that depends on the table's options.
struct chosen_kernel {
  const char* op_type;
  std::unique_ptr<kernel> (*make)(const attribute_map&, const kernel_options&);
};

constexpr chosen_kernel chosen_kernels[] = {
  {"mul", cpu::make_mul},
  {"mul_grad", cpu::make_mul_grad},
  {"gathered_mul_grad", cpu::make_gathered_mul_grad},
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
  {"conv2d_transpose", cpu::make_conv2d_transpose},
  {"conv2d_transpose_grad", cpu::make_conv2d_transpose_grad},
  {"depthwise_conv2d_transpose", cpu::make_conv2d_transpose},
  {"depthwise_conv2d_transpose_grad", cpu::make_conv2d_transpose_grad},
  {"sgd", cpu::make_sgd},
  {"momentum", cpu::make_momentum},
  {"adam", cpu::make_adam},
  {"adamw", cpu::make_adamw},
  {"merging_sgd", cpu::make_sgd},
  {"merging_momentum", cpu::make_momentum},
  {"merging_adam", cpu::make_adam},
  {"merging_adamw", cpu::make_adamw},
  {"gathered_sgd", cpu::make_sgd},
  {"gathered_momentum", cpu::make_momentum},
  {"gathered_adam", cpu::make_adam},
  {"gathered_adamw", cpu::make_adamw},
};

constexpr made_kernel made_kernels[] = {
  {"pool2d", cpu::make_pool2d},
  {"pool2d_grad", cpu::make_pool2d_grad},
  {"batch_norm", cpu::make_batch_norm},
  {"batch_norm_grad", cpu::make_batch_norm_grad},
  {"fused_batch_norm_act", cpu::make_fused_batch_norm},
  {"fused_batch_norm_act_grad", cpu::make_fused_batch_norm_grad},
  {"fused_bn_add_activation", cpu::make_fused_batch_norm},
  {"fused_bn_add_activation_grad", cpu::make_fused_batch_norm_add_grad},
  {"recompute_batch_norm_act", cpu::make_recomputed_batch_norm},
  {"sync_batch_norm", cpu::make_batch_norm},
  {"sync_batch_norm_grad", cpu::make_batch_norm_grad},
  {"layer_norm", cpu::make_layer_norm},
  {"layer_norm_grad", cpu::make_layer_norm_grad},
  {"dropout", cpu::make_dropout},
  {"dropout_grad", cpu::make_dropout_grad},
  {"lookup_table", cpu::make_lookup_column},
  {"lookup_table_grad", cpu::make_lookup_column_grad},
  {"lookup_table_v2", cpu::make_lookup},
  {"lookup_table_v2_grad", cpu::make_lookup_grad},
  {"rnn", cpu::make_rnn},
  {"rnn_grad", cpu::make_rnn_grad},
  {"sequence_pool", cpu::make_sequence_pool},
  {"sequence_pool_grad", cpu::make_sequence_pool_grad},
  {"softmax_with_cross_entropy", cpu::make_cross_entropy},
  {"softmax_with_cross_entropy_grad", cpu::make_cross_entropy_grad},
  {"accumulate", cpu::make_accumulate},
  {"dgc_momentum", cpu::make_dgc_momentum},
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
  {"sync_batch_norm_moments", cpu::run_sync_batch_norm_moments},
  {"sync_batch_norm_normalize", cpu::run_sync_batch_norm_normalize},
  {"sync_batch_norm_running", cpu::run_sync_batch_norm_running},
  {"sync_batch_norm_grad_sums", cpu::run_sync_batch_norm_grad_sums},
  {"sync_batch_norm_grad_apply", cpu::run_sync_batch_norm_grad_apply},
  {"softmax", cpu::run_softmax},
  {"softmax_grad", cpu::run_softmax_grad},
  {"log_softmax", cpu::run_log_softmax},
  {"scale", cpu::run_scale},
  {"increment", cpu::run_increment},
  {"clip", cpu::run_clip},
  {"clip_grad", cpu::run_clip_grad},
  {"assign", cpu::run_assign},
  {"shape_of", cpu::run_shape_of},
  {"cast", cpu::run_cast},
  {"coalesce_tensor", cpu::run_coalesce_tensor},
  {"sum", cpu::run_sum},
  {"range", cpu::run_range},
  {"tril_triu", cpu::run_tril_triu},
  {"tril_triu_grad", cpu::run_tril_triu_grad},
  {"reshape", run_reshape},
  {"reshape_grad", run_reshape_grad},
  {"reshape2", run_reshape},
  {"reshape2_grad", run_reshape_grad},
  {"squeeze", run_squeeze},
  {"squeeze_grad", run_reshape_grad},
  {"squeeze2", run_squeeze},
  {"squeeze2_grad", run_reshape_grad},
  {"unsqueeze", run_unsqueeze},
  {"unsqueeze_grad", run_reshape_grad},
  {"unsqueeze2", run_unsqueeze},
  {"unsqueeze2_grad", run_reshape_grad},
  {"flatten", run_flatten_matrix},
  {"flatten_grad", run_reshape_grad},
  {"flatten2", run_flatten_matrix},
  {"flatten2_grad", run_reshape_grad},
  {"flatten_contiguous_range", run_flatten},
  {"flatten_contiguous_range_grad", run_reshape_grad},
  {"scatter", cpu::run_scatter},
  {"scatter_nd_add", cpu::run_scatter_nd_add},
  {"prelu", cpu::run_prelu},
  {"shape", cpu::run_shape},
  {"size", cpu::run_size},
  {"share_data", cpu::run_assign},
  {"memcpy", cpu::run_assign},
  {"accuracy", cpu::run_accuracy},
  {"clip_by_norm", cpu::run_clip_by_norm},
  {"dgc_clip_by_norm", cpu::run_dgc_clip_by_norm},
  {"merge_selected_rows", cpu::run_merge_selected_rows},
  {"get_tensor_from_selected_rows", cpu::run_get_tensor_from_selected_rows},
  {"check_finite_and_unscale", cpu::run_check_finite_and_unscale},
  {"update_loss_scaling", cpu::run_update_loss_scaling},
  {"write_to_array", cpu::run_write_to_array},
  {"read_from_array", cpu::run_read_from_array},
  {"lod_array_length", cpu::run_lod_array_length},
  {"select_input", cpu::run_select_input},
  {"select_output", cpu::run_select_output},
  {"sequence_softmax", cpu::run_sequence_softmax},
  {"lod_reset", cpu::run_lod_reset},
  {"lod_reset_grad", cpu::run_lod_reset_grad},
  {"fill_any_like", cpu::run_fill_any_like},
  {"fill_zeros_like", cpu::run_fill_zeros_like},
  {"fill_constant_batch_size_like", cpu::run_fill_constant_batch_size_like},
  {"fill_constant", cpu::run_fill_constant},
  {"uniform_random", cpu::run_uniform_random},
  {"gaussian_random", cpu::run_gaussian_random},
  {"truncated_gaussian_random", cpu::run_truncated_gaussian_random},
  {"uniform_random_batch_size_like", cpu::run_uniform_random_batch_size_like},
  {"gaussian_random_batch_size_like", cpu::run_gaussian_random_batch_size_like},
  {"randint", cpu::run_randint},
  {"assign_value", cpu::run_assign_value},
  {"set_value", cpu::run_set_value},
  {"auc", cpu::run_auc},
  {"isfinite", cpu::run_isfinite},
  {"isinf", cpu::run_isinf},
  {"isnan", cpu::run_isnan},
};

/// Kernels whose outputs must not overlap their inputs.
constexpr plain_kernel moving_kernels[] = {
  {"log_softmax_grad", cpu::run_log_softmax_grad},
  {"cross_entropy", cpu::run_cross_entropy},
  {"cross_entropy_grad", cpu::run_cross_entropy_grad},
  {"cross_entropy2", cpu::run_cross_entropy2},
  {"cross_entropy_grad2", cpu::run_cross_entropy2_grad},
  {"huber_loss", cpu::run_huber_loss},
  {"huber_loss_grad", cpu::run_huber_loss_grad},
  {"dot", cpu::run_dot},
  {"dot_grad", cpu::run_dot_grad},
  {"cumsum", cpu::run_cumsum},
  {"cumsum_grad", cpu::run_cumsum_grad},
  {"stack", cpu::run_stack},
  {"stack_grad", cpu::run_stack_grad},
  {"unstack", cpu::run_unstack},
  {"unstack_grad", cpu::run_unstack_grad},
  {"unbind", cpu::run_unbind},
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
  {"scatter_grad", cpu::run_scatter_grad},
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
  {"max_pool2d_with_index", cpu::run_max_pool2d_with_index},
  {"max_pool2d_with_index_grad", cpu::run_max_pool2d_with_index_grad},
  {"group_norm", cpu::run_group_norm},
  {"group_norm_grad", cpu::run_group_norm_grad},
  {"instance_norm", cpu::run_instance_norm},
  {"instance_norm_grad", cpu::run_instance_norm_grad},
  {"norm", cpu::run_l2_normalize},
  {"norm_grad", cpu::run_l2_normalize_grad},
  {"prelu_grad", cpu::run_prelu_grad},
  {"top_k", cpu::run_top_k},
  {"top_k_grad", cpu::run_top_k_grad},
  {"top_k_v2", cpu::run_top_k},
  {"top_k_v2_grad", cpu::run_top_k_grad},
  {"argsort", cpu::run_argsort},
  {"argsort_grad", cpu::run_top_k_grad},
  {"arg_max", cpu::run_arg_max},
  {"arg_min", cpu::run_arg_min},
  {"concat", cpu::run_concat},
  {"concat_grad", cpu::run_concat_grad},
  {"split", cpu::run_split},
  {"squared_l2_norm", cpu::run_squared_l2_norm},
  {"squared_l2_norm_grad", cpu::run_squared_l2_norm_grad},
  {"lstm", cpu::run_lstm},
  {"lstm_grad", cpu::run_lstm_grad},
  {"gru", cpu::run_gru},
  {"gru_grad", cpu::run_gru_grad},
  {"gru_unit", cpu::run_gru_unit},
  {"gru_unit_grad", cpu::run_gru_unit_grad},
  {"tensor_array_to_tensor", cpu::run_tensor_array_to_tensor},
  {"tensor_array_to_tensor_grad", cpu::run_tensor_array_to_tensor_grad},
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
  {"sequence_softmax_grad", cpu::run_sequence_softmax_grad},
  {"set_value_grad", cpu::run_set_value_grad},
  {"cos_sim", cpu::run_cos_sim},
  {"cos_sim_grad", cpu::run_cos_sim_grad},
  {"label_smooth", cpu::run_label_smooth},
  {"label_smooth_grad", cpu::run_label_smooth_grad},
  {"smooth_l1_loss", cpu::run_smooth_l1_loss},
  {"smooth_l1_loss_grad", cpu::run_smooth_l1_loss_grad},
};

} // namespace

kernel_table cpu_kernels() {
  return cpu_kernels(kernel_options{});
}

kernel_table cpu_kernels(const kernel_options& options) {
  if (!has_precision(options.factors))
    throw error(errc::unsupported_op,
                "this processor does not multiply in "
                  + std::string(to_string(options.factors)));
  kernel_table table;
  for (const auto& entry : chosen_kernels)
    table.add(entry.op_type, device_kind::cpu,
              [make = entry.make, options](const attribute_map& attributes) {
                return make(attributes, options);
              });
  for (const auto& entry : made_kernels)
    table.add(entry.op_type, device_kind::cpu, entry.make);
  for (const auto& entry : plain_kernels)
    table.add(entry.op_type, device_kind::cpu, entry.run);
  for (const auto& entry : moving_kernels)
    table.add(
      entry.op_type, device_kind::cpu,
      [run = entry.run](const attribute_map&) { return write_apart(run); });
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
