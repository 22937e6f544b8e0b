// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/op_task.hpp>

#include <algorithm>

namespace troupe::actors {

void op_task::add_use(storage& s) {
  if (std::find(uses_.begin(), uses_.end(), &s) == uses_.end())
    uses_.push_back(&s);
}

} // namespace troupe::actors
