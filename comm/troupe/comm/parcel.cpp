// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/parcel.hpp>

namespace troupe::comm {

void parcel_gate::open(parcel_receiver& to) {
  std::lock_guard guard{mutex_};
  state_ = state::passes;
  to_ = &to;
  for (auto& p : kept_)
    to_->arrived(p.from, p.label, p.content);
  kept_.clear();
}

void parcel_gate::close() noexcept {
  std::lock_guard guard{mutex_};
  state_ = state::drops;
  to_ = nullptr;
  kept_.clear();
}

void parcel_gate::deliver(std::size_t from, const parcel_label& label,
                          std::span<const std::byte> content) {
  std::lock_guard guard{mutex_};
  if (state_ == state::passes)
    to_->arrived(from, label, content);
  else if (state_ == state::keeps)
    kept_.push_back({from, label, {content.begin(), content.end()}});
}

void parcel_gate::refuse(std::size_t from, const error& why) noexcept {
  std::lock_guard guard{mutex_};
  if (state_ == state::passes)
    to_->malformed(from, why);
}

} // namespace troupe::comm
