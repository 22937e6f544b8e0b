// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <support/op_case.hpp>

#include <string>

namespace troupe::test {

/// Says where `actual` differs from `expected`; empty if they agree. Shapes,
/// dtypes and integers must be equal. A floating-point element may differ by
/// `tolerance` times the largest magnitude of the expected value. Selected rows
/// are compared as dense tensors.
std::string difference(const op_value& actual, const op_value& expected,
                       double tolerance);
/// The same for all slots of `expected`. The text names the slot.
std::string difference(const op_values& actual, const op_values& expected,
                       double tolerance);

/// The largest finite magnitude of the elements; 0 if there are none.
double magnitude(const op_value& value);

} // namespace troupe::test
