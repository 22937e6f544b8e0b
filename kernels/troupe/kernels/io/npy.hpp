// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// What the header of an .npy array says.
struct npy_header {
  dtype type = dtype::float32;
  shape dims;
  bool fortran_order = false;  ///< elements lie first axis fastest
  std::size_t data_offset = 0; ///< bytes before the first element
};

/// Longest header that is read, in bytes: room for any shape of rank 8.
inline constexpr std::size_t max_npy_header = 4096;

/// Parses the header (versions 1 to 3) at the start of `bytes`, which may end
/// behind it. `name` is what errors call the array.
///
/// Element types f2, f4, f8, i1, i2, i4, i8, u1, b1 in little endian. Throws
/// error(bad_file) naming the type for others (objects, strings, big endian)
/// and for a malformed header.
/// Source: NEP 1, "A simple file format for NumPy arrays".
npy_header parse_npy_header(std::string_view bytes, const std::string& name);

/// The header that precedes the elements of a row-major array; its length is a
/// multiple of 64 bytes.
std::string make_npy_header(dtype type, const shape& dims);

/// Row-major copy of `source`, whose elements lie first axis fastest.
tensor from_fortran_order(const tensor& source, arena& memory);

} // namespace troupe
