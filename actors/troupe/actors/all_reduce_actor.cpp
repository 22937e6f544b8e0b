// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/all_reduce_actor.hpp>

namespace troupe::actors {

void all_reduce_actor::admit(ready_op& op) {
  if (op.op().collective_index != order_[next_].index)
    op.fail_step(error(errc::order_mismatch, "collective " + op.op_name()
                                               + " runs when it is the turn of "
                                               + order_[next_].name));
  next_ = (next_ + 1) % order_.size();
}

} // namespace troupe::actors
