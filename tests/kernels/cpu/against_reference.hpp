// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <support/op_case.hpp>

#include <vector>

namespace troupe::test {

/// How far a float32 kernel may be from the reference, relative to the largest
/// magnitude of the tensor: some hundred roundings of 6e-8.
inline constexpr double reference_tolerance = 2e-5;

/// Checks cpu_kernels() against reference_kernels() on each case and its
/// gradient, all output slots together and each one alone. Each op runs with a
/// new kernel instance and with one that has run the other cases of the same
/// attributes; the two must agree bit by bit. Ops that cpu_kernels() lacks are
/// left out.
void check_against_reference(const std::vector<op_case>& cases);

} // namespace troupe::test
