// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/local/dense_sum.hpp>
#include <troupe/comm/local/merge_rows.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe::comm::local {

/// Merges variables of all devices of a group whose memory the CPU can read and
/// write, one after the other. `communicator` states what results are.
///
/// An all_reduce writes the sum to the memory of the first rank that has a
/// value, unless another variable shares this memory. All results of an
/// all_reduce or a broadcast share one memory.
///
/// If runs repeat with the same sizes, only the first one allocates; selected
/// rows always do.
///
/// Thread rule: one thread at a time; large sums are divided among the helpers.
class group_merge {
public:
  /// The devices and helpers must outlive the object. Throws
  /// error(invalid_argument) if there is no device.
  group_merge(std::vector<device*> ranks, const local_group_options& options);

  /// Number of ranks.
  std::size_t size() const noexcept { return ranks_.size(); }

  /// Merges one variable.
  /// @param values one per rank
  ///
  /// Throws what `communicator` lists for values that do not fit together. The
  /// variables then hold what they held, but their memory may be overwritten.
  void run(collective_kind kind, std::size_t root,
           std::span<const rank_value> values);

private:
  void merge_dense(collective_kind kind, std::size_t root,
                   std::span<const rank_value> values);
  void merge_sparse(collective_kind kind, std::size_t root,
                    std::span<const rank_value> values);
  void take_inputs(collective_kind kind, std::size_t root,
                   std::span<const rank_value> values);
  std::shared_ptr<const layout> take_layout();
  tensor sum(collective_kind kind, std::size_t root);
  tensor memory_of_sum(collective_kind kind, std::size_t root) const;

  std::vector<device*> ranks_;
  part_runner* helpers_;
  dense_sum sum_;
  // The values of the current run; kept to reuse their memory.
  std::vector<tensor> inputs_;
  std::vector<std::optional<rows_view>> rows_;
};

} // namespace troupe::comm::local
