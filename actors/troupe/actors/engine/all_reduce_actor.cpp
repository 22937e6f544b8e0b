// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/all_reduce_actor.hpp>

#include <algorithm>

namespace troupe::actors {

void all_reduce_actor::admit(ready_op& op) {
  if (!op.op())
    return;
  const auto index = op.op()->collective_index;
  if (const auto& expected = order_[next_]; index != expected.index) {
    const auto found = std::ranges::find(order_, index, &turn::index);
    op.fail_step(error(
      errc::order_mismatch,
      "collective " + (found == order_.end() ? "of another graph" : found->name)
        + " runs when it is the turn of " + expected.name));
  }
  next_ = (next_ + 1) % order_.size();
}

} // namespace troupe::actors
