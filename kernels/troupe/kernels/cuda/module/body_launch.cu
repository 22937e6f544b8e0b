// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/bodies/all.hpp>
#include <troupe/kernels/cuda/module/body_launch.hpp>

namespace troupe::cuda {

namespace {

template <class Body>
__global__ void run_body(const typename Body::arguments a) {
  __shared__ typename Body::shared s;
  const place at{blockIdx.x, threadIdx.x, gridDim.x, blockDim.x};
  for (int phase = 0; phase < Body::phases; ++phase) {
    if (phase > 0)
      __syncthreads();
    Body::run(at, a, s, phase);
  }
}

using launcher = cudaError_t (*)(const launch_shape&, void*, cudaStream_t);

template <class Body>
cudaError_t launch(const launch_shape& shape, void* arguments,
                   cudaStream_t on) {
  void* all[] = {arguments};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&run_body<Body>),
                          dim3(shape.blocks), dim3(shape.threads), all, 0, on);
}

template <class Body>
struct launcher_of {
  static constexpr launcher value = &launch<Body>;
};

constexpr auto launchers = all_bodies::table<launcher_of>();

} // namespace

cudaError_t launch_body(kernel_number which, const launch_shape& shape,
                        const void* arguments, cudaStream_t on) {
  return launchers[which.value](shape, const_cast<void*>(arguments), on);
}

} // namespace troupe::cuda
