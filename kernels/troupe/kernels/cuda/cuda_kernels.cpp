// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/cuda_kernels.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/cuda/cuda_dtypes.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/views/reshape.hpp>
#include <troupe/kernels/write_apart.hpp>

#include <string>

namespace troupe::cuda {

namespace {

struct stateless_kernel {
  const char* op_type;
  kernel_function run;
};

struct checked_kernel {
  const char* op_type;
  kernel_factory make;
};

constexpr stateless_kernel stateless_kernels[] = {
  {"accuracy", run_accuracy},
  {"adam", run_adam},
  {"assign", run_assign},
  {"elementwise_add", run_elementwise_add},
  {"elementwise_add_grad", run_elementwise_add_grad},
  {"elementwise_div", run_elementwise_div},
  {"elementwise_div_grad", run_elementwise_div_grad},
  {"elementwise_max", run_elementwise_max},
  {"elementwise_max_grad", run_elementwise_max_grad},
  {"elementwise_mul", run_elementwise_mul},
  {"elementwise_mul_grad", run_elementwise_mul_grad},
  {"elementwise_sub", run_elementwise_sub},
  {"elementwise_sub_grad", run_elementwise_sub_grad},
  {"fill_constant", run_fill_constant},
  {"flatten_contiguous_range", run_flatten},
  {"flatten_contiguous_range_grad", run_reshape_grad},
  {"gelu", run_gelu},
  {"gelu_grad", run_gelu_grad},
  {"get_tensor_from_selected_rows", run_row_values},
  {"lookup_table_v2", run_lookup},
  {"lookup_table_v2_grad", run_lookup_grad},
  {"mean", run_mean},
  {"mean_grad", run_mean_grad},
  {"merge_selected_rows", run_merge_rows},
  {"momentum", run_momentum},
  {"mul", run_mul},
  {"mul_grad", run_mul_grad},
  {"range", run_range},
  {"reduce_mean", run_reduce_mean},
  {"reduce_mean_grad", run_reduce_mean_grad},
  {"reduce_sum", run_reduce_sum},
  {"reduce_sum_grad", run_reduce_sum_grad},
  {"relu", run_relu},
  {"relu_grad", run_relu_grad},
  {"reshape2", run_reshape},
  {"reshape2_grad", run_reshape_grad},
  {"scale", run_scale},
  {"sgd", run_sgd},
  {"sigmoid", run_sigmoid},
  {"sigmoid_grad", run_sigmoid_grad},
  {"softmax", run_softmax},
  {"softmax_grad", run_softmax_grad},
  {"sqrt", run_sqrt},
  {"sqrt_grad", run_sqrt_grad},
  {"square", run_square},
  {"square_grad", run_square_grad},
  {"squared_l2_norm", run_squared_l2_norm},
  {"squared_l2_norm_grad", run_squared_l2_norm_grad},
  {"sum", run_sum},
  {"tanh", run_tanh},
  {"tanh_grad", run_tanh_grad},
  {"top_k_v2", run_top_k},
  {"tril_triu", run_tril_triu},
  {"tril_triu_grad", run_tril_triu_grad},
};

/// Kernels whose outputs must not overlap their inputs.
constexpr stateless_kernel moving_kernels[] = {
  {"concat", run_concat},
  {"concat_grad", run_concat_grad},
  {"split", run_split},
  {"transpose2", run_transpose},
  {"transpose2_grad", run_transpose_grad},
};

constexpr checked_kernel checked_kernels[] = {
  {"batch_norm", make_batch_norm},
  {"batch_norm_grad", make_batch_norm_grad},
  {"conv2d", make_conv2d},
  {"conv2d_grad", make_conv2d_grad},
  {"depthwise_conv2d", make_conv2d},
  {"depthwise_conv2d_grad", make_conv2d_grad},
  {"dropout", make_dropout},
  {"dropout_grad", make_dropout_grad},
  {"layer_norm", make_layer_norm},
  {"layer_norm_grad", make_layer_norm_grad},
  {"matmul_v2", make_matmul},
  {"matmul_v2_grad", make_matmul_grad},
  {"pool2d", make_pool2d},
  {"pool2d_grad", make_pool2d_grad},
  {"sigmoid_cross_entropy_with_logits", make_sigmoid_loss},
  {"sigmoid_cross_entropy_with_logits_grad", make_sigmoid_loss_grad},
  {"softmax_with_cross_entropy", make_cross_entropy},
  {"softmax_with_cross_entropy_grad", make_cross_entropy_grad},
};

} // namespace

kernel_table cuda_kernels(precision factors) {
  if (factors != precision::float32)
    throw error(errc::unsupported_op,
                "CUDA devices multiply in fp32 only, not in "
                  + std::string(to_string(factors)));
  kernel_table table;
  for (auto& k : stateless_kernels)
    table.add(k.op_type, device_kind::cuda, k.run);
  for (auto& k : moving_kernels)
    table.add(k.op_type, device_kind::cuda,
              [run = k.run](const attribute_map&) { return write_apart(run); });
  for (auto& k : checked_kernels)
    table.add(k.op_type, device_kind::cuda, kernel_maker(k.make));
  table.set_dtype_rule(device_kind::cuda, takes_dtype);
  return table;
}

} // namespace troupe::cuda
