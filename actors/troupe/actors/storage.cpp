// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/storage.hpp>

namespace troupe::actors {

storage::storage(std::string_view name, arena& memory, storage_places& places,
                 std::uint32_t temporary, std::uint32_t users)
  : places_(&places), memory_(memory), name_(name), temporary_(temporary) {
  for (std::uint32_t slot = 0; slot < places.slots(); ++slot)
    places.at(temporary, slot).expect(users);
}

storage::storage(std::string_view name, arena& memory, variable& in_scope)
  : in_scope_(&in_scope), memory_(memory), name_(name) {}

} // namespace troupe::actors
