// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/atomic_file.hpp>
#include <troupe/base/files/input_file.hpp>
#include <troupe/kernels/tensor.hpp>
#include <troupe/kernels/variable.hpp>

#include <cstdint>
#include <string>

namespace troupe::graph {

/// Reads the LoDTensor record at the file's position, including levels, into
/// host memory from `memory`. `name` is the variable's name, for errors.
///
/// Throws error(bad_file), naming file and variable, for a record that is
/// truncated, has another version or an unsupported dtype, or has sequence
/// offsets that do not match its rows. Memory is allocated only for data that
/// the file contains.
/// Source: Paddle, lod_tensor.cc and tensor_util.cc.
tensor read_tensor_record(input_file& file, const std::string& name,
                          arena& memory);

/// Appends a record, including levels. Throws error(invalid_argument) unless
/// `value` is a plain host tensor, and error(io_failure).
void write_tensor_record(atomic_file& file, const tensor& value,
                         const std::string& name);

/// The same for a SelectedRows record. Throws error(bad_file) if rows are
/// outside [0, height) or if their number differs from that of the values.
/// Source: Paddle, selected_rows.cc.
selected_rows read_rows_record(input_file& file, const std::string& name,
                               arena& memory);
void write_rows_record(atomic_file& file, const selected_rows& value,
                       const std::string& name);

} // namespace troupe::graph
