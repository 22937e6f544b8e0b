// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What kind of failure an error reports.
enum class errc : std::uint8_t {
  invalid_argument, ///< an option or argument outside its range
  not_found,        ///< an unknown net, variable, op, device or file
  shape_mismatch,   ///< a tensor of another shape than the program declares
  dtype_mismatch,   ///< a tensor of another dtype than the program declares
  bad_file,         ///< truncated, oversized or malformed file
  unsupported_op,   ///< ops without a kernel on the chosen device
  graph_invalid,    ///< a cycle, an unordered pair of accesses, a bad program
  out_of_range,     ///< a label or index outside its table
  not_finite,       ///< a NaN or infinity, if checking was requested
  io_failure,       ///< the operating system refused a read or a write
  out_of_memory,    ///< a device's memory is used up
  kernel_failure,   ///< a kernel or library call failed
  peer_failure,     ///< another process went away or answered wrongly
  order_mismatch,   ///< two peers would run collectives in different orders
  cancelled,        ///< stopped on request
  busy,             ///< as much waits as may: ask again later
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

/// Troupe's only exception type: a code, a one-line message and a location.
/// Thrown for bad input. Inside a running step it is passed as a value in
/// messages.
class error : public std::runtime_error {
public:
  /// @param message one line without the context; `what()` appends that
  error(errc code, const std::string& message, error_context where = {});

  /// What kind of error it is.
  errc code() const noexcept { return code_; }
  /// Where in a program the error arose, as far as known.
  const error_context& where() const noexcept { return where_; }
  /// The message without the context that `what()` appends.
  const std::string& message() const noexcept { return message_; }

  /// Returns a copy of this error with the empty fields of its context filled
  /// from `where`. Fields that are already set stay, so the innermost context
  /// wins.
  error with_context(const error_context& where) const;

private:
  errc code_;
  std::string message_;
  error_context where_;
};

} // namespace troupe
