// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace troupe::apps {

/// What a launcher tells its processes on other hosts: a map of texts, numbers
/// and lists, as its length and CBOR. Texts can have any bytes, unlike those of
/// JSON. Troupe's version is added.
std::string to_frame(nlohmann::json content);

/// Reads what `to_frame` made, and no byte more. Waits for it. Throws
/// error(io_failure) if the bytes end too early, and error(bad_file) if they
/// are anything else or come from another version of Troupe.
nlohmann::json read_frame(int fd);

/// Throws error(bad_file): what was read is not what a launcher tells.
[[noreturn]] void refuse_frame();

} // namespace troupe::apps
