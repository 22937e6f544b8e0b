// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/delivery_shuffle.hpp>
#include <troupe/base/random.hpp>

#include <cstdint>
#include <optional>

namespace troupe::actors {

/// Perturbs a run for tests: sends a handle's messages in random order, delays
/// ops, and withholds one message.
///
/// Thread rule: any thread.
class disturbance {
public:
  explicit disturbance(const delivery_shuffle& wanted) : wanted_(wanted) {}

  bool withholds(const message_id& m) const noexcept {
    return wanted_.withheld == m;
  }
  const std::optional<message_id>& withheld() const noexcept {
    return wanted_.withheld;
  }

  bool shuffles() const noexcept { return wanted_.seed.has_value(); }
  /// The random numbers for one handle's messages in one step.
  splitmix64 draws_for(handle_id from, step_id step) const noexcept {
    return splitmix64{(*wanted_.seed + 1) ^ (std::uint64_t{from} << 32) ^ step};
  }
  /// Sometimes delays the calling thread for a random time.
  void hold_up(handle_id op, step_id step) const;

private:
  delivery_shuffle wanted_;
};

} // namespace troupe::actors
