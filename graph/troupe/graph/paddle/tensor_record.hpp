// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/atomic_file.hpp>
#include <troupe/base/input_file.hpp>
#include <troupe/kernels/tensor.hpp>
#include <troupe/kernels/variable.hpp>

#include <cstdint>
#include <string>

namespace troupe::graph {

/// Reads the LoDTensor record that begins at the file's position into host
/// memory of `memory`, levels included. `name` is the variable's name, for
/// errors.
///
/// Throws error(bad_file), naming file and variable, for a record that is cut
/// off, of another version, of a dtype that Troupe has not, or with offsets of
/// sequences that do not fit its rows. Memory is taken only for data that is
/// there.
/// Source: Paddle, lod_tensor.cc and tensor_util.cc.
tensor read_tensor_record(input_file& file, const std::string& name,
                          arena& memory);

/// Appends a record, levels included. `value` is a plain host tensor; throws
/// error(invalid_argument) if not, error(io_failure).
void write_tensor_record(atomic_file& file, const tensor& value,
                         const std::string& name);

/// The same for a SelectedRows record. Rows outside of [0, height) or of
/// another number than the values have are error(bad_file).
/// Source: Paddle, selected_rows.cc.
selected_rows read_rows_record(input_file& file, const std::string& name,
                               arena& memory);
void write_rows_record(atomic_file& file, const selected_rows& value,
                       const std::string& name);

} // namespace troupe::graph
