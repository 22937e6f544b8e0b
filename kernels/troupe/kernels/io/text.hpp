// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <filesystem>

namespace troupe {

/// Reads a text file as tokens, one per byte: int64 [bytes] with values from 0
/// to 255, in host memory from `memory`. Throws error(not_found),
/// error(io_failure), and error(bad_file) if the file is empty. Throws
/// error(out_of_memory) before it reads more than `host_memory_limit` allows.
tensor read_text(const std::filesystem::path& path, arena& memory);

} // namespace troupe
