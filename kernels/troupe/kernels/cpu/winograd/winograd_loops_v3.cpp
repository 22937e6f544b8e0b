// SPDX-License-Identifier: Apache-2.0
#include "winograd_loops.inc"

namespace troupe::cpu {

const winograd_loops winograd_loops_v3 = loops;

} // namespace troupe::cpu
