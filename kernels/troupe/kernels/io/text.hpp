// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <filesystem>

namespace troupe {

/// The bytes of a text file as tokens, int64 [bytes] from 0 to 255, in host
/// memory of `memory`. Throws error(not_found), error(io_failure),
/// error(bad_file) if the file is empty, and error(out_of_memory) before more
/// is read than `host_memory_limit` allows.
tensor read_text(const std::filesystem::path& path, arena& memory);

} // namespace troupe
