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
/// host memory of `memory`; arrays in Fortran order come out row-major.
///
/// Throws error(not_found) if there is no such file and error(bad_file),
/// naming file and array, for anything that is not such an archive. An
/// archive cannot ask for more memory than its own size times the largest
/// ratio that deflate reaches (1032).
named_tensors read_npz(const std::filesystem::path& path, arena& memory);

/// Writes plain host tensors as an uncompressed NumPy archive, whole or not at
/// all. Throws error(invalid_argument) for a dtype that NumPy has not
/// (bfloat16) and error(io_failure).
void write_npz(const std::filesystem::path& path, const named_tensors& arrays);

} // namespace troupe
