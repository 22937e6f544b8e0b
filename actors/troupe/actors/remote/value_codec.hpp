// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/variable.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace troupe::actors {

/// The layout of a name for tensors of a shape; null if there is none.
using layout_finder = std::function<std::shared_ptr<const layout>(
  std::string_view name, const shape& dims)>;

/// Bytes that another process can read.
struct encoded_value {
  buffer memory;         ///< empty if `bytes` is 0
  std::size_t bytes = 0; ///< from the beginning of `memory`

  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(memory.data()), bytes};
  }
};

/// Serializes a variable's value for other processes of the same machine type:
/// kind, levels or rows, dtype, shape, layout and elements. No value gives no
/// bytes. The value must be in host-readable memory.
///
/// @param find layouts that the receiver knows. The value keeps such a layout,
///   so that its readers compute the same bits as those here; others become
///   plain. If empty, all do.
///
/// Throws error(invalid_argument) for an array of tensors,
/// error(out_of_memory).
encoded_value encode_value(const variable& value, arena& memory,
                           const layout_finder& find = {});

/// Deserializes a value into `target`, with memory from `memory`. Throws
/// error(peer_failure) if `bytes` are malformed; `target` is then unchanged.
void decode_value(std::string_view bytes, arena& memory, variable& target,
                  const layout_finder& find = {});

} // namespace troupe::actors
