// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/cuda_stream.hpp>
#include <troupe/kernels/step_recording.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace troupe::cuda {

class capture_thread;

/// What streams of a CUDA device queue in a step, as a graph of CUDA.
///
/// All streams join the recording when it begins: the first one is the origin,
/// and the others wait for it. In the end the origin waits for them. Waits in
/// between are edges of the graph, also if streams otherwise wait by blocking.
///
/// A thread of the recording begins and ends it, because the driver wants one
/// thread to do both and refuses what else it does (`driver::begin_capture`).
/// The recording has a thread only while it records. Threads that execute work
/// can take memory, and poll for completions of
/// what is not recorded.
class cuda_recording final : public step_recording {
public:
  /// @param pinned host memory that GPUs reach; outlives the recording
  cuda_recording(std::shared_ptr<device_state> on,
                 std::span<stream* const> streams, arena& pinned);
  ~cuda_recording() override;

  void finish(std::span<value_copy> last) override;
  tensor source_of(const tensor& result) const override;
  void launch(step_id number) override;
  void copy(value_copy& values) override;

  // Called from recorded work, by any thread.

  /// True if the stream is one of those that are recorded.
  bool has(const cuda_stream& s) const noexcept;
  /// Memory for the values of recorded work. It is returned to the driver only
  /// when nobody has a value in it any more.
  arena& memory() noexcept { return memory_; }
  /// Keeps pinned memory as long as the recording.
  void keep(buffer staging);
  /// Where recorded work finds the number of the step, in GPU memory.
  const std::uint32_t* step_number();
  /// Notes where the value of `result` comes from.
  void note_source(const tensor& result, tensor source);
  /// Makes `finish` throw this: something is missing in the recording.
  void fail(std::exception_ptr reason) noexcept;

private:
  void begin();
  void join(cuda_stream& before, cuda_stream& after);
  void end();
  void stop() noexcept;
  cuda_stream& origin() const noexcept { return *streams_.front(); }

  std::shared_ptr<device_state> state_;
  std::vector<cuda_stream*> streams_;
  arena& pinned_;
  arena memory_;
  tensor number_;                                  ///< of the step, one word
  std::vector<std::unique_ptr<gpu_event>> joints_; ///< not used yet
  std::vector<std::unique_ptr<gpu_event>> used_joints_;
  std::unique_ptr<capture_thread> thread_; ///< while it records
  bool is_capturing_ = false;
  std::unique_ptr<gpu_graph> graph_;

  std::mutex noting_; // guards what follows
  std::vector<buffer> kept_;
  bool wants_number_ = false;
  std::vector<std::pair<const std::byte*, tensor>> sources_;
  std::exception_ptr failure_;
};

} // namespace troupe::cuda
