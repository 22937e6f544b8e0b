// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace troupe {

/// Addresses that arenas leave to libraries where the process has few: some
/// crash or wait for ever without.
inline constexpr std::size_t addresses_for_libraries = std::size_t{64} << 20;

/// The most bytes of addresses that the process may use (`ulimit -v`); SIZE_MAX
/// without a limit.
std::size_t address_limit() noexcept;

/// How many bytes of addresses of that limit the process has not taken;
/// SIZE_MAX without a limit.
std::size_t address_rest() noexcept;

/// Whether the process could map so many bytes more. True without a limit.
bool addresses_left(std::size_t bytes) noexcept;

} // namespace troupe
