// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/elementwise/elementwise_ops.hpp>
#include <troupe/kernels/dtype.hpp>

#include <troupe/base/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::cpu {

/// Calls `use(T{})` with the unsigned integer that is as wide as an element,
/// for ops that only move elements.
template <class Use>
auto with_width(dtype type, Use use) {
  switch (size_of(type)) {
  case 1: return use(std::uint8_t{});
  case 2: return use(std::uint16_t{});
  case 4: return use(std::uint32_t{});
  default: return use(std::uint64_t{});
  }
}

/// Calls `use(T{})` with the element type of `slot`, which must be float32 or
/// float64. Otherwise throws error(dtype_mismatch) that names the slot.
template <class Use>
auto with_floating(dtype type, std::string_view slot, Use use) {
  switch (type) {
  case dtype::float32: return use(float{});
  case dtype::float64: return use(double{});
  default: break;
  }
  throw error(errc::dtype_mismatch, std::string(slot) + " is "
                                      + std::string(to_string(type))
                                      + ", expected float32 or float64");
}

/// The same for float32, float64, int32 and int64.
template <class Use>
auto with_number(dtype type, std::string_view slot, Use use) {
  switch (type) {
  case dtype::float32: return use(float{});
  case dtype::float64: return use(double{});
  case dtype::int32: return use(std::int32_t{});
  case dtype::int64: return use(std::int64_t{});
  default: break;
  }
  throw error(errc::dtype_mismatch, std::string(slot) + " is "
                                      + std::string(to_string(type))
                                      + ", expected float32, float64, int32 "
                                        "or int64");
}

/// out[i] += x[i]; integers wrap around.
template <class T>
void add_into(T* out, const T* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = elementwise::add::apply(out[i], x[i]);
}

} // namespace troupe::cpu
