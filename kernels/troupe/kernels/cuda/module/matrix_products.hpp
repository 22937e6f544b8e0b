// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/driver.hpp>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace troupe::cuda {

/// Memory that the products of one stream use.
class product_workspace {
public:
  static constexpr std::size_t bytes = std::size_t{32} << 20;

  explicit product_workspace(cudaStream_t on);
  ~product_workspace();
  product_workspace(const product_workspace&) = delete;
  product_workspace& operator=(const product_workspace&) = delete;

  void* data() const noexcept { return data_; }

private:
  cudaStream_t on_;
  void* data_ = nullptr;
};

/// Products of matrices by cuBLASLt on one GPU, in float32 without TF32. The
/// way to compute a product is looked up once per shape. Any thread.
class matrix_products {
public:
  explicit matrix_products(int gpu);
  ~matrix_products();
  matrix_products(const matrix_products&) = delete;
  matrix_products& operator=(const matrix_products&) = delete;

  static std::string library_version();

  /// Queues a product. The GPU is the calling thread's current one.
  void run(const matrix_product& product, const product_workspace& workspace,
           cudaStream_t on);

private:
  /// What a product needs to be known by.
  struct problem {
    std::int64_t m, n, k;
    std::int64_t count, a_step, b_step, c_step;
    bool a_transposed, b_transposed, adds;
    std::uint32_t alignment; ///< of all matrices, in bytes
    auto operator<=>(const problem&) const = default;
  };
  /// A product as cuBLASLt describes it.
  struct plan {
    cublasLtMatmulDesc_t what = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t way{};
  };

  const plan& plan_of(const problem& p);
  plan make_plan(const problem& p) const;

  cublasLtHandle_t library_ = nullptr;
  std::mutex planning_; // guards the plans; they stay where they are
  std::map<problem, plan> plans_;
};

} // namespace troupe::cuda
