// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/storage.hpp>

namespace troupe::actors {

storage::storage(std::string name, arena& memory, storage_places& places,
                 std::size_t temporary, std::uint32_t users)
  : places_(&places), temporary_(temporary), memory_(memory),
    name_(std::move(name)) {
  for (std::uint32_t slot = 0; slot < places.slots(); ++slot)
    places.at(temporary, slot).expect(users);
}

storage::storage(std::string name, arena& memory, variable& in_scope)
  : in_scope_(&in_scope), memory_(memory), name_(std::move(name)) {}

} // namespace troupe::actors
