// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace troupe::test {

/// What a pretend driver does wrong.
enum class mishap : std::uint8_t {
  none,
  call_fails,   ///< one call throws; nothing was queued
  no_memory,    ///< one allocation gets no memory
  kernel_fails, ///< the GPU fails when it runs what the call queued
  device_lost,  ///< this call and all later ones throw, and nothing runs
  /// A queue does not wait for an event that is not reached yet and that no
  /// earlier wait, and no other wait for the same work, implies. It is then
  /// hasty, and the event's queue lazy.
  wait_forgotten,
  merge_hangs, ///< a merge of NCCL never ends, after all GPUs have come to it
  merge_never_meets, ///< the same, and GPUs that come to it early do not learn
                     ///< whether others come
  merge_fails,       ///< a merge never ends, and NCCL tells why
};

struct pretend_options {
  int gpus = 2;
  std::size_t bytes = std::size_t{1} << 28; ///< memory of each GPU
  /// Of the order in which queues run, and of threads in a block.
  std::uint64_t seed = 1;
  bool has_nccl = true;
  bool nccl_connects = true; ///< false: it refuses to connect GPUs
  mishap goes_wrong = mishap::none;
  /// The call that goes wrong, among those that can, from 0.
  std::uint64_t at_call = 0;
};

/// A driver without a GPU, and without a thread. Calls of the driver run what
/// is queued, and the seed alone decides when: a queue is hasty, so that a call
/// runs what it has just queued; or lazy, so that nothing runs until the host
/// waits for it; or in between. Whoever forgets to wait therefore reads what is
/// not there yet, however fast the machine is. The host learns that an event is
/// reached only by waiting for it or for a later one. Memory of a GPU holds NaN
/// at first. Threads of a block run in a random order. Recorded work runs in
/// any order that the recorded waits allow, and calls that would break a
/// recording of CUDA break it. `now` stands still but for while a merge hangs.
class pretend_driver : public cuda::driver {
public:
  /// Throws nothing and fails in no call from now on, or as `options` say;
  /// calls are counted from 0 again.
  virtual void set(mishap goes_wrong, std::uint64_t at_call) = 0;
  /// Calls so far that the present mishap could have hit.
  virtual std::uint64_t calls() const = 0;
  /// Bytes that are allocated on a GPU.
  virtual std::size_t allocated(int gpu) const = 0;
  /// How often a queue waited for an event.
  virtual std::uint64_t waits() const = 0;
  /// How often recorded work was launched.
  virtual std::uint64_t graph_launches() const = 0;
  /// How often NCCL was told to merge.
  virtual std::uint64_t merges() const = 0;

  ///@{
  /// Work that several queues do together: `begin` runs when all of them have
  /// come to it, then `finish` for each queue, by position, before it goes on.
  /// A queue can go on before another one. If the work hangs, whoever waits for
  /// a queue waits until `end_meeting`; what has not run by then never does.
  struct joint_work {
    std::function<void()> begin;
    std::function<void(std::size_t)> finish;
  };
  struct meeting;
  using shared_meeting = std::shared_ptr<meeting>;
  virtual shared_meeting meet(std::span<cuda::gpu_queue* const> queues,
                              joint_work work) = 0;
  /// True if it hangs because something has failed.
  virtual bool has_failed(const meeting& m) const = 0;
  virtual void end_meeting(meeting& m) = 0;
  ///@}
};

std::shared_ptr<pretend_driver>
make_pretend_driver(pretend_options options = {});

} // namespace troupe::test
