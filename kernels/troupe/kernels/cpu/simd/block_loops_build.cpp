// SPDX-License-Identifier: Apache-2.0
#include "block_loops.inc"

namespace troupe::cpu {

const block_loops block_loops_build_8 = loops_for<8>;
const block_loops block_loops_build_16 = loops_for<16>;

} // namespace troupe::cpu
