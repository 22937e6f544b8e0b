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

/// How to generate values for a fed variable.
struct feed_info {
  shape dims; ///< the first extent is the batch
  dtype type = dtype::float32;
  /// integers in [0, below); empty: normal
  std::optional<std::int64_t> below{};
};

/// The contents of `program.json`. All of them are optional.
struct program_info {
  std::string net{};                   ///< name of the network
  std::string loss{};                  ///< name of the loss variable
  std::optional<std::int64_t> batch{}; ///< samples per step over all devices
  std::map<std::string, feed_info, std::less<>> feeds{};
};

/// A folder with `main.pdmodel`, `startup.pdmodel` and, optionally,
/// `test.pdmodel` and `program.json`.
struct program_folder {
  program main;                  ///< forward, backward and optimizer ops
  program startup;               ///< initializes the parameters
  std::optional<program> test{}; ///< forward ops for evaluation
  program_info info{};
};

/// Parses the text of a `program.json`. `name` identifies it in errors. Unknown
/// keys are ignored. Throws error(bad_file), naming the key, for malformed
/// contents.
program_info parse_program_info(std::string_view text, const std::string& name);

/// Reads a program folder. Throws error(not_found) naming a missing main or
/// startup program, and what `read_program` and `parse_program_info` throw.
program_folder read_program_folder(const std::filesystem::path& path);

/// Throws error(io_failure) if `write_program_folder` could not write to
/// `path`: what atomic_directory refuses, and a folder under the name of a
/// file. Creates nothing.
void require_program_folder_place(const std::filesystem::path& path);

/// Writes the folder atomically. Unless `values` is null, the parameters of the
/// main program are saved as `params.pdiparams`. If the folder exists, its
/// files of these names are replaced, or removed if the new folder does not
/// have them. Other files are kept. Throws like `write_program` and
/// `save_parameters`.
void write_program_folder(const program_folder& folder,
                          const std::filesystem::path& path,
                          const scope* values = nullptr);

} // namespace troupe::graph
