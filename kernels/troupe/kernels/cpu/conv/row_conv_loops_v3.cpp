// SPDX-License-Identifier: Apache-2.0
#include "row_conv_loops.inc"

namespace troupe::cpu {

const row_conv_loops row_conv_loops_v3 = loops;

} // namespace troupe::cpu
