// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::graph {

/// How parameters lie on disk.
enum class parameter_layout : std::uint8_t {
  combined, ///< one file, records in sorted order of names
  separate, ///< a folder with a file per variable, named like it
};

/// Name of the combined file in a program folder.
inline constexpr const char* combined_file_name = "params.pdiparams";

/// Names of the variables that a parameter file of `p` holds: persistable and
/// a tensor or selected rows, of all blocks. Sorted as Paddle sorts.
std::vector<std::string> stored_names(const program& p);

/// Reads the parameters of `p` into `values`, in host memory of `memory`: from
/// a combined file, from a folder with `params.pdiparams`, or from a folder
/// with a file per variable.
///
/// A combined file has no names, so `p` must be the program that it was saved
/// for (the main program, not its clone for testing).
///
/// On error `values` is as before. Throws error(not_found) for a missing file,
/// error(shape_mismatch) and error(dtype_mismatch) with file, variable,
/// declared and found value, error(bad_file) with byte counts for a file that
/// is too short, too long, or not a parameter file.
void load_parameters(const program& p, const std::filesystem::path& path,
                     scope& values, arena& memory);

/// Writes the parameters of `p`, whole or not at all. Throws error(not_found)
/// for a variable without value, error(invalid_argument) for one that is not a
/// plain host tensor, error(io_failure).
void save_parameters(const program& p, const scope& values,
                     const std::filesystem::path& path,
                     parameter_layout layout = parameter_layout::combined);

} // namespace troupe::graph
