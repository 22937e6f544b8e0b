// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/cuda_dtypes.hpp>

#include <troupe/kernels/cuda/cuda_kernels.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace troupe::cuda {

namespace {

constexpr std::string_view gradient_of_op = "_grad";
constexpr std::string_view gradient_of_slot = "@GRAD";

std::string_view without(std::string_view text, std::string_view end) {
  return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : text;
}

bool is_one_of(dtype type, std::initializer_list<dtype> all) {
  return std::ranges::find(all, type) != all.end();
}

bool is_number(dtype type) {
  return is_one_of(type, {dtype::float32, dtype::int32, dtype::int64});
}

/// Ops that only move elements.
constexpr std::array<std::string_view, 7> moving_ops{
  "assign",    "concat",    "flatten_contiguous_range", "reshape2", "split",
  "tril_triu", "transpose2"};

/// Ops that also compute with integers.
constexpr std::array<std::string_view, 4> number_ops{
  "elementwise_add", "elementwise_sub", "fill_constant", "range"};

bool takes_in_slot(std::string_view op, std::string_view slot, dtype type) {
  if (slot == "XShape")
    return true;
  if (slot == "Mask")
    return type == dtype::uint8;
  if (slot == "Ids")
    return is_one_of(type, {dtype::int32, dtype::int64});
  if (slot == "Indices")
    return type == dtype::int64;
  if (slot == "Correct" || slot == "Total")
    return type == dtype::int32;
  if (slot == "Label" && op != "sigmoid_cross_entropy_with_logits")
    return type == dtype::int64;
  return type == dtype::float32;
}

} // namespace

bool takes_dtype(std::string_view op_type, std::string_view slot, dtype type) {
  const auto op = without(op_type, gradient_of_op);
  if (std::ranges::find(moving_ops, op) != moving_ops.end())
    return true;
  if (op == op_type && std::ranges::find(number_ops, op) != number_ops.end())
    return is_number(type);
  return takes_in_slot(op, without(slot, gradient_of_slot), type);
}

} // namespace troupe::cuda
