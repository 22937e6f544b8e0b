// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/module/matrix_products.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>

namespace troupe::cuda {

namespace {

void check_product(const char* call, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw error(errc::kernel_failure,
                std::string(call) + ": " + cublasLtGetStatusName(status));
}

struct stack {
  std::int64_t count; ///< matrices
  std::int64_t step;  ///< elements from one to the next
};

cublasLtMatrixLayout_t layout_of(std::int64_t rows, std::int64_t columns,
                                 const stack& of) {
  cublasLtMatrixLayout_t made = nullptr;
  check_product("cublasLtMatrixLayoutCreate",
                cublasLtMatrixLayoutCreate(
                  &made, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                  static_cast<std::uint64_t>(columns), rows));
  const auto count = static_cast<std::int32_t>(of.count);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t what,
                       const auto& value) {
    check_product(
      "cublasLtMatrixLayoutSetAttribute",
      cublasLtMatrixLayoutSetAttribute(made, what, &value, sizeof value));
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, of.step);
  return made;
}

std::uint32_t alignment_of(const matrix_product& p) {
  const auto steps =
    static_cast<std::uintptr_t>(p.a_step | p.b_step | p.c_step);
  const auto all = reinterpret_cast<std::uintptr_t>(p.a)
                   | reinterpret_cast<std::uintptr_t>(p.b)
                   | reinterpret_cast<std::uintptr_t>(p.c)
                   | steps * sizeof(float) | 16u;
  return static_cast<std::uint32_t>(all & (~all + 1)); // the lowest bit
}

/// Frees a description when a plan could not be finished.
struct preference {
  preference() {
    check_product("cublasLtMatmulPreferenceCreate",
                  cublasLtMatmulPreferenceCreate(&made));
  }
  ~preference() { cublasLtMatmulPreferenceDestroy(made); }
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t what, const T& value) {
    check_product(
      "cublasLtMatmulPreferenceSetAttribute",
      cublasLtMatmulPreferenceSetAttribute(made, what, &value, sizeof value));
  }
  cublasLtMatmulPreference_t made = nullptr;
};

} // namespace

product_workspace::product_workspace(cudaStream_t on) : on_(on) {
  if (cudaMalloc(&data_, bytes) != cudaSuccess) {
    cudaGetLastError();
    throw error(errc::out_of_memory,
                "no GPU memory for the workspace of matrix products, "
                  + std::to_string(bytes) + " bytes");
  }
}

product_workspace::~product_workspace() {
  cudaStreamSynchronize(on_);
  cudaFree(data_);
}

matrix_products::matrix_products(int gpu) {
  cudaSetDevice(gpu);
  check_product("cublasLtCreate", cublasLtCreate(&library_));
}

matrix_products::~matrix_products() {
  for (auto& [p, made] : plans_) {
    cublasLtMatrixLayoutDestroy(made.a);
    cublasLtMatrixLayoutDestroy(made.b);
    cublasLtMatrixLayoutDestroy(made.c);
    cublasLtMatmulDescDestroy(made.what);
  }
  cublasLtDestroy(library_);
}

std::string matrix_products::library_version() {
  const auto version = cublasLtGetVersion();
  return std::to_string(version / 10000) + "."
         + std::to_string(version / 100 % 100) + "."
         + std::to_string(version % 100);
}

// The library's matrices are column-major. A row-major matrix is its transpose
// there, so this computes C' = B' A'.
void matrix_products::run(const matrix_product& p,
                          const product_workspace& workspace, cudaStream_t on) {
  const auto& chosen =
    plan_of({p.m, p.n, p.k, p.count, p.a_step, p.b_step, p.c_step,
             p.a_transposed, p.b_transposed, p.adds, alignment_of(p)});
  const float one = 1, kept = p.adds ? 1.0f : 0.0f;
  check_product("cublasLtMatmul",
                cublasLtMatmul(library_, chosen.what, &one, p.b, chosen.b, p.a,
                               chosen.a, &kept, p.c, chosen.c, p.c, chosen.c,
                               &chosen.way, workspace.data(),
                               product_workspace::bytes, on));
}

const matrix_products::plan& matrix_products::plan_of(const problem& p) {
  std::lock_guard guard{planning_};
  const auto found = plans_.find(p);
  return found != plans_.end() ? found->second
                               : plans_.emplace(p, make_plan(p)).first->second;
}

matrix_products::plan matrix_products::make_plan(const problem& p) const {
  plan made;
  check_product(
    "cublasLtMatmulDescCreate",
    cublasLtMatmulDescCreate(&made.what, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const auto set = [&](cublasLtMatmulDescAttributes_t what, bool transposed) {
    const cublasOperation_t as = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check_product(
      "cublasLtMatmulDescSetAttribute",
      cublasLtMatmulDescSetAttribute(made.what, what, &as, sizeof as));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.b_transposed);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.a_transposed);
  const stack of_a{p.count, p.a_step}, of_b{p.count, p.b_step};
  made.b =
    p.b_transposed ? layout_of(p.k, p.n, of_b) : layout_of(p.n, p.k, of_b);
  made.a =
    p.a_transposed ? layout_of(p.m, p.k, of_a) : layout_of(p.k, p.m, of_a);
  made.c = layout_of(p.n, p.m, {p.count, p.c_step});
  preference wanted;
  wanted.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
             product_workspace::bytes);
  for (auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    wanted.set(which, p.alignment);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check_product("cublasLtMatmulAlgoGetHeuristic",
                cublasLtMatmulAlgoGetHeuristic(library_, made.what, made.b,
                                               made.a, made.c, made.c,
                                               wanted.made, 1, &best, &found));
  if (found == 0)
    throw error(errc::kernel_failure,
                "cuBLASLt has no way to compute a product");
  made.way = best.algo;
  return made;
}

} // namespace troupe::cuda
