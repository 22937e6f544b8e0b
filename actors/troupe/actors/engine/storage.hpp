// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/variable.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace troupe::actors {

/// The values of all temporaries of a graph, with one place per slot. The
/// places of a slot are contiguous, in the order of the temporaries. The last
/// user of a value empties its place, so the arena can give the memory to the
/// next op while it is still in the cache.
class storage_places {
public:
  storage_places(std::size_t temporaries, std::uint32_t slots)
    : temporaries_(temporaries),
      places_(std::make_unique<variable[]>(temporaries * slots)) {}

  std::size_t temporaries() const noexcept { return temporaries_; }
  variable& at(std::size_t temporary, std::uint32_t slot) noexcept {
    return of_slot(slot)[temporary];
  }
  /// All places of a slot, by temporary.
  variable* of_slot(std::uint32_t slot) noexcept {
    return &places_[slot * temporaries_];
  }
  /// Releases a value that is no longer used.
  static void empty(variable& place) noexcept {
    if (place.has_value())
      place.clear();
  }

private:
  std::size_t temporaries_;
  std::unique_ptr<variable[]> places_;
};

/// Where the values of one variable are stored on one device, or on all devices
/// that share it. A persistable variable has one place, in the scope. Any other
/// variable has one place per slot. The step's writer fills it, and it is
/// emptied when its last user is done.
///
/// A reference type: copies refer to the same places. The name must outlive
/// them. Thread rule: the graph's edges order all accesses to `at(slot)`.
class storage {
public:
  /// Temporary number `temporary` of `places`.
  storage(std::string_view name, arena& memory, storage_places& places,
          std::uint32_t temporary)
    : name_(name), memory_(memory), first_(&places.at(temporary, 0)),
      stride_(places.temporaries()) {}
  /// A persistable variable of the scope.
  storage(std::string_view name, arena& memory, variable& in_scope)
    : name_(name), memory_(memory), first_(&in_scope), stride_(0) {}

  std::string_view name() const noexcept { return name_; }
  /// Memory of the storage's device.
  arena& memory() const noexcept { return memory_; }

  variable& at(std::uint32_t slot) const noexcept {
    return first_[slot * stride_];
  }

private:
  std::string_view name_;
  arena& memory_;
  variable* first_;    // the place of slot 0
  std::size_t stride_; // from one slot's place to the next
};

} // namespace troupe::actors
