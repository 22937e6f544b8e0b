// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::graph {

/// Parses a serialized ProgramDesc of Paddle (`.pdmodel`, `__model__`); `name`
/// is what errors call it. Unknown fields, unknown attribute types and unknown
/// ops are kept and written back by `serialize_program`. Of attributes that
/// occur twice in an op the last one counts, as in Paddle.
///
/// Throws error(bad_file) with block, op and variable for anything else than a
/// program: truncated data, missing names, variables or slots that occur
/// twice, blocks that are their own ancestors, references to blocks that are
/// not there, blocks that run themselves or exceed the limits of
/// `check_sub_blocks`, shapes of more than 8 axes or 2^63 bytes.
/// Source: Paddle, framework.proto.
program parse_program(std::string_view bytes, const std::string& name);

/// The inverse. The bytes differ from those parsed at most in the order of
/// variables and attributes, which is by name.
std::string serialize_program(const program& p);

/// Reads a program file. Throws like parse_program, error(not_found) and
/// error(io_failure).
program read_program(const std::filesystem::path& path);

/// Writes a program file, whole or not at all. Throws error(io_failure).
void write_program(const program& p, const std::filesystem::path& path);

} // namespace troupe::graph
