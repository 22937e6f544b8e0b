// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/product/gemm.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/cpu/library/library_versions.hpp>
#include <troupe/kernels/cpu/library/single_threaded.hpp>

#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>

#include <string>

namespace troupe::cpu {

namespace {

// From this many multiplications on, oneDNN is 1.05 to 1.2 times as fast (twice
// with two 512-bit units), measured on a core with AVX-512 (Zen 4). Below,
// OpenBLAS is 1.1 to 4 times as fast, because oneDNN packs first. Products with
// one row always use oneDNN: OpenBLAS takes seven times as long.
constexpr std::int64_t smallest_for_onednn = 1 << 17;

// The system's alternatives decide at run time which build of OpenBLAS is
// loaded. The serial build is not thread-safe: it gives the same work buffer to
// two concurrent calls. OPENBLAS_CORETYPE can select code that the processor
// cannot run. In both cases oneDNN computes every product.
bool can_use_blas() noexcept {
  return reason_against_blas().empty();
}

bool prefer_onednn(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  return m == 1 || m * n * k >= smallest_for_onednn || !can_use_blas();
}

void onednn_gemm(std::int64_t m, std::int64_t n, std::int64_t k,
                 const matrix& a, const matrix& b, float beta, float* c,
                 std::int64_t stride_c) {
  const auto status =
    dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k,
               1.0f, a.data, a.stride, b.data, b.stride, beta, c, stride_c);
  if (status != dnnl_success)
    throw error(errc::kernel_failure,
                "oneDNN sgemm failed with status " + std::to_string(status));
}

CBLAS_TRANSPOSE order_of(bool transposed) {
  return transposed ? CblasTrans : CblasNoTrans;
}

void openblas_gemm(std::int64_t m, std::int64_t n, std::int64_t k,
                   const matrix& a, const matrix& b, float beta, float* c,
                   std::int64_t stride_c) {
  const auto i = [](std::int64_t x) { return static_cast<int>(x); };
  cblas_sgemm(CblasRowMajor, order_of(a.transposed), order_of(b.transposed),
              i(m), i(n), i(k), 1.0f, a.data, i(a.stride), b.data, i(b.stride),
              beta, c, i(stride_c));
}

template <class T>
void scale_rows(std::int64_t m, std::int64_t n, T beta, T* c,
                std::int64_t stride_c) {
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t i = 0; i < n; ++i) {
      T& value = c[row * stride_c + i];
      value = beta == T(0) ? T(0) : static_cast<T>(beta * value);
    }
}

// Element (row, column) of op(x).
template <class T>
T at(const matrix_of<T>& x, std::int64_t row, std::int64_t column) {
  return x
    .data[x.transposed ? column * x.stride + row : row * x.stride + column];
}

// Integers are summed in their unsigned type, so that sums wrap around.
template <class Sum, class T>
void plain_gemm(std::int64_t m, std::int64_t n, std::int64_t k,
                const matrix_of<T>& a, const matrix_of<T>& b, T beta, T* c,
                std::int64_t stride_c) {
  scale_rows(m, n, beta, c, stride_c);
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t l = 0; l < k; ++l) {
      const auto factor = static_cast<Sum>(at(a, row, l));
      T* to = c + row * stride_c;
      for (std::int64_t i = 0; i < n; ++i)
        to[i] = static_cast<T>(static_cast<Sum>(to[i])
                               + factor * static_cast<Sum>(at(b, l, i)));
    }
}

void openblas_gemm(std::int64_t m, std::int64_t n, std::int64_t k,
                   const matrix_of<double>& a, const matrix_of<double>& b,
                   double beta, double* c, std::int64_t stride_c) {
  const auto i = [](std::int64_t x) { return static_cast<int>(x); };
  cblas_dgemm(CblasRowMajor, order_of(a.transposed), order_of(b.transposed),
              i(m), i(n), i(k), 1.0, a.data, i(a.stride), b.data, i(b.stride),
              beta, c, i(stride_c));
}

} // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const matrix& a,
          const matrix& b, float beta, float* c, std::int64_t stride_c) {
  if (m == 0 || n == 0)
    return;
  if (k == 0)
    return scale_rows(m, n, beta, c, stride_c);
  ensure_single_threaded();
  if (prefer_onednn(m, n, k))
    onednn_gemm(m, n, k, a, b, beta, c, stride_c);
  else
    openblas_gemm(m, n, k, a, b, beta, c, stride_c);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k,
          const matrix_of<double>& a, const matrix_of<double>& b, double beta,
          double* c, std::int64_t stride_c) {
  if (m == 0 || n == 0)
    return;
  if (k == 0)
    return scale_rows(m, n, beta, c, stride_c);
  ensure_single_threaded();
  if (can_use_blas())
    openblas_gemm(m, n, k, a, b, beta, c, stride_c);
  else
    plain_gemm<double>(m, n, k, a, b, beta, c, stride_c);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k,
          const matrix_of<std::int32_t>& a, const matrix_of<std::int32_t>& b,
          std::int32_t beta, std::int32_t* c, std::int64_t stride_c) {
  plain_gemm<std::uint32_t>(m, n, k, a, b, beta, c, stride_c);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k,
          const matrix_of<std::int64_t>& a, const matrix_of<std::int64_t>& b,
          std::int64_t beta, std::int64_t* c, std::int64_t stride_c) {
  plain_gemm<std::uint64_t>(m, n, k, a, b, beta, c, stride_c);
}

} // namespace troupe::cpu
