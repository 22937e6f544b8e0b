// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/local/group_merge.hpp>
#include <troupe/kernels/stream.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace troupe::comm::local {

/// One rank's part in a call that all ranks have made.
struct rank_part {
  collective_call call = {};
  /// The stream whose work made the call, as `merger::caller` found it; null:
  /// unknown.
  stream* on = nullptr;
};

/// Merges the values of all ranks of a group in one process. Thread rule: one
/// thread at a time, but for `caller`.
class merger {
public:
  virtual ~merger() = default;
  /// Number of ranks.
  virtual std::size_t size() const noexcept = 0;
  /// The stream whose work makes a call on this thread.
  virtual stream* caller() const noexcept { return nullptr; }
  /// Merges what the calls name. Returns `done`, or `pending` and calls `whole`
  /// later, once; calls that are pending end in the order in which they were
  /// started. Throws as `communicator` says.
  virtual launch_status merge(std::span<const rank_part> ranks,
                              completion& whole) = 0;
};

/// Merges on the CPU: see `group_merge`.
class cpu_merger final : public merger {
public:
  cpu_merger(std::vector<device*> ranks, const local_group_options& options)
    : merge_(std::move(ranks), options), values_(merge_.size()) {}

  std::size_t size() const noexcept override { return merge_.size(); }
  launch_status merge(std::span<const rank_part> ranks,
                      completion& whole) override;

private:
  group_merge merge_;
  std::vector<rank_value> values_; // of one variable, by rank
};

} // namespace troupe::comm::local
