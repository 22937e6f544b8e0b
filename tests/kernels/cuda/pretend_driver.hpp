// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

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
  wait_forgotten
};

struct pretend_options {
  int gpus = 2;
  std::size_t bytes = std::size_t{1} << 28; ///< memory of each GPU
  /// Of the order in which queues run, and of threads in a block.
  std::uint64_t seed = 1;
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
/// recording of CUDA break it.
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
};

std::shared_ptr<pretend_driver>
make_pretend_driver(pretend_options options = {});

} // namespace troupe::test
