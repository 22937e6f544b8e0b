// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe::test {

/// Whether oneDNN uses AVX-512 here: then convolutions read filters in blocks
/// of 16 channels and make their gradients so.
bool uses_avx512();

/// Whether some convolutions are made by loops of this project's own, which
/// need AVX2.
bool has_own_loops();

} // namespace troupe::test
