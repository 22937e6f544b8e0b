// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/variable.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace troupe::actors {

/// The values of all temporaries of a graph, a place per slot, those of a slot
/// next to each other in the order of the temporaries. The last user of a value
/// empties its place: that is what lets the arena hand the memory to the next
/// op while it is still in cache.
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
  /// Nobody uses the value any more.
  static void empty(variable& place) noexcept {
    if (place.has_value())
      place.clear();
  }

  /// How many users a step has, where users are counted here. Before the first
  /// step.
  void expect(std::size_t temporary, std::uint32_t users);
  /// One user of a step is done. The last one empties the place; returns true
  /// then. Any thread.
  bool released(std::size_t temporary, std::uint32_t slot) noexcept;

private:
  struct user_count {
    /// Users that are not done. acq_rel: the last one frees memory that the
    /// others have read.
    std::atomic<std::uint32_t> left{0};
    std::uint32_t expected = 0;
  };

  std::size_t temporaries_;
  std::uint32_t slots_;
  std::unique_ptr<variable[]> places_;
  std::unique_ptr<user_count[]> users_; // like places_; null: not counted here
};

/// Where the values of one variable live on one device, or on all that share
/// it. Persistable variables have one place, in the scope; others one per slot,
/// filled by the step's writer and emptied when its last user is done.
///
/// A reference: copies mean the same place. The name outlives them. Thread
/// rule: the graph's edges order all accesses to `at(slot)`.
class storage {
public:
  /// Temporary number `temporary` of `places`.
  storage(std::string_view name, arena& memory, storage_places& places,
          std::uint32_t temporary);
  /// A persistable variable of the scope.
  storage(std::string_view name, arena& memory, variable& in_scope);

  std::string_view name() const noexcept { return name_; }
  /// Memory of the device that the storage is on.
  arena& memory() const noexcept { return memory_; }
  bool persistable() const noexcept { return in_scope_ != nullptr; }
  /// Its number in `storage_places`. Not of a persistable one.
  std::uint32_t temporary() const noexcept { return temporary_; }

  variable& at(std::uint32_t slot) const noexcept {
    return in_scope_ ? *in_scope_ : places_->at(temporary_, slot);
  }
  /// One user of the step is done; see storage_places.
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
