// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

/// The reference kernels: one function per op type, with its name. Slots,
/// attributes and defaults are Paddle's. Gradients compute only the outputs
/// that the op has. All throw errors for shapes that they do not support.
namespace troupe::ref {

// matmul.cpp
void mul(kernel_context& ctx);
void mul_grad(kernel_context& ctx);
void matmul_v2(kernel_context& ctx);
void matmul_v2_grad(kernel_context& ctx);

// elementwise.cpp
void elementwise_add(kernel_context& ctx);
void elementwise_add_grad(kernel_context& ctx);
void elementwise_sub(kernel_context& ctx);
void elementwise_sub_grad(kernel_context& ctx);
void elementwise_mul(kernel_context& ctx);
void elementwise_mul_grad(kernel_context& ctx);

// activation.cpp
void relu(kernel_context& ctx);
void relu_grad(kernel_context& ctx);
void sigmoid(kernel_context& ctx);
void sigmoid_grad(kernel_context& ctx);
void tanh(kernel_context& ctx);
void tanh_grad(kernel_context& ctx);
void gelu(kernel_context& ctx);
void gelu_grad(kernel_context& ctx);
void square(kernel_context& ctx);
void square_grad(kernel_context& ctx);

// softmax.cpp
void softmax(kernel_context& ctx);
void softmax_grad(kernel_context& ctx);
void softmax_with_cross_entropy(kernel_context& ctx);
void softmax_with_cross_entropy_grad(kernel_context& ctx);

// reduce.cpp
void mean(kernel_context& ctx);
void mean_grad(kernel_context& ctx);
void reduce_mean(kernel_context& ctx);
void reduce_mean_grad(kernel_context& ctx);
void reduce_sum(kernel_context& ctx);
void reduce_sum_grad(kernel_context& ctx);

// conv2d.cpp: also depthwise_conv2d
void conv2d(kernel_context& ctx);
void conv2d_grad(kernel_context& ctx);

// pool2d.cpp
void pool2d(kernel_context& ctx);
void pool2d_grad(kernel_context& ctx);

// batch_norm.cpp
void batch_norm(kernel_context& ctx);
void batch_norm_grad(kernel_context& ctx);

// layer_norm.cpp
void layer_norm(kernel_context& ctx);
void layer_norm_grad(kernel_context& ctx);

// dropout.cpp
void dropout(kernel_context& ctx);
void dropout_grad(kernel_context& ctx);

// embedding.cpp
void lookup_table_v2(kernel_context& ctx);
void lookup_table_v2_grad(kernel_context& ctx);

// movement.cpp
void reshape2(kernel_context& ctx);
void flatten_contiguous_range(kernel_context& ctx);
/// The gradient of both; the shape comes from XShape.
void reshape2_grad(kernel_context& ctx);
void transpose2(kernel_context& ctx);
void transpose2_grad(kernel_context& ctx);
void slice(kernel_context& ctx);
void slice_grad(kernel_context& ctx);

// concat.cpp
void concat(kernel_context& ctx);
void concat_grad(kernel_context& ctx);
void split(kernel_context& ctx);

// arithmetic.cpp
void scale(kernel_context& ctx);
void sum(kernel_context& ctx);
void cast(kernel_context& ctx);
void assign(kernel_context& ctx);

// metrics.cpp
void top_k_v2(kernel_context& ctx);
void accuracy(kernel_context& ctx);

// initializers.cpp
void fill_constant(kernel_context& ctx);
void uniform_random(kernel_context& ctx);
void gaussian_random(kernel_context& ctx);
void truncated_gaussian_random(kernel_context& ctx);

// optimizers.cpp
void sgd(kernel_context& ctx);
void momentum(kernel_context& ctx);
void adam(kernel_context& ctx);

} // namespace troupe::ref
