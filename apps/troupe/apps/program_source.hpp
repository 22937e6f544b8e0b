// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/graph/unsupported_ops.hpp>
#include <troupe/kernels/scope.hpp>
#include <troupe/training/training_program.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace troupe::apps {

/// A network that the command line names, and all that is known about it.
struct program_bundle : training_program {
  std::string name;       ///< net or folder, as given
  std::int64_t batch = 0; ///< samples per step that it names; 0: unknown
};

/// Reads a program folder or file, or builds the built-in net of that name.
/// Throws:
/// - usage_error for an unknown net, with a list of the known ones, and if
///   `loss` is no variable of the program and of the test program, or not one
///   float number;
/// - error(not_found) for a missing file (names_file);
/// - error(not_found) or error(invalid_argument) if the loss of `program.json`
///   is none;
/// - error(bad_file).
/// @param loss value of `--loss`. Empty: from `program.json`, otherwise found
/// in the program.
program_bundle load_program(const std::string& program_or_net,
                            const std::string& loss);

/// Returns `bundle.loss`. Throws usage_error if there is none.
const std::string& require_loss(const program_bundle& bundle);

/// Ops of a program that this build cannot run.
struct missing_ops {
  graph::op_counts main;    ///< of the training program, all blocks
  graph::op_counts startup; ///< of the startup program, which runs on a CPU
};
missing_ops find_missing_ops(const program_bundle& bundle,
                             std::span<const device_id> devices);

/// "pad3d (2); of the startup program: eye (1)"; empty if nothing is missing.
std::string to_text(const missing_ops& missing);

/// Throws error(unsupported_op) listing all of `find_missing_ops`.
void require_ops(const program_bundle& bundle,
                 std::span<const device_id> devices);

/// Throws usage_error for a name of `--fetch` that no step can fetch. An
/// executor also reports this, but only when it is built.
void require_fetches(const program_bundle& bundle,
                     std::span<const std::string> names);

} // namespace troupe::apps
