// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <span>
#include <string>

namespace troupe {

/// The part of a test program that computes these variables: without a loss,
/// and without the feeds that only the loss needs, such as labels. Throws
/// error(not_found) for a variable that no op computes, and
/// error(invalid_argument) if none is named.
graph::program make_output_program(const graph::program& test,
                                   std::span<const std::string> outputs);

} // namespace troupe
