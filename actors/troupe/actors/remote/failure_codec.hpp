// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <string>
#include <string_view>

namespace troupe::actors {

/// The bytes of an error as they travel between processes: code, message, and
/// where it arose. Never empty.
std::string encode_failure(const error& failure);

/// The error that the bytes hold; if they are no such encoding,
/// error(peer_failure) that says so.
error decode_failure(std::string_view bytes);

} // namespace troupe::actors
