// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/variable.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace troupe::actors {

/// Where a temporary's value of one step is. The last user empties it: that is
/// what lets the arena hand the memory to the next op while it is still in
/// cache.
class storage_place {
public:
  variable value;

  /// How many users a step has.
  void expect(std::uint32_t users) noexcept {
    expected_ = users;
    users_.store(users, std::memory_order_relaxed);
  }

  /// One user of the step is done. The last one empties the place; returns
  /// true then. Any thread.
  bool released() noexcept {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return false;
    empty();
    // Relaxed: the next users come in a step that is admitted after this one
    // has ended.
    users_.store(expected_, std::memory_order_relaxed);
    return true;
  }

  /// Nobody uses the value any more.
  void empty() noexcept {
    if (value.has_value())
      value.clear();
  }

private:
  /// Users that are not done. acq_rel: the last one frees memory that the
  /// others have read.
  std::atomic<std::uint32_t> users_{0};
  std::uint32_t expected_ = 0;
};

/// The places of all temporaries of a graph, those of a slot next to each other
/// in the order of the temporaries.
class storage_places {
public:
  storage_places(std::size_t temporaries, std::uint32_t slots)
    : temporaries_(temporaries), slots_(slots),
      places_(std::make_unique<storage_place[]>(temporaries * slots)) {}

  std::uint32_t slots() const noexcept { return slots_; }
  storage_place& at(std::size_t temporary, std::uint32_t slot) noexcept {
    return of_slot(slot)[temporary];
  }
  /// All places of a slot, by temporary.
  storage_place* of_slot(std::uint32_t slot) noexcept {
    return &places_[slot * temporaries_];
  }

private:
  std::size_t temporaries_;
  std::uint32_t slots_;
  std::unique_ptr<storage_place[]> places_;
};

/// Where the values of one variable live on one device. Persistable variables
/// have one place, in the scope; others one per slot, filled by the step's
/// writer and emptied when its last user is done.
///
/// A reference: copies mean the same place. The name outlives them. Thread
/// rule: the graph's edges order all accesses to `at(slot)`.
class storage {
public:
  /// Temporary number `temporary` of `places`, which `users` ops release.
  storage(std::string_view name, arena& memory, storage_places& places,
          std::uint32_t temporary, std::uint32_t users);
  /// A persistable variable of the scope.
  storage(std::string_view name, arena& memory, variable& in_scope);

  std::string_view name() const noexcept { return name_; }
  /// Memory of the device that the storage is on.
  arena& memory() const noexcept { return memory_; }
  bool persistable() const noexcept { return in_scope_ != nullptr; }
  /// Its number in `storage_places`. Not of a persistable one.
  std::uint32_t temporary() const noexcept { return temporary_; }

  variable& at(std::uint32_t slot) const noexcept {
    return in_scope_ ? *in_scope_ : places_->at(temporary_, slot).value;
  }
  /// One user of the step is done; see storage_place.
  bool released(std::uint32_t slot) noexcept {
    return !in_scope_ && places_->at(temporary_, slot).released();
  }

private:
  variable* in_scope_ = nullptr;
  storage_places* places_ = nullptr;
  arena& memory_;
  std::string_view name_;
  std::uint32_t temporary_ = 0;
};

} // namespace troupe::actors
