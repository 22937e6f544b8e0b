// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/variable.hpp>

#include <atomic>
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
    : temporaries_(temporaries), slots_(slots),
      places_(std::make_unique<variable[]>(temporaries * slots)) {}

  std::size_t temporaries() const noexcept { return temporaries_; }
  std::uint32_t slots() const noexcept { return slots_; }
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

  /// Sets the number of users per step of a temporary whose users are counted.
  /// Called before the first step.
  void expect(std::size_t temporary, std::uint32_t users);
  /// Called when one user in a step is done. The last call empties the place
  /// and returns true. Any thread.
  bool released(std::size_t temporary, std::uint32_t slot) noexcept;

private:
  struct user_count {
    /// Number of users that are not done. acq_rel, because the last user frees
    /// memory that the others have read.
    std::atomic<std::uint32_t> left{0};
    std::uint32_t expected = 0;
  };

  std::size_t temporaries_;
  std::uint32_t slots_;
  std::unique_ptr<variable[]> places_;
  // indexed like places_; null: not counted here
  std::unique_ptr<user_count[]> users_;
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
          std::uint32_t temporary);
  /// A persistable variable of the scope.
  storage(std::string_view name, arena& memory, variable& in_scope);

  std::string_view name() const noexcept { return name_; }
  /// Memory of the storage's device.
  arena& memory() const noexcept { return memory_; }
  bool persistable() const noexcept { return in_scope_ != nullptr; }
  /// Number in `storage_places`; only for temporaries.
  std::uint32_t temporary() const noexcept { return temporary_; }

  variable& at(std::uint32_t slot) const noexcept {
    return in_scope_ ? *in_scope_ : places_->at(temporary_, slot);
  }
  /// Called when one user of the step is done; see `storage_places`.
  bool released(std::uint32_t slot) noexcept {
    return !in_scope_ && places_->released(temporary_, slot);
  }

private:
  variable* in_scope_ = nullptr;
  storage_places* places_ = nullptr;
  arena& memory_;
  std::string_view name_;
  std::uint32_t temporary_ = 0;
};

} // namespace troupe::actors
