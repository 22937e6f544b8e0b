// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/storage.hpp>

namespace troupe::actors {

void storage_places::expect(std::size_t temporary, std::uint32_t users) {
  if (!users_)
    users_ = std::make_unique<user_count[]>(temporaries_ * slots_);
  for (std::uint32_t slot = 0; slot < slots_; ++slot) {
    auto& count = users_[slot * temporaries_ + temporary];
    count.expected = users;
    count.left.store(users, std::memory_order_relaxed);
  }
}

bool storage_places::released(std::size_t temporary,
                              std::uint32_t slot) noexcept {
  auto& count = users_[slot * temporaries_ + temporary];
  if (count.left.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return false;
  empty(at(temporary, slot));
  // Relaxed: the next users belong to a step that is admitted after this one
  // has ended.
  count.left.store(count.expected, std::memory_order_relaxed);
  return true;
}

storage::storage(std::string_view name, arena& memory, storage_places& places,
                 std::uint32_t temporary)
  : places_(&places), memory_(memory), name_(name), temporary_(temporary) {}

storage::storage(std::string_view name, arena& memory, variable& in_scope)
  : in_scope_(&in_scope), memory_(memory), name_(name) {}

} // namespace troupe::actors
