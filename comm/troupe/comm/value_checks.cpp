// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/value_checks.hpp>

#include <troupe/base/error.hpp>
#include <troupe/comm/call_text.hpp>
#include <troupe/comm/local/reduce_kernels.hpp>

namespace troupe::comm {

namespace {

std::string text_of(collective_kind kind, const std::string& what) {
  return std::string{to_string(kind)} + ": " + what;
}

std::string describe(const value_form& value) {
  return std::string{to_string(value.type)} + " " + to_string(value.dims);
}

} // namespace

void require_addable(collective_kind kind, const value_form& value) {
  if (!local::can_add(value.type))
    throw error(errc::dtype_mismatch,
                text_of(kind, number_of_rank(value.rank) + " gives "
                                + std::string{to_string(value.type)}
                                + ", expected float32, float16, bfloat16 or "
                                  "int32"));
}

void require_alike(collective_kind kind, const value_form& value,
                   const value_form& first) {
  if (value.type == first.type && value.dims == first.dims)
    return;
  throw error(
    value.type == first.type ? errc::shape_mismatch : errc::dtype_mismatch,
    text_of(kind, number_of_rank(value.rank) + " gives " + describe(value)
                    + ", " + number_of_rank(first.rank) + " "
                    + describe(first)));
}

void refuse_rank(collective_kind kind, std::size_t rank,
                 const std::string& what) {
  refuse_call(kind, number_of_rank(rank) + " " + what);
}

void refuse_call(collective_kind kind, const std::string& what) {
  throw error(errc::invalid_argument, text_of(kind, what));
}

} // namespace troupe::comm
