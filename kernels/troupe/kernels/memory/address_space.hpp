// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace troupe {

// The process's limits of memory: addresses (`ulimit -v`) and data, which is
// private memory that can be written (`ulimit -d`). Reserved addresses become
// data when they are made writable.
//
// Thread rule: any thread.

/// If addresses are limited, arenas leave this many to libraries. Without them
/// some libraries crash or wait for ever.
inline constexpr std::size_t addresses_for_libraries = std::size_t{64} << 20;

/// One of the two limits.
struct memory_bound {
  const char* name;  ///< "addresses (ulimit -v)" or "data (ulimit -d)"
  std::size_t limit; ///< in bytes
  std::size_t rest;  ///< how many bytes of it the process has not taken
};

/// The smaller of the two limits in bytes; SIZE_MAX without a limit. Needs
/// nothing that the C++ library initializes.
std::size_t address_limit() noexcept;

/// The limit of which the least is left. Without a limit its bytes are
/// SIZE_MAX.
memory_bound tightest_bound() noexcept;

/// Whether the process could map `bytes` more bytes and write to them. True
/// without a limit.
bool addresses_left(std::size_t bytes) noexcept;

/// Whether the process could make `bytes` bytes of its reserved addresses
/// writable. True without a limit of data.
bool data_left(std::size_t bytes) noexcept;

/// What an error says about a std::bad_alloc: "out of memory", and the names of
/// the limits if there is one.
const char* out_of_memory_text() noexcept;

} // namespace troupe
