// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/kernels/dtype.hpp>
#include <troupe/kernels/shape.hpp>

#include <cstddef>
#include <string>

namespace troupe::comm {

// Which dense values can be merged. All groups give the same errors.

/// A rank's dense value.
struct value_form {
  std::size_t rank;
  dtype type;
  const shape& dims;
};

/// Throws error(dtype_mismatch) if values of this dtype cannot be added.
void require_addable(collective_kind kind, const value_form& value);
/// Throws error(shape_mismatch | dtype_mismatch) that names both ranks if the
/// values differ in shape or dtype.
void require_alike(collective_kind kind, const value_form& value,
                   const value_form& first);

/// Throws error(invalid_argument) that says what is wrong with a rank.
[[noreturn]] void refuse_rank(collective_kind kind, std::size_t rank,
                              const std::string& what);
/// The same for no rank in particular.
[[noreturn]] void refuse_call(collective_kind kind, const std::string& what);

} // namespace troupe::comm
