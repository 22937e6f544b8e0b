// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace troupe {

class part_runner;
class stream;

/// A position in a stream. A value is available once its stream has reached the
/// position. Position 0 is always reached.
using ticket = std::uint64_t;

/// Callback for the end of an asynchronous operation.
class completion {
public:
  virtual ~completion() = default;
  /// Called once, on any thread. `failure` is the exception that the operation
  /// failed with; null if it succeeded.
  virtual void completed(std::exception_ptr failure) noexcept = 0;
};

/// A unit of work for a stream. The launcher owns it. It must keep the work
/// alive until `execute` has returned and, if requested, `completed` has been
/// called.
class work : public completion {
public:
  /// Does the work, or queues it on the device of `on`. Called once, on a
  /// thread that the stream chooses. May throw.
  virtual void execute(stream& on) = 0;
};

/// How far a launch has come when the call that made it returns.
enum class launch_status : std::uint8_t {
  done,    ///< complete: results can be read
  pending, ///< started: results become available later
};

/// What the launcher needs from a pending launch. A device can skip what is not
/// needed.
struct launch_options {
  /// Call `work::completed`. If false, it is called only if the device fails.
  bool tell_completion = true;
  /// Provide a position, because another stream will wait for it.
  bool give_position = true;
  /// Type of the op, for devices whose launch times depend on it. Must outlive
  /// the launch.
  std::string_view op_type = {};
};

/// Outcome of a launch.
struct launch_result {
  launch_status state = launch_status::done;
  ticket position = 0; ///< where a pending launch's results are available
};

/// Options of a stream.
struct stream_options {
  std::string name; ///< "compute", "collective", "fetch", "gradient"
  /// Number of launches that can run at the same time, at least 1. A GPU stream
  /// has width 1. A CPU device with four workers has width 4.
  int width = 1;
  /// Runs parts of this stream's work in parallel if kernels run on the host.
  /// Must outlive the stream. Null: work is not divided.
  part_runner* helpers = nullptr;
  /// A GPU runs work of its other streams first.
  bool yields = false;
};

/// An ordered queue of work on a device. Work may complete after its launch
/// returns.
///
/// Thread rule: at most `width()` threads in `launch` at a time, and `wait`
/// from the thread that launches next. The stream actor ensures both.
/// `finished` and `synchronize` from any thread.
class stream {
public:
  virtual ~stream() = default;

  /// The name given in `stream_options::name`.
  virtual const std::string& name() const noexcept = 0;
  /// Number of launches that can run at the same time.
  virtual int width() const noexcept = 0;

  /// Runs or queues `w`. If `w.execute` runs inside this call and throws,
  /// `launch` rethrows the exception and `completed` is not called. If this
  /// throws for want of memory, `w.execute` may not have been called at all;
  /// the stream can be used further.
  ///
  /// A stream that does not complete at launch returns `pending`, even if `w`
  /// did nothing. The position lies after everything that the stream was told
  /// to wait for, because others rely on it for earlier work too.
  virtual launch_result launch(work& w, const launch_options& wanted) = 0;

  /// Makes work launched here from now on start only after `producer` has
  /// reached `position`. Does not block the host if the device itself can wait
  /// and has the memory for it. Position 0 is a no-op. Both streams belong to
  /// devices of the same kind. Does not throw, because the launch that follows
  /// must take place in any case: the work of a rank tells others if it has
  /// failed.
  virtual void wait(stream& producer, ticket position) noexcept = 0;

  /// True if the device itself can wait for `producer`. If false, a consumer on
  /// this stream is notified only after the producer's work has completed.
  virtual bool can_wait_for(const stream& producer) const noexcept {
    (void)producer;
    return false;
  }
  /// True if every launch returns `done`, as on host streams.
  virtual bool completes_at_launch() const noexcept { return false; }
  /// Runs parts of launched work on up to `width()` threads; null: work is not
  /// divided.
  virtual part_runner* helpers() const noexcept { return nullptr; }

  /// The position at which everything launched or waited for so far is
  /// complete.
  virtual ticket position() const noexcept { return 0; }
  /// True if `position` has been reached. Does not block.
  virtual bool finished(ticket position) const noexcept = 0;
  /// Blocks the calling thread until `position` has been reached.
  virtual void synchronize(ticket position) = 0;
};

} // namespace troupe
