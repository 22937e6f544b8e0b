// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/storage.hpp>

#include <utility>

namespace troupe::actors {

storage::storage(std::string name, arena& memory, std::uint32_t slots,
                 std::uint32_t users)
  : name_(std::move(name)), memory_(memory), users_(users), places_(slots) {
  for (auto& p : places_)
    p.users.store(users, std::memory_order_relaxed);
}

storage::storage(std::string name, arena& memory, variable& in_scope)
  : name_(std::move(name)), memory_(memory), in_scope_(&in_scope) {}

bool storage::released(std::uint32_t slot) noexcept {
  if (in_scope_)
    return false;
  auto& p = places_[slot];
  if (p.users.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return false;
  p.value.clear();
  // Relaxed: the next users come in a step that is admitted after this one
  // has ended.
  p.users.store(users_, std::memory_order_relaxed);
  return true;
}

} // namespace troupe::actors
