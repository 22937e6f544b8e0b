// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/variable.hpp>

#include <string>
#include <string_view>

namespace troupe::actors {

/// The bytes of a variable's value as they travel between processes of one
/// machine type: kind, dtype, shape, rows, elements in plain layout. Empty: no
/// value. A string, because CAF copies strings in one piece. The value is in
/// memory that the host can read.
std::string encode_value(const variable& value);

/// Puts the value back into `target` with memory of `memory`. Throws
/// error(peer_failure) if `bytes` is no such encoding; `target` is unchanged
/// then.
void decode_value(std::string_view bytes, arena& memory, variable& target);

} // namespace troupe::actors
