// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace troupe::cuda {

enum class nccl_kind : std::uint8_t { all_reduce, reduce, broadcast };

/// One rank's part in the merge of one value, in memory of its GPU. `from` and
/// `to` may be the same. A reduce writes only the root's `to`, a broadcast
/// reads only the root's `from`.
struct nccl_part {
  std::size_t rank = 0;
  gpu_queue* on = nullptr;
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t count = 0; ///< of numbers, the same on all ranks
};

/// GPUs of this process that merge values: rank i is the i-th of them. Sums are
/// made in any order. All GPUs get the merges of several such objects in one
/// order.
///
/// **Thread rule.** `queue`: one thread at a time. All others: any thread, also
/// while `queue` runs.
class nccl_ranks {
public:
  virtual ~nccl_ranks() = default;

  /// Queues the merge of several values as one. `parts` has those of all ranks
  /// for the first value, by rank, then for the next one, and so on. Throws
  /// error(peer_failure) with what NCCL says; the ranks are then of no use.
  virtual void queue(nccl_kind kind, std::size_t root,
                     std::span<const nccl_part> parts) = 0;
  /// What went wrong with work that is queued; empty: nothing so far. Such work
  /// does not end before `abort`.
  virtual std::string failure() const = 0;
  /// Ends what is queued, without results. The ranks are of no use any more.
  virtual void abort() noexcept = 0;
};

/// NVIDIA's library for collectives between GPUs. The module `troupe_cuda`
/// implements it; the tests have one for pretend GPUs. Thread rule: any thread.
class nccl {
public:
  virtual ~nccl() = default;
  virtual std::string version() const = 0;
  /// Connects GPUs, and takes the memory that their merges need: merges take
  /// none, because that can wait for other merges. Throws error(peer_failure)
  /// with what NCCL says, for example if a GPU is named twice.
  virtual std::unique_ptr<nccl_ranks> make_ranks(std::span<const int> gpus) = 0;
};

} // namespace troupe::cuda
