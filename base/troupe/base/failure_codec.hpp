// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <string>
#include <string_view>

namespace troupe {

/// Serializes an error for other processes: code, message and context. The
/// result is never empty.
std::string encode_failure(const error& failure);

/// Deserializes an error. If the bytes are malformed, returns
/// error(peer_failure) that says so.
error decode_failure(std::string_view bytes);

} // namespace troupe
