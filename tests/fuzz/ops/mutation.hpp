// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/ops/op_case_file.hpp"

#include <random>

namespace troupe::fuzz {

/// Changes a few things of a case that a file could say otherwise: attributes,
/// who names which variable in which slot, shapes, dtypes, sequences, rows and
/// elements of inputs.
void mutate(op_case_file& c, std::mt19937_64& random);

} // namespace troupe::fuzz
