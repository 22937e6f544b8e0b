// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::graph {

/// How parameters are stored on disk.
enum class parameter_layout : std::uint8_t {
  combined, ///< one file, records sorted by name
  separate, ///< a folder with one file per variable, named after it
};

/// Name of the combined file in a program folder.
inline constexpr const char* combined_file_name = "params.pdiparams";

/// Names of the variables that a parameter file of `p` contains: all
/// persistable tensors and selected rows, in any block. Sorted as Paddle sorts
/// them.
std::vector<std::string> stored_names(const program& p);

/// Reads the parameters of `p` into `values`, in host memory from `memory`.
/// `path` is a combined file, a folder with `params.pdiparams`, or a folder
/// with one file per variable.
///
/// A combined file contains no names. `p` must therefore be the program that it
/// was saved for: the main program, not its clone for testing.
///
/// After an error `values` is unchanged. Throws error(not_found) for a missing
/// file, error(shape_mismatch) and error(dtype_mismatch) with file, variable,
/// declared and found value, error(bad_file) with byte counts for a file that
/// is too short, too long, or not a parameter file.
void load_parameters(const program& p, const std::filesystem::path& path,
                     scope& values, arena& memory);

/// Writes the parameters of `p` atomically. Throws error(not_found) for a
/// variable without value, error(invalid_argument) for one that is not a plain
/// host tensor, and error(io_failure).
void save_parameters(const program& p, const scope& values,
                     const std::filesystem::path& path,
                     parameter_layout layout = parameter_layout::combined);

} // namespace troupe::graph
