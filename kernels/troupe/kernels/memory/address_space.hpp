// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace troupe {

/// If addresses are limited, arenas leave this many to libraries. Without them
/// some libraries crash or wait for ever.
inline constexpr std::size_t addresses_for_libraries = std::size_t{64} << 20;

/// The process's limit of addresses in bytes (`ulimit -v`); SIZE_MAX without a
/// limit.
std::size_t address_limit() noexcept;

/// How many bytes of addresses of that limit the process has not taken;
/// SIZE_MAX without a limit.
std::size_t address_rest() noexcept;

/// Whether the process could map `bytes` more bytes. True without a limit.
bool addresses_left(std::size_t bytes) noexcept;

} // namespace troupe
