// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe {

/// Number of a step. Each executor counts its steps from 0.
using step_id = std::uint64_t;

/// Number of a handle (op or variable) in its SSA graph. Numbers are dense and
/// start at 0.
using handle_id = std::uint32_t;

/// No handle.
inline constexpr handle_id no_handle = ~handle_id{0};

/// Number of an actor of the application among those of its recorder.
using actor_number = std::uint32_t;

/// No actor, or one that the recorder does not know.
inline constexpr actor_number no_actor = ~actor_number{0};

} // namespace troupe
