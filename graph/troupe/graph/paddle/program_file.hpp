// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::graph {

/// Parses a serialized Paddle ProgramDesc (`.pdmodel`, `__model__`). `name`
/// identifies it in errors. Unknown fields, attribute types and ops are kept,
/// and `serialize_program` writes them back. If an attribute occurs twice in an
/// op, the last one is used, as in Paddle.
///
/// Throws error(bad_file), with block, op and variable, for anything that is
/// not a valid program: truncated data, missing names, duplicate variables or
/// slots, blocks that are their own ancestors, references to missing blocks,
/// blocks that run themselves or exceed the limits of `check_sub_blocks`, and
/// shapes of more than 8 axes or 2^63 bytes.
/// Source: Paddle, framework.proto.
program parse_program(std::string_view bytes, const std::string& name);

/// The inverse of `parse_program`. Variables and attributes are written sorted
/// by name; otherwise the bytes equal those that were parsed.
std::string serialize_program(const program& p);

/// Reads a program file. Throws like `parse_program`, and error(not_found |
/// io_failure).
program read_program(const std::filesystem::path& path);

/// Writes a program file atomically. Throws error(io_failure).
void write_program(const program& p, const std::filesystem::path& path);

} // namespace troupe::graph
