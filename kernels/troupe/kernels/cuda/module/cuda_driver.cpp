// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/cuda_module.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>
#include <troupe/kernels/cuda/module/body_launch.hpp>
#include <troupe/kernels/cuda/module/matrix_products.hpp>
#include <troupe/kernels/cuda/module/nccl_library.hpp>

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cuda {

namespace {

[[noreturn]] void fail(const char* call, cudaError_t code) {
  throw error(errc::kernel_failure, std::string(call) + ": "
                                      + cudaGetErrorName(code) + ", "
                                      + cudaGetErrorString(code));
}

void check(const char* call, cudaError_t code) {
  if (code != cudaSuccess)
    fail(call, code);
}

/// Streams, events and memory are made on, and kernels launched on, the calling
/// thread's current GPU.
void use(int gpu) {
  check("cudaSetDevice", cudaSetDevice(gpu));
}

struct cuda_queue final : gpu_queue {
  // A lower number is a higher priority.
  cuda_queue(int on, bool yields) : gpu(on) {
    use(gpu);
    int lowest = 0, highest = 0;
    check("cudaDeviceGetStreamPriorityRange",
          cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    check("cudaStreamCreate",
          cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                       yields ? lowest : highest));
  }
  ~cuda_queue() override {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }

  void* handle() noexcept override { return stream; }

  int gpu;
  cudaStream_t stream = nullptr;
  std::unique_ptr<product_workspace> workspace; // made for the first product
};

struct cuda_event final : gpu_event {
  explicit cuda_event(int gpu) {
    use(gpu);
    check("cudaEventCreate",
          cudaEventCreateWithFlags(&event, cudaEventDisableTiming
                                             | cudaEventBlockingSync));
  }
  ~cuda_event() override { cudaEventDestroy(event); }

  cudaEvent_t event = nullptr;
};

struct cuda_graph final : gpu_graph {
  ~cuda_graph() override {
    if (graph)
      cudaGraphExecDestroy(graph);
  }

  cudaGraphExec_t graph = nullptr;
};

cuda_queue& of(gpu_queue& queue) {
  return static_cast<cuda_queue&>(queue);
}
cudaEvent_t of(const gpu_event& event) {
  return static_cast<const cuda_event&>(event).event;
}

class cuda_driver final : public driver {
public:
  explicit cuda_driver(int gpus) : gpus_(gpus) {
    for (int gpu = 0; gpu < gpus; ++gpu)
      products_.push_back(std::make_unique<matrix_products>(gpu));
    for (int gpu = 0; gpu < gpus; ++gpu)
      reach_others(gpu);
  }

  int gpus() const noexcept override { return gpus_; }
  std::string describe(int gpu) const override {
    cudaDeviceProp found{};
    int version = 0;
    check("cudaGetDeviceProperties", cudaGetDeviceProperties(&found, gpu));
    check("cudaDriverGetVersion", cudaDriverGetVersion(&version));
    return std::string(found.name) + ", driver for CUDA " + dotted(version)
           + ", built with " + dotted(CUDART_VERSION) + ", cuBLASLt "
           + matrix_products::library_version();
  }

  static std::string dotted(int version) {
    return std::to_string(version / 1000) + "."
           + std::to_string(version % 1000 / 10);
  }

  std::byte* allocate(int gpu, std::size_t bytes) noexcept override {
    void* made = nullptr;
    if (cudaSetDevice(gpu) != cudaSuccess
        || cudaMalloc(&made, bytes) != cudaSuccess) {
      cudaGetLastError(); // not an error of a later call
      return nullptr;
    }
    return static_cast<std::byte*>(made);
  }
  void deallocate(int gpu, std::byte* data) noexcept override {
    if (cudaSetDevice(gpu) == cudaSuccess) {
      cudaDeviceSynchronize();
      cudaFree(data);
    }
  }
  std::byte* allocate_pinned(std::size_t bytes) noexcept override {
    void* made = nullptr;
    if (cudaHostAlloc(&made, bytes, cudaHostAllocPortable) != cudaSuccess) {
      cudaGetLastError();
      return nullptr;
    }
    return static_cast<std::byte*>(made);
  }
  void deallocate_pinned(std::byte* data) noexcept override {
    cudaFreeHost(data);
  }

  std::unique_ptr<gpu_queue> make_queue(int gpu, bool yields) override {
    return std::make_unique<cuda_queue>(gpu, yields);
  }
  std::unique_ptr<gpu_event> make_event(int gpu) override {
    return std::make_unique<cuda_event>(gpu);
  }

  void record(gpu_event& event, gpu_queue& on) override {
    use(of(on).gpu);
    check("cudaEventRecord", cudaEventRecord(of(event), of(on).stream));
  }
  void wait(gpu_queue& on, const gpu_event& event) override {
    use(of(on).gpu);
    check("cudaStreamWaitEvent",
          cudaStreamWaitEvent(of(on).stream, of(event), 0));
  }
  bool reached(const gpu_event& event) override {
    const auto found = cudaEventQuery(of(event));
    if (found == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check("cudaEventQuery", found);
    return true;
  }
  void synchronize(const gpu_event& event) override {
    check("cudaEventSynchronize", cudaEventSynchronize(of(event)));
  }
  void synchronize(gpu_queue& queue) override {
    use(of(queue).gpu);
    check("cudaStreamSynchronize", cudaStreamSynchronize(of(queue).stream));
  }

  // All memory has addresses of one space, so the direction is known from them.
  void copy(gpu_queue& on, std::byte* to, const std::byte* from,
            std::size_t bytes) override {
    use(of(on).gpu);
    check("cudaMemcpyAsync",
          cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, of(on).stream));
  }
  void launch(gpu_queue& on, kernel_number which, const launch_shape& shape,
              const void* arguments, std::size_t) override {
    use(of(on).gpu);
    check("cudaLaunchKernel",
          launch_body(which, shape, arguments, of(on).stream));
  }
  void multiply(gpu_queue& on, const matrix_product& product) override {
    auto& queue = of(on);
    use(queue.gpu);
    if (!queue.workspace)
      queue.workspace = std::make_unique<product_workspace>(queue.stream);
    products_[static_cast<std::size_t>(queue.gpu)]->run(
      product, *queue.workspace, queue.stream);
  }

  void begin_capture(gpu_queue& origin) override {
    use(of(origin).gpu);
    check("cudaStreamBeginCapture",
          cudaStreamBeginCapture(of(origin).stream,
                                 cudaStreamCaptureModeThreadLocal));
  }
  std::unique_ptr<gpu_graph> end_capture(gpu_queue& origin) override {
    use(of(origin).gpu);
    cudaGraph_t recorded = nullptr;
    check("cudaStreamEndCapture",
          cudaStreamEndCapture(of(origin).stream, &recorded));
    auto made = std::make_unique<cuda_graph>();
    const auto code = cudaGraphInstantiate(&made->graph, recorded, 0);
    cudaGraphDestroy(recorded);
    if (code != cudaSuccess)
      made->graph = nullptr;
    check("cudaGraphInstantiate", code);
    return made;
  }
  void launch_graph(gpu_queue& on, gpu_graph& graph) override {
    use(of(on).gpu);
    check(
      "cudaGraphLaunch",
      cudaGraphLaunch(static_cast<cuda_graph&>(graph).graph, of(on).stream));
  }

  std::shared_ptr<nccl> find_nccl() override {
    std::lock_guard guard{opening_};
    try {
      if (!nccl_)
        nccl_ = open_nccl();
    } catch (const error&) { // it is missing
    }
    return nccl_;
  }
  std::uint64_t now() const noexcept override { return now_ns(); }

private:
  /// Lets copies between GPUs go directly where the machine can do that.
  void reach_others(int gpu) const {
    use(gpu);
    for (int other = 0; other < gpus_; ++other) {
      int can = 0;
      if (other != gpu
          && cudaDeviceCanAccessPeer(&can, gpu, other) == cudaSuccess && can)
        cudaDeviceEnablePeerAccess(other, 0);
    }
    cudaGetLastError();
  }

  int gpus_;
  std::vector<std::unique_ptr<matrix_products>> products_; // by GPU
  std::mutex opening_; // guards what follows
  std::shared_ptr<nccl> nccl_;
};

void require_driver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0)
    throw error(errc::not_found,
                "no NVIDIA driver (libcuda.so.1): one for CUDA "
                  + cuda_driver::dotted(CUDART_VERSION)
                  + " or newer is needed");
  if (version / 1000 < CUDART_VERSION / 1000)
    throw error(errc::not_found,
                "the NVIDIA driver is for CUDA " + cuda_driver::dotted(version)
                  + ", one for CUDA " + cuda_driver::dotted(CUDART_VERSION)
                  + " or newer is needed");
}

} // namespace

} // namespace troupe::cuda

troupe::cuda::driver* troupe_make_cuda_driver() {
  using namespace troupe::cuda;
  require_driver();
  int gpus = 0;
  if (const auto code = cudaGetDeviceCount(&gpus);
      code != cudaSuccess || gpus == 0)
    throw troupe::error(troupe::errc::not_found,
                        std::string("the NVIDIA driver finds no GPU: ")
                          + cudaGetErrorString(code));
  return new cuda_driver(gpus);
}

troupe::cuda::nccl* troupe_open_nccl() {
  return troupe::cuda::open_nccl().release();
}
