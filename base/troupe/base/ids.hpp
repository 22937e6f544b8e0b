// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe {

/// Number of a training step, from 0, counted by the executor that runs it.
using step_id = std::uint64_t;

/// Number of a handle (op or variable) in its SSA graph: dense, from 0.
using handle_id = std::uint32_t;

/// No handle.
inline constexpr handle_id no_handle = ~handle_id{0};

} // namespace troupe
