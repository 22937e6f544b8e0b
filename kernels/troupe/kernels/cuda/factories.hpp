// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

namespace troupe::cuda {

// Kernels for CUDA devices. Each checks shapes and dtypes on the host and
// queues bodies and products; elements are read on the GPU only. All take
// float32, and labels as int64. Dense gradients only.
//
// Attributes that a kernel does not support are refused when it is made, with
// error(unsupported_op).

void run_relu(kernel_context& ctx);
void run_relu_grad(kernel_context& ctx);
void run_tanh(kernel_context& ctx);
void run_tanh_grad(kernel_context& ctx);
void run_sigmoid(kernel_context& ctx);
void run_sigmoid_grad(kernel_context& ctx);
void run_scale(kernel_context& ctx);
void run_sum(kernel_context& ctx);
void run_assign(kernel_context& ctx);
void run_fill_constant(kernel_context& ctx);
void run_elementwise_add(kernel_context& ctx);
void run_elementwise_add_grad(kernel_context& ctx);
void run_elementwise_sub(kernel_context& ctx);
void run_elementwise_sub_grad(kernel_context& ctx);

void run_reduce_mean(kernel_context& ctx);
void run_reduce_mean_grad(kernel_context& ctx);
void run_reduce_sum(kernel_context& ctx);
void run_reduce_sum_grad(kernel_context& ctx);

void run_mul(kernel_context& ctx);
void run_mul_grad(kernel_context& ctx);

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
void run_mean(kernel_context& ctx);
void run_mean_grad(kernel_context& ctx);
void run_top_k(kernel_context& ctx);
void run_accuracy(kernel_context& ctx);

void run_sgd(kernel_context& ctx);
void run_momentum(kernel_context& ctx);
std::unique_ptr<kernel> make_adam(const attribute_map& attributes);

} // namespace troupe::cuda
