// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/all_reduce_actor.hpp>

#include <troupe/actors/op_actor.hpp>

namespace troupe::actors {

void all_reduce_actor::admit(op_actor& op) {
  const auto index = static_cast<std::size_t>(op.op().collective_index);
  if (index != next_)
    op.fail_step(error(errc::order_mismatch,
                       "collective " + std::string{op.name()}
                         + " runs at position " + std::to_string(next_)
                         + ", where the order of the graph has "
                         + order_[next_]));
  next_ = (index + 1) % order_.size();
}

} // namespace troupe::actors
