// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <support/op_case.hpp>

#include <string>

namespace troupe::test {

/// Compares the gradient op of `forward` with central differences, in float64
/// (graph/own_ops/gradient_check.hpp). Also compares each gradient computed
/// alone with all computed together. Returns where they differ, or empty text.
std::string gradient_difference(const kernel_table& table,
                                const op_case& forward);

} // namespace troupe::test
