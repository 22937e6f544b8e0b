// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/stream.hpp>
#include <troupe/kernels/tensor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

enum class device_kind : std::uint8_t {
  cpu,
  cuda,
  sim, ///< in host memory, with launches that end later
};

std::string_view to_string(device_kind kind) noexcept;

/// Kind and index: `cpu:1`, `cuda:0`. Paddle's "place".
struct device_id {
  device_kind kind = device_kind::cpu;
  int index = 0;
  friend auto operator<=>(const device_id&, const device_id&) = default;
};

/// "cpu:1".
std::string to_string(device_id id);

/// Where variables live and ops run: memory and streams.
///
/// Thread rule: `memory()`, `to_host` and `to_device` from any thread.
class device {
public:
  virtual ~device() = default;

  /// Its kind and number.
  virtual device_id id() const noexcept = 0;
  /// The device's caching arena; lives as long as the device.
  virtual arena& memory() noexcept = 0;
  /// Whether the host reads plain tensors of the device as they are.
  virtual bool memory_is_host() const noexcept { return false; }
  /// Makes an ordered queue of work. The device must outlive it.
  virtual std::unique_ptr<stream>
  make_stream(const stream_options& options) = 0;

  /// A plain copy of `value` in host memory that `host` hands out; waits for
  /// the transfer. The caller has made sure that the value is there (ticket).
  virtual tensor to_host(const tensor& value, arena& host) = 0;
  /// A copy of a plain host tensor in this device's memory; waits likewise.
  virtual tensor to_device(const tensor& host_value) = 0;
};

/// A plain copy on `to` of a value, in any layout, that `from` can read; waits
/// for the transfers.
tensor plain_copy(const tensor& value, device& from, device& to);

/// A CPU device: host memory of its own arena, kernels run on the thread that
/// launches them. Several CPU devices share the machine's cores.
std::unique_ptr<device> make_cpu_device(int index);

/// Parses "cpu", "cpu:4", "cuda:0,cuda:1", "sim:4" into ids: `cpu:N` and
/// `sim:N` mean N devices 0..N-1, `cuda:I` means the GPU of index I. Bare
/// "cpu" gives one device. All ids are of one kind and differ, at most 4096.
/// Throws error(invalid_argument) with the accepted forms.
std::vector<device_id> parse_devices(std::string_view text);

} // namespace troupe
