// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/parcel.hpp>

#include <new>

namespace troupe::comm {

void parcel_gate::open(parcel_receiver& to) {
  std::lock_guard guard{mutex_};
  state_ = state::passes;
  to_ = &to;
  for (auto& p : kept_)
    to_->arrived(p.from, p.label, p.content);
  kept_.clear();
  if (lost_)
    to_->malformed(*lost_, {errc::peer_failure,
                            "it sent a malformed parcel, or there was no "
                            "memory for one"});
}

void parcel_gate::close() noexcept {
  std::lock_guard guard{mutex_};
  state_ = state::drops;
  to_ = nullptr;
  kept_.clear();
}

void parcel_gate::deliver(std::size_t from, const parcel_label& label,
                          std::span<const std::byte> content) noexcept {
  std::lock_guard guard{mutex_};
  if (state_ == state::passes)
    return to_->arrived(from, label, content);
  if (state_ == state::keeps && !lost_)
    try {
      kept_.push_back({from, label, {content.begin(), content.end()}});
    } catch (const std::bad_alloc&) {
      lost_ = from;
    }
}

void parcel_gate::refuse(std::size_t from, const error& why) noexcept {
  std::lock_guard guard{mutex_};
  if (state_ == state::passes)
    to_->malformed(from, why);
  else if (state_ == state::keeps && !lost_)
    lost_ = from;
}

} // namespace troupe::comm
