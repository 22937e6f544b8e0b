// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe::test {

/// True if oneDNN uses AVX-512 on this machine. Convolutions then read filters
/// in blocks of 16 channels, and make gradients of filters in this layout.
bool uses_avx512();

/// True if the hand-written loops compute some convolutions. They need AVX2.
bool has_own_loops();

} // namespace troupe::test
