// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe::test {

/// Marks the current test case as skipped and says what it needs, as in
/// `return skip_case("needs two cores");`. CTest counts it as skipped. Checks
/// that failed before still make it fail.
void skip_case(const char* needs);

} // namespace troupe::test
