// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::cuda {

class nccl;

/// An ordered queue of work of a GPU (a stream of CUDA). Its destructor waits
/// for its work.
class gpu_queue {
public:
  virtual ~gpu_queue() = default;
  /// What libraries beside the driver know the queue by: CUDA's cudaStream_t.
  virtual void* handle() noexcept = 0;
};

/// A point in a queue that others can wait for.
class gpu_event {
public:
  virtual ~gpu_event() = default;
};

/// Work of several queues that was recorded, and that a queue runs as a whole
/// (an executable graph of CUDA). What it was told to use (memory, arguments)
/// is used each time. Its destructor may run only when no queue has it.
class gpu_graph {
public:
  virtual ~gpu_graph() = default;
};

/// How many times a kernel's body runs: once for each thread of each block.
struct launch_shape {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1; ///< per block
};

/// One of the kernels whose bodies are listed in bodies/all.hpp.
struct kernel_number {
  std::uint32_t value = 0;
};

/// C = A B, or C += A B. All matrices are row-major and dense, in GPU memory:
/// A is `[m, k]` or, transposed, `[k, m]`; B is `[k, n]` or `[n, k]`; C is
/// `[m, n]`. No extent is 0.
///
/// Several products of the same extents are one call: the matrices of the next
/// one begin `step` elements after those of the last one. A step of 0 uses a
/// factor again. Results must not overlap.
struct matrix_product {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  bool a_transposed = false;
  bool b_transposed = false;
  bool adds = false;      ///< to what C holds
  std::int64_t count = 1; ///< of products
  std::int64_t a_step = 0;
  std::int64_t b_step = 0;
  std::int64_t c_step = 0;
};

/// All that Troupe wants of a GPU's driver and libraries. Devices, streams and
/// kernels work through this interface only. The module `troupe_cuda`
/// implements it with CUDA. The tests' pretend driver runs the same bodies of
/// kernels on the CPU, late and in a random order.
///
/// GPUs are numbered from 0. What is said to be queued runs later than the call
/// returns, after what was queued before on the same queue.
///
/// **Errors.** Functions that are not noexcept throw error(kernel_failure) with
/// the name of the call and what the driver says. After an error of work that
/// ran late, all later calls for this GPU throw.
///
/// **Thread rule.** Any thread. Work that two threads queue on one queue at the
/// same time runs in any order.
class driver {
public:
  virtual ~driver() = default;

  /// Number of GPUs.
  virtual int gpus() const noexcept = 0;
  /// The GPU's name, and its driver's and libraries' versions.
  virtual std::string describe(int gpu) const = 0;

  ///@{
  /// Memory of a GPU; null if there is not enough. `deallocate` waits for all
  /// work of the GPU.
  virtual std::byte* allocate(int gpu, std::size_t bytes) noexcept = 0;
  virtual void deallocate(int gpu, std::byte* data) noexcept = 0;
  ///@}
  ///@{
  /// Host memory that all GPUs can read and write, and that `copy` takes; null
  /// if there is not enough.
  virtual std::byte* allocate_pinned(std::size_t bytes) noexcept = 0;
  virtual void deallocate_pinned(std::byte* data) noexcept = 0;
  ///@}

  /// @param yields the GPU runs work of other queues first
  virtual std::unique_ptr<gpu_queue> make_queue(int gpu,
                                                bool yields = false) = 0;
  /// An event that no queue has reached is as good as reached.
  virtual std::unique_ptr<gpu_event> make_event(int gpu) = 0;

  /// The event is reached when all that is queued on `on` now is done. Replaces
  /// what was recorded before.
  virtual void record(gpu_event& event, gpu_queue& on) = 0;
  /// What is queued on `on` from now on runs after the event, as it is recorded
  /// now. The queue may be one of another GPU.
  virtual void wait(gpu_queue& on, const gpu_event& event) = 0;
  /// True if the event is reached.
  virtual bool reached(const gpu_event& event) = 0;
  /// Blocks the calling thread until the event is reached.
  virtual void synchronize(const gpu_event& event) = 0;
  /// Blocks the calling thread until the queue is empty.
  virtual void synchronize(gpu_queue& queue) = 0;

  /// Queues a copy between memory of GPUs, of the same or of two, and pinned
  /// memory.
  virtual void copy(gpu_queue& on, std::byte* to, const std::byte* from,
                    std::size_t bytes) = 0;
  /// Queues a kernel. `arguments` is a copy of the body's `arguments`.
  virtual void launch(gpu_queue& on, kernel_number which,
                      const launch_shape& shape, const void* arguments,
                      std::size_t bytes) = 0;
  /// Queues products of matrices.
  virtual void multiply(gpu_queue& on, const matrix_product& product) = 0;

  ///@{
  /// Between these calls, what is queued on `origin` is recorded and does not
  /// run. A queue that waits for an event of recorded work is recorded too,
  /// from then on. In the end, `origin` must come after all that was recorded.
  /// Both calls are made by one thread. `end_capture` ends the recording also
  /// if it throws, as it does if the recording is broken.
  ///
  /// What the driver refuses breaks a recording: waiting on the host for a
  /// recorded queue or event, or asking whether it is reached; making a
  /// recorded queue wait for an event that was not recorded; giving memory of
  /// its GPU back; and whatever the thread that began does besides queueing
  /// work (thread-local mode of CUDA). Other threads may take memory, and wait
  /// for and ask about all that is not recorded.
  virtual void begin_capture(gpu_queue& origin) = 0;
  virtual std::unique_ptr<gpu_graph> end_capture(gpu_queue& origin) = 0;
  ///@}
  /// Queues all that was recorded.
  virtual void launch_graph(gpu_queue& on, gpu_graph& graph) = 0;

  /// The library that merges values of several GPUs; null if there is none.
  virtual std::shared_ptr<nccl> find_nccl() = 0;
  /// The clock, in ns, that tells how long a GPU takes.
  virtual std::uint64_t now() const noexcept = 0;
};

} // namespace troupe::cuda
