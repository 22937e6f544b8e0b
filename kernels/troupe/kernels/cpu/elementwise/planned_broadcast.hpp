// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/elementwise/broadcast.hpp>
#include <troupe/kernels/kernel.hpp>

namespace troupe::cpu {

/// A kernel of X and Y that keeps its broadcast plan until the shapes change.
class planned_broadcast : public kernel {
public:
  explicit planned_broadcast(const attribute_map& attributes)
    : axis_(attributes.get_int("axis", -1)) {}

protected:
  std::int64_t axis() const noexcept { return axis_; }

  const broadcast_plan& plan(const shape& x, const shape& y) {
    if (!planned_ || !(x == x_) || !(y == y_)) {
      plan_ = plan_broadcast(x, y, axis_);
      x_ = x;
      y_ = y;
      planned_ = true;
    }
    return plan_;
  }

private:
  std::int64_t axis_;
  broadcast_plan plan_;
  shape x_;
  shape y_;
  bool planned_ = false;
};

} // namespace troupe::cpu
