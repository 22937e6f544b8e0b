// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

namespace troupe {

/// What processes show each other to prove that they belong together.
using secret = std::array<std::byte, 32>;

/// A new one, from the kernel. Throws error(io_failure) if it gives none. Any
/// thread.
secret random_secret();

/// Compares in constant time: how long a refusal takes tells nothing about the
/// secret.
bool equal_secrets(const secret& one, const secret& other) noexcept;

} // namespace troupe
