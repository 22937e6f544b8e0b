// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

namespace troupe::cuda {

// Kernels for CUDA devices. Each checks shapes and dtypes on the host and
// queues bodies and products; elements are read on the GPU only. All take
// float32, and labels as int64.
//
// Attributes that a kernel does not support are refused when it is made, with
// error(unsupported_op).

void run_relu(kernel_context& ctx);
void run_relu_grad(kernel_context& ctx);
void run_tanh(kernel_context& ctx);
void run_tanh_grad(kernel_context& ctx);
void run_sigmoid(kernel_context& ctx);
void run_sigmoid_grad(kernel_context& ctx);
void run_square(kernel_context& ctx);
void run_square_grad(kernel_context& ctx);
void run_sqrt(kernel_context& ctx);
void run_sqrt_grad(kernel_context& ctx);
void run_gelu(kernel_context& ctx);
void run_gelu_grad(kernel_context& ctx);
void run_scale(kernel_context& ctx);
void run_sum(kernel_context& ctx);
void run_assign(kernel_context& ctx);
void run_fill_constant(kernel_context& ctx);
void run_elementwise_add(kernel_context& ctx);
void run_elementwise_add_grad(kernel_context& ctx);
void run_elementwise_sub(kernel_context& ctx);
void run_elementwise_sub_grad(kernel_context& ctx);
void run_elementwise_mul(kernel_context& ctx);
void run_elementwise_mul_grad(kernel_context& ctx);
void run_elementwise_div(kernel_context& ctx);
void run_elementwise_div_grad(kernel_context& ctx);
void run_elementwise_max(kernel_context& ctx);
void run_elementwise_max_grad(kernel_context& ctx);

// Reads numbers on the host, and waits for them.
void run_range(kernel_context& ctx);

// These move elements: outputs must not overlap inputs.
void run_transpose(kernel_context& ctx);
void run_transpose_grad(kernel_context& ctx);
void run_concat(kernel_context& ctx);
void run_concat_grad(kernel_context& ctx);
void run_split(kernel_context& ctx);

void run_tril_triu(kernel_context& ctx);
void run_tril_triu_grad(kernel_context& ctx);
void run_lookup(kernel_context& ctx);
void run_merge_rows(kernel_context& ctx);
void run_row_values(kernel_context& ctx);
void run_lookup_grad(kernel_context& ctx);
std::unique_ptr<kernel> make_dropout(const attribute_map& attributes);
std::unique_ptr<kernel> make_dropout_grad(const attribute_map& attributes);

void run_reduce_mean(kernel_context& ctx);
void run_reduce_mean_grad(kernel_context& ctx);
void run_reduce_sum(kernel_context& ctx);
void run_reduce_sum_grad(kernel_context& ctx);

void run_mul(kernel_context& ctx);
void run_mul_grad(kernel_context& ctx);
std::unique_ptr<kernel> make_matmul(const attribute_map& attributes);
std::unique_ptr<kernel> make_matmul_grad(const attribute_map& attributes);

std::unique_ptr<kernel> make_conv2d(const attribute_map& attributes);
std::unique_ptr<kernel> make_conv2d_grad(const attribute_map& attributes);
std::unique_ptr<kernel> make_pool2d(const attribute_map& attributes);
std::unique_ptr<kernel> make_pool2d_grad(const attribute_map& attributes);

std::unique_ptr<kernel> make_batch_norm(const attribute_map& attributes);
std::unique_ptr<kernel> make_batch_norm_grad(const attribute_map& attributes);
std::unique_ptr<kernel> make_layer_norm(const attribute_map& attributes);
std::unique_ptr<kernel> make_layer_norm_grad(const attribute_map& attributes);

void run_softmax(kernel_context& ctx);
void run_softmax_grad(kernel_context& ctx);
std::unique_ptr<kernel> make_cross_entropy(const attribute_map& attributes);
std::unique_ptr<kernel>
make_cross_entropy_grad(const attribute_map& attributes);
std::unique_ptr<kernel> make_sigmoid_loss(const attribute_map& attributes);
std::unique_ptr<kernel> make_sigmoid_loss_grad(const attribute_map& attributes);
void run_mean(kernel_context& ctx);
void run_mean_grad(kernel_context& ctx);
void run_squared_l2_norm(kernel_context& ctx);
void run_squared_l2_norm_grad(kernel_context& ctx);
void run_top_k(kernel_context& ctx);
void run_accuracy(kernel_context& ctx);

// Gradients are dense or row-sparse.
void run_sgd(kernel_context& ctx);
void run_momentum(kernel_context& ctx);
void run_adam(kernel_context& ctx);

} // namespace troupe::cuda
