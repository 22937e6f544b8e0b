// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/variable.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

/// Who says that the value of a step is not needed any more.
struct storage_users {
  std::uint32_t count = 0; ///< releases that empty the place
  /// All come from threads that are ordered anyway (one stream's drains).
  bool one_thread = false;
};

/// Where the values of one variable live on one device. Persistable variables
/// have one place, in the scope; others one per slot, filled by the step's
/// writer and emptied when its last user is done: that release is what lets
/// the arena hand the memory to the next op while it is still in cache.
///
/// Thread rule: the graph's edges order all accesses to `at(slot)`; `released`
/// from any thread.
class storage {
public:
  /// A temporary with a place per slot.
  storage(std::string name, arena& memory, std::uint32_t slots,
          const storage_users& users);
  /// A persistable variable of the scope.
  storage(std::string name, arena& memory, variable& in_scope);

  const std::string& name() const noexcept { return name_; }
  /// Memory of the device that the storage is on.
  arena& memory() const noexcept { return memory_; }
  bool persistable() const noexcept { return in_scope_ != nullptr; }

  variable& at(std::uint32_t slot) noexcept {
    return in_scope_ ? *in_scope_ : places_[slot].value;
  }

  /// One user of the step is done. The last one empties the place; returns
  /// true then.
  bool released(std::uint32_t slot) noexcept;

private:
  struct place {
    variable value;
    /// Users that are not done. acq_rel: the last one frees memory that the
    /// others have read.
    std::atomic<std::uint32_t> users{0};
  };

  bool is_last(std::atomic<std::uint32_t>& users) const noexcept;

  variable* in_scope_ = nullptr;
  storage_users users_;
  std::vector<place> places_;
  arena& memory_;
  std::string name_;
};

} // namespace troupe::actors
