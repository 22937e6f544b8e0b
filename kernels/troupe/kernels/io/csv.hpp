// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// Which column has the labels, and what they are.
struct csv_options {
  std::string label_column{}; ///< by name; empty: the last column
  /// int64 for classes (fractions are then an error) or float32 for values.
  dtype label_type = dtype::int64;
};

/// A table of samples.
struct csv_table {
  std::vector<std::string> columns; ///< of `features`; empty without header
  tensor features;                  ///< float32 [rows, columns]
  tensor labels;                    ///< label_type [rows, 1]
};

/// Reads comma-separated numbers into host memory of `memory`. Fields may stand
/// in double quotes and between blanks; blank lines are skipped.
///
/// The first line is a header if it names columns: one field at least is not
/// empty, and none is a number. A first line with numbers is a row like all
/// others.
///
/// Throws error(not_found) for a file or label column that is not there,
/// error(bad_file) with line and column for a row of another length, a field
/// that is not a finite number, or a file without rows, and
/// error(out_of_memory) before more is read than `host_memory_limit` allows.
csv_table read_csv(const std::filesystem::path& path,
                   const csv_options& options, arena& memory);

} // namespace troupe
