// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/step_recording.hpp>
#include <troupe/kernels/stream.hpp>
#include <troupe/kernels/tensor.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What a device is.
enum class device_kind : std::uint8_t {
  cpu,
  cuda,
  sim, ///< simulated: host memory, asynchronous launches
};

/// "cpu", "cuda" or "sim".
std::string_view to_string(device_kind kind) noexcept;

/// True if the host can read and write the memory of such devices.
constexpr bool has_host_memory(device_kind kind) noexcept {
  return kind != device_kind::cuda;
}

/// Kind and index: `cpu:1`, `cuda:0`. Paddle's "place".
struct device_id {
  device_kind kind = device_kind::cpu;
  int index = 0;
  friend auto operator<=>(const device_id&, const device_id&) = default;
};

/// "cpu:1".
std::string to_string(device_id id);

/// How a stream waits for another one of its kind. Results are bit-equal.
/// Streams of the host wait for none: their launches are done when they return.
enum class wait_mode : std::uint8_t {
  event, ///< the device waits for an event
  block, ///< the thread that launches blocks
};

/// "event" or "block".
std::string_view to_string(wait_mode mode) noexcept;
/// From these names. Throws error(invalid_argument) for another one.
wait_mode parse_wait_mode(std::string_view text);

/// How a device is made.
struct device_options {
  /// How its streams wait for each other's work.
  wait_mode waits_by = wait_mode::event;
  /// Values of several devices are added up in the order of devices, also where
  /// a faster way (NCCL) has an order of its own. CPU devices always do so.
  bool sums_in_order = false;
};

/// Where variables live and ops run: memory and streams.
///
/// Thread rule: functions without a stream argument from any thread. The others
/// state their own rule.
class device {
public:
  virtual ~device() = default;

  /// The device's kind and index.
  virtual device_id id() const noexcept = 0;
  /// The device's caching allocator. It lives as long as the device.
  virtual arena& memory() noexcept = 0;
  /// Makes an ordered queue of work. The device must outlive it.
  virtual std::unique_ptr<stream>
  make_stream(const stream_options& options) = 0;

  /// Returns a plain copy of `value` in host memory from `host`. The copy is
  /// queued on `on`, a stream of this device, and can be read when the work
  /// that calls this is complete. The device keeps the memory of both until
  /// then. Called from work that `on` executes.
  virtual tensor to_host(const tensor& value, arena& host, stream& on) = 0;
  /// Returns a copy of a plain host tensor in this device's memory. The copy is
  /// queued on `on`, a stream of this device: it is available to later work of
  /// the stream, and to others when the stream has reached its present
  /// `position()`. The device keeps the copy's memory until then. `host_value`
  /// may be changed as soon as this returns. Called from work that `on`
  /// executes, or by the thread that launches next on `on`.
  virtual tensor to_device(const tensor& host_value, stream& on) = 0;

  ///@{
  /// The same on a stream of their own. They block until the copy is complete,
  /// so a stream's work must not call them. The caller must make sure that
  /// `value` has been computed (see `ticket`).
  tensor to_host(const tensor& value, arena& host);
  tensor to_device(const tensor& host_value);
  ///@}

  /// True if the device can record what its streams queue.
  virtual bool can_record() const noexcept { return false; }
  /// Begins to record what `streams` of this device queue; see
  /// `step_recording`. Blocks until their work is done. The first stream is the
  /// one on which the recording runs later. No work may be launched on them
  /// meanwhile. Throws error(kernel_failure | out_of_memory), and
  /// error(unsupported_op) if the device cannot record; the streams then work
  /// as before.
  virtual std::unique_ptr<step_recording>
  record(std::span<stream* const> streams);

  /// True if kernels of this device can use `value` where it lies: in the
  /// device's own memory, or in host memory if that is the device's memory too.
  bool reaches(const tensor& value);
};

/// Makes a CPU device. It has its own arena of host memory and runs kernels on
/// the thread that launches them. Several CPU devices share the machine's
/// cores.
std::unique_ptr<device> make_cpu_device(int index);

/// Parses "cpu", "cpu:4", "cuda:0,cuda:1" or "sim:4" into ids. `cpu:N` and
/// `sim:N` mean N devices numbered 0 to N-1. `cuda:I` means the GPU with index
/// I. "cpu" alone means one device. The ids must be distinct and of one kind;
/// at most 4096 are allowed. Throws error(invalid_argument) listing the
/// accepted forms.
std::vector<device_id> parse_devices(std::string_view text);

} // namespace troupe
