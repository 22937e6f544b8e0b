// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace troupe {

class part_runner;
class stream;

/// A position in a stream: the value is really there once the stream has got
/// so far. Position 0 is always reached.
using ticket = std::uint64_t;

/// Hears that something which was begun is done.
class completion {
public:
  virtual ~completion() = default;
  /// Called once, on any thread, with the exception that it failed with, if
  /// any.
  virtual void completed(std::exception_ptr failure) noexcept = 0;
};

/// What a stream runs. Owned by whoever launches it, who keeps it alive until
/// `execute` has returned and, if that was asked for, `completed` was called.
class work : public completion {
public:
  /// Does the work, or queues it on the device behind `on`. Runs once, on a
  /// thread of the stream's choice. May throw.
  virtual void execute(stream& on) = 0;
};

enum class launch_status : std::uint8_t {
  done,    ///< finished: results may be read by anyone
  pending, ///< begun: results are there later
};

/// What the launcher will need to know of a launch that is pending. A device
/// may leave out what is not wanted.
struct launch_options {
  /// `work::completed` is to be called; if not, it is called only when the
  /// device fails.
  bool tell_completion = true;
  /// Another stream will wait for the position.
  bool give_position = true;
  /// Of the op whose work it is, for devices whose times depend on it. Outlives
  /// the launch.
  std::string_view op_type = {};
};

/// Outcome of a launch.
struct launch_result {
  launch_status state = launch_status::done;
  ticket position = 0; ///< where a pending launch's results are there
};

/// What a stream is made with.
struct stream_options {
  std::string name; ///< "compute", "collective", "fetch"
  /// How many launches may run at the same time, at least 1. A GPU stream has
  /// width 1; a CPU device that owns four workers has width 4.
  int width = 1;
  /// Who runs parts of this stream's work, where kernels run on the host;
  /// outlives the stream. Null: nobody, work stays whole.
  part_runner* helpers = nullptr;
};

/// An ordered queue of a device's work. Launching is not finishing.
///
/// Thread rule: at most `width()` threads inside `launch` at a time, and `wait`
/// from the thread that launches next; its stream actor sees to both.
/// `finished` and `synchronize` from any thread.
class stream {
public:
  virtual ~stream() = default;

  /// As it was given: `stream_options::name`.
  virtual const std::string& name() const noexcept = 0;
  /// How many launches may run at the same time.
  virtual int width() const noexcept = 0;

  /// Runs or queues `w`. If `w.execute` ran right here and threw, the
  /// exception comes out of `launch` and `completed` is not called.
  ///
  /// A stream that does not complete at launch returns `pending`, with a
  /// position behind all that it was told to wait for, even if `w` did nothing:
  /// others rely on it for what came before.
  virtual launch_result launch(work& w, const launch_options& wanted) = 0;

  /// Work launched here from now on begins after `position` of `producer` is
  /// reached. Does not block the host where the device can wait by itself.
  /// Position 0 is a no-op. Both streams belong to devices of one kind.
  virtual void wait(stream& producer, ticket position) = 0;

  /// Whether `wait` on `producer` leaves the waiting to the device. If not, a
  /// consumer here is told only when the producer's work has finished.
  virtual bool can_wait_for(const stream& producer) const noexcept {
    (void)producer;
    return false;
  }
  /// True if every launch returns `done` (host streams).
  virtual bool completes_at_launch() const noexcept { return false; }
  /// Who runs parts of what is launched here, on up to `width()` threads; null:
  /// nobody.
  virtual part_runner* helpers() const noexcept { return nullptr; }

  /// Where all that has been launched and waited for here is done.
  virtual ticket position() const noexcept { return 0; }
  /// Whether `position` is reached; does not block.
  virtual bool finished(ticket position) const noexcept = 0;
  /// Blocks the calling thread until `position` is reached.
  virtual void synchronize(ticket position) = 0;
};

} // namespace troupe
