// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/storage.hpp>

#include <utility>

namespace troupe::actors {

storage::storage(std::string name, arena& memory, std::uint32_t slots,
                 const storage_users& users)
  : users_(users), places_(slots), memory_(memory), name_(std::move(name)) {
  for (auto& p : places_)
    p.users.store(users.count, std::memory_order_relaxed);
}

storage::storage(std::string name, arena& memory, variable& in_scope)
  : in_scope_(&in_scope), memory_(memory), name_(std::move(name)) {}

bool storage::is_last(std::atomic<std::uint32_t>& users) const noexcept {
  if (users_.count == 1)
    return true;
  if (users_.one_thread) {
    const auto left = users.load(std::memory_order_relaxed) - 1;
    users.store(left, std::memory_order_relaxed);
    return left == 0;
  }
  // Who reads one, acquire, is the only user left and has seen the others'
  // decrements: no other can change it.
  return users.load(std::memory_order_acquire) == 1
         || users.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

bool storage::released(std::uint32_t slot) noexcept {
  if (in_scope_)
    return false;
  auto& p = places_[slot];
  if (!is_last(p.users))
    return false;
  p.value.clear();
  // Relaxed: the next users come in a step that is admitted after this one
  // has ended.
  p.users.store(users_.count, std::memory_order_relaxed);
  return true;
}

} // namespace troupe::actors
