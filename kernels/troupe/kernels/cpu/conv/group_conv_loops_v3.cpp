// SPDX-License-Identifier: Apache-2.0
#include "group_conv_loops.inc"

namespace troupe::cpu {

const group_conv_loops group_conv_loops_v3 = loops;

} // namespace troupe::cpu
