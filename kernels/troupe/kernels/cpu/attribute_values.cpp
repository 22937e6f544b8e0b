// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/attribute_values.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace troupe::cpu {

namespace {

constexpr const char* names[] = {"values",       "fp32_values",  "fp64_values",
                                 "int32_values", "int64_values", "bool_values",
                                 "int8_values",  "fp16_values"};

// A list as a tensor of its own element type; an empty tensor for other
// attributes.
struct to_tensor {
  arena& memory;

  template <class T>
  tensor operator()(const std::vector<T>& list) const {
    if constexpr (std::is_arithmetic_v<T>) {
      tensor all = tensor::make(
        memory, {static_cast<std::int64_t>(list.size())}, dtype_of<T>);
      std::copy(list.begin(), list.end(), all.data<T>());
      return all;
    } else {
      return {};
    }
  }
  template <class T>
  tensor operator()(const T&) const {
    return {};
  }
};

tensor first_list(const kernel_context& ctx) {
  for (const char* name : names)
    if (const attribute* value = ctx.attributes().find(name)) {
      const tensor list = std::visit(to_tensor{ctx.on().memory()}, *value);
      if (list.dims().rank() == 1 && list.numel() > 0)
        return list;
    }
  return {};
}

} // namespace

tensor attribute_values(const kernel_context& ctx, const shape& dims,
                        dtype type) {
  const tensor list = first_list(ctx);
  const std::int64_t count = list.dims().rank() == 1 ? list.numel() : 0;
  if (count != dims.numel())
    throw error(errc::invalid_argument,
                "attributes hold " + std::to_string(count)
                  + " values, expected " + std::to_string(dims.numel())
                  + " for shape " + to_string(dims));
  if (count == 0)
    return tensor::make(ctx.on().memory(), dims, type);
  return cast(list, type, ctx.on().memory()).reshaped(dims);
}

} // namespace troupe::cpu
