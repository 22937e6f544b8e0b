// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe::test {

/// Says that the test case that runs cannot run here and what it needs, as in
/// `return skip_case("needs two cores");`. CTest counts it as skipped; failed
/// checks of the case still make it fail.
void skip_case(const char* needs);

} // namespace troupe::test
