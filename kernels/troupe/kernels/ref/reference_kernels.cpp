// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/ops.hpp>

namespace troupe {

namespace {

struct table_entry {
  const char* op_type;
  kernel_function run;
};

constexpr table_entry entries[] = {
  {"accuracy", ref::accuracy},
  {"adam", ref::adam},
  {"assign", ref::assign},
  {"batch_norm", ref::batch_norm},
  {"batch_norm_grad", ref::batch_norm_grad},
  {"cast", ref::cast},
  {"concat", ref::concat},
  {"concat_grad", ref::concat_grad},
  {"conv2d", ref::conv2d},
  {"conv2d_grad", ref::conv2d_grad},
  {"depthwise_conv2d", ref::conv2d},
  {"depthwise_conv2d_grad", ref::conv2d_grad},
  {"dropout", ref::dropout},
  {"dropout_grad", ref::dropout_grad},
  {"elementwise_add", ref::elementwise_add},
  {"elementwise_add_grad", ref::elementwise_add_grad},
  {"elementwise_mul", ref::elementwise_mul},
  {"elementwise_mul_grad", ref::elementwise_mul_grad},
  {"elementwise_sub", ref::elementwise_sub},
  {"elementwise_sub_grad", ref::elementwise_sub_grad},
  {"fill_constant", ref::fill_constant},
  {"flatten_contiguous_range", ref::flatten_contiguous_range},
  {"flatten_contiguous_range_grad", ref::reshape2_grad},
  {"gaussian_random", ref::gaussian_random},
  {"gelu", ref::gelu},
  {"gelu_grad", ref::gelu_grad},
  {"layer_norm", ref::layer_norm},
  {"layer_norm_grad", ref::layer_norm_grad},
  {"lookup_table_v2", ref::lookup_table_v2},
  {"lookup_table_v2_grad", ref::lookup_table_v2_grad},
  {"matmul_v2", ref::matmul_v2},
  {"matmul_v2_grad", ref::matmul_v2_grad},
  {"mean", ref::mean},
  {"mean_grad", ref::mean_grad},
  {"momentum", ref::momentum},
  {"mul", ref::mul},
  {"mul_grad", ref::mul_grad},
  {"pool2d", ref::pool2d},
  {"pool2d_grad", ref::pool2d_grad},
  {"reduce_mean", ref::reduce_mean},
  {"reduce_mean_grad", ref::reduce_mean_grad},
  {"reduce_sum", ref::reduce_sum},
  {"reduce_sum_grad", ref::reduce_sum_grad},
  {"relu", ref::relu},
  {"relu_grad", ref::relu_grad},
  {"reshape2", ref::reshape2},
  {"reshape2_grad", ref::reshape2_grad},
  {"scale", ref::scale},
  {"sgd", ref::sgd},
  {"sigmoid", ref::sigmoid},
  {"sigmoid_grad", ref::sigmoid_grad},
  {"slice", ref::slice},
  {"slice_grad", ref::slice_grad},
  {"softmax", ref::softmax},
  {"softmax_grad", ref::softmax_grad},
  {"softmax_with_cross_entropy", ref::softmax_with_cross_entropy},
  {"softmax_with_cross_entropy_grad", ref::softmax_with_cross_entropy_grad},
  {"split", ref::split},
  {"square", ref::square},
  {"square_grad", ref::square_grad},
  {"sum", ref::sum},
  {"tanh", ref::tanh},
  {"tanh_grad", ref::tanh_grad},
  {"top_k_v2", ref::top_k_v2},
  {"transpose2", ref::transpose2},
  {"transpose2_grad", ref::transpose2_grad},
  {"truncated_gaussian_random", ref::truncated_gaussian_random},
  {"uniform_random", ref::uniform_random},
};

} // namespace

kernel_table reference_kernels() {
  kernel_table table;
  for (const auto& [op_type, run] : entries)
    table.add(op_type, device_kind::cpu, run);
  return table;
}

} // namespace troupe
