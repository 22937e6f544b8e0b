// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe::test {

/// Whether oneDNN uses AVX-512 here: then convolutions read filters in blocks
/// of 16 channels and make their gradients so.
bool uses_avx512();

} // namespace troupe::test
