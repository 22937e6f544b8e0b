// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace troupe {

/// Arrays by name.
using named_tensors = std::map<std::string, tensor, std::less<>>;

/// Reads all arrays of a NumPy archive (np.savez, np.savez_compressed) into
/// host memory from `memory`. Arrays in Fortran order are converted to
/// row-major.
///
/// Throws error(not_found) if there is no such file, and error(bad_file),
/// naming file and array, if it is not a valid archive. An archive can take at
/// most 1032 times its own size in memory; 1032 is the highest compression
/// ratio of deflate.
named_tensors read_npz(const std::filesystem::path& path, arena& memory);

/// Writes plain host tensors as an uncompressed NumPy archive. The write is
/// atomic: on failure no file is created or replaced. Throws
/// error(invalid_argument) for a dtype that NumPy lacks (bfloat16), and
/// error(io_failure).
void write_npz(const std::filesystem::path& path, const named_tensors& arrays);

/// Throws error(invalid_argument) if `write_npz` could not write an array of
/// this name and type. Names of .npz files have no control characters, for
/// example.
void require_npz_array(const std::string& name, dtype type);

} // namespace troupe
