// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <support/op_case.hpp>

#include <string>

namespace troupe::test {

/// Compares the gradient op of `forward` with central differences of a random
/// projection of the results, in float64. Also compares each gradient computed
/// alone with all computed together. Returns where they differ, or empty text.
/// A difference of 1e-6 of the largest gradient (of 1e-2, if all are smaller)
/// is allowed.
std::string gradient_difference(const kernel_table& table,
                                const op_case& forward);

} // namespace troupe::test
