// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What kind of failure an error reports. The first group is the caller's
/// (bad input, found before anything runs), the second happens while running.
enum class errc : std::uint8_t {
  invalid_argument, ///< an option or argument outside its range
  not_found,        ///< an unknown net, variable, op, device or file
  shape_mismatch,   ///< a tensor of another shape than the program declares
  dtype_mismatch,   ///< a tensor of another dtype than the program declares
  bad_file,         ///< truncated, oversized or malformed file
  unsupported_op,   ///< ops without a kernel on the chosen device
  graph_invalid,    ///< a cycle, an unordered pair of accesses, a bad program
  out_of_range,     ///< a label or index outside its table
  not_finite,       ///< a NaN or infinity where it was asked to look for them
  io_failure,       ///< the operating system refused a read or a write
  out_of_memory,    ///< a device's memory is used up
  kernel_failure,   ///< a kernel or library call failed
  peer_failure,     ///< another process went away or answered wrongly
  order_mismatch,   ///< two peers would run collectives in different orders
  cancelled,        ///< stopped on request
};

/// Returns the enumerator's name, e.g. "shape_mismatch".
std::string_view to_string(errc code) noexcept;

/// Where in a program an error arose. Empty fields are unknown.
struct error_context {
  std::string op{};       ///< name of the op handle
  std::string op_type{};  ///< e.g. "conv2d"
  std::string variable{}; ///< e.g. "fc_0.w_0"
  std::string device{};   ///< e.g. "cpu:1"
  std::optional<std::uint64_t> step{};
  std::vector<std::string> call_stack{}; ///< where the user made the op
};

/// The one exception type of Troupe: a code, one clear line, and where.
/// Thrown on bad input; carried as a value in messages once a step runs.
class error : public std::runtime_error {
public:
  /// @param message one line, without the context, which `what()` appends
  error(errc code, const std::string& message, error_context where = {});

  /// What kind of error it is.
  errc code() const noexcept { return code_; }
  /// Where in a program it arose, as far as that is known.
  const error_context& where() const noexcept { return where_; }
  /// The message without the context that `what()` appends.
  const std::string& message() const noexcept { return message_; }

  /// Returns this error with the empty fields of its context filled from
  /// `where`; fields that are set stay, so the innermost place wins.
  error with_context(const error_context& where) const;

private:
  errc code_;
  std::string message_;
  error_context where_;
};

} // namespace troupe
