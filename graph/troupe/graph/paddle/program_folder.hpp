// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::graph {

/// How to make up values for a variable that is fed.
struct feed_info {
  shape dims; ///< with the batch as first extent
  dtype type = dtype::float32;
  std::optional<std::int64_t> below{}; ///< integers in [0, below); none: normal
};

/// What `program.json` says beside a program. All of it may be missing.
struct program_info {
  std::string net{};                   ///< name of the network
  std::string loss{};                  ///< name of the loss variable
  std::optional<std::int64_t> batch{}; ///< samples per step, all devices
  std::map<std::string, feed_info, std::less<>> feeds{};
};

/// A folder with `main.pdmodel`, `startup.pdmodel` and, where there are such,
/// `test.pdmodel` and `program.json`.
struct program_folder {
  program main;                  ///< forward, backward and optimizer ops
  program startup;               ///< initialises the parameters
  std::optional<program> test{}; ///< forward ops for evaluation
  program_info info{};
};

/// Parses the text of a `program.json`; `name` is what errors call it. Throws
/// error(bad_file) naming the key for one that is not as described. Keys that
/// are not known are ignored.
program_info parse_program_info(std::string_view text, const std::string& name);

/// Throws error(not_found) naming a missing main or startup program, and what
/// read_program and parse_program_info throw.
program_folder read_program_folder(const std::filesystem::path& path);

/// Writes the folder, and the parameters of the main program as
/// `params.pdiparams` unless `values` is null. It appears whole or not at all;
/// in a folder that exists, files of these names are replaced or, if there is
/// nothing to put in their place, removed, and others are kept. Throws like
/// write_program and save_parameters.
void write_program_folder(const program_folder& folder,
                          const std::filesystem::path& path,
                          const scope* values = nullptr);

} // namespace troupe::graph
