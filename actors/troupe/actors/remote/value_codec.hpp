// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/variable.hpp>

#include <string>
#include <string_view>

namespace troupe::actors {

/// Serializes a variable's value for other processes of the same machine type:
/// kind, levels or rows, dtype, shape, and elements in plain layout. No value
/// gives an empty string. The result is a string because CAF copies strings in
/// one piece. The value must be in host-readable memory. Throws
/// error(invalid_argument) for an array of tensors.
std::string encode_value(const variable& value);

/// Deserializes a value into `target`, with memory from `memory`. Throws
/// error(peer_failure) if `bytes` are malformed; `target` is then unchanged.
void decode_value(std::string_view bytes, arena& memory, variable& target);

} // namespace troupe::actors
