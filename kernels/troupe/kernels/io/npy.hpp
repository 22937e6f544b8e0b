// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// The header of an .npy array.
struct npy_header {
  dtype type = dtype::float32;
  shape dims;
  bool fortran_order = false;  ///< the first axis varies fastest
  std::size_t data_offset = 0; ///< bytes before the first element
};

/// Longest header that is accepted, in bytes. Enough for any shape of rank 8.
inline constexpr std::size_t max_npy_header = 4096;

/// Parses the header (versions 1 to 3) at the start of `bytes`. `bytes` need
/// not contain the elements. `name` identifies the array in errors.
///
/// Element types: little-endian f2, f4, f8, i1, i2, i4, i8, u1, b1. Throws
/// error(bad_file) for a malformed header, or naming the type for any other
/// type (objects, strings, big endian).
/// Source: NEP 1, "A simple file format for NumPy arrays".
npy_header parse_npy_header(std::string_view bytes, const std::string& name);

/// Makes the header of a row-major array. Its length is a multiple of 64 bytes.
std::string make_npy_header(dtype type, const shape& dims);

/// Returns a row-major copy of `source`, which is in Fortran order: its first
/// axis varies fastest.
tensor from_fortran_order(const tensor& source, arena& memory);

} // namespace troupe
