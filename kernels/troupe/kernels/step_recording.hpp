// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>
#include <troupe/kernels/tensor.hpp>

#include <span>

namespace troupe {

/// What the streams of a device queue in one step, recorded so that one launch
/// queues all of it again.
///
/// `device::record` begins a recording. From then on, work that the recorded
/// streams execute runs its host code as ever, but what it queues on the device
/// is recorded and does not run. Launches are done when they return. Memory
/// that such work takes is the recording's: nobody else gets it, so values are
/// at the same addresses whenever the recording runs. What the host decides (a
/// shape, a number in an argument) is decided once, but for the number of the
/// step, which each launch gives.
///
/// Thread rule: `finish` and `source_of` while no work is being executed; the
/// others from work that the first of the recorded streams executes.
class step_recording {
public:
  /// Ends a recording that was not finished, and waits until all launches are
  /// over. The recorded streams still exist. Values in the recording's memory
  /// stay valid.
  virtual ~step_recording() = default;

  /// A value, and a plain one of the same size and device.
  struct value_copy {
    tensor from, to;
  };
  /// Ends the recording, with copies that come after all that was recorded. Its
  /// streams then work as before, also if this throws error(kernel_failure):
  /// the device cannot run what was recorded, which is then of no use. Nothing
  /// of it has run.
  virtual void finish(std::span<value_copy> last) = 0;
  /// The device's value that each launch leaves for a value which
  /// `device::to_host` returned while it was recorded. That one has the shape
  /// of the result, and no elements.
  virtual tensor source_of(const tensor& result) const = 0;

  /// Queues all that was recorded.
  /// @param number what random ops take for the number of the step
  virtual void launch(step_id number) = 0;
  /// Queues a copy, to run before a launch that follows.
  virtual void copy(value_copy& values) = 0;
};

} // namespace troupe
