// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/lod.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe::fuzz {

/// What one variable holds before the ops run.
struct case_value {
  std::vector<std::int64_t> dims;
  dtype type = dtype::float32;
  std::vector<double> elements; ///< as many as `dims` says
  lod levels;                   ///< none: no sequences
  std::vector<std::int64_t> rows;
  std::int64_t height = 0; ///< over 0: selected rows

  bool is_rows() const { return height > 0; }
};

/// One archive of tests/data/paddle_ops: a few ops and the values that they
/// read.
struct op_case_file {
  std::string name;
  graph::program program;
  std::map<std::string, case_value> inputs;
};

/// All archives below a folder, by name.
std::vector<op_case_file> read_op_cases(const std::filesystem::path& folder);

/// Gives the variables their values. Throws error if a value is none: levels
/// that do not fit its rows, more than 8 extents.
void set_inputs(const op_case_file& c, scope& values, arena& memory);

} // namespace troupe::fuzz
