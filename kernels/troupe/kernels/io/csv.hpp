// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// Which column holds the labels, and their type.
struct csv_options {
  std::string label_column{}; ///< name of the column; empty: the last one
  /// int64 for class numbers (a fraction is then an error), float32 for values.
  dtype label_type = dtype::int64;
};

/// A table of samples.
struct csv_table {
  /// names of `features`; empty without header
  std::vector<std::string> columns;
  tensor features; ///< float32 [rows, columns]
  tensor labels;   ///< label_type [rows, 1]
};

/// Reads comma-separated numbers into host memory from `memory`. Fields may be
/// in double quotes and surrounded by blanks. Blank lines are skipped.
///
/// The first line is a header if no field is a number and at least one field is
/// not empty. Otherwise it is a row like all others.
///
/// Throws error(not_found) for a missing file or label column. Throws
/// error(bad_file), with line and column, for a row of a different length, a
/// field that is not a finite number, or a file without rows. Throws
/// error(out_of_memory) before it reads more than `host_memory_limit` allows.
csv_table read_csv(const std::filesystem::path& path,
                   const csv_options& options, arena& memory);

} // namespace troupe
