// SPDX-License-Identifier: Apache-2.0
#include "winograd_loops.inc"

namespace troupe::cpu {

const winograd_loops winograd_loops_v4 = loops;

} // namespace troupe::cpu
