// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/library/library_memory.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/cpu/library/single_threaded.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <mutex>
#include <string>
#include <vector>

// An internal function of OpenBLAS that gives a buffer for one call; if there
// are no addresses for a new buffer, it tries again for ever. Weak, because
// other BLAS libraries lack it.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

namespace troupe {

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

// Per thread: a buffer of OpenBLAS (0.3.21 with AVX2 or AVX-512), a stack, and
// what oneDNN packs in one call.
constexpr std::size_t per_thread = (128 + 8 + 24) * mib;
// For code that oneDNN generates, other threads, and the first tensors.
constexpr std::size_t for_all = 2 * addresses_for_libraries;

void require_addresses(std::size_t threads) {
  const auto needed = threads * per_thread + for_all;
  if (addresses_left(needed))
    return;
  const auto bound = tightest_bound();
  throw error(errc::out_of_memory,
              "the limit of " + std::to_string(bound.limit / mib) + " MiB of "
                + bound.name + " leaves " + std::to_string(bound.rest / mib)
                + " MiB, but libraries and tensors need "
                + std::to_string(needed / mib) + " MiB with "
                + std::to_string(threads) + " threads");
}

void take_blas_buffers(std::size_t threads) {
  if (!blas_memory_alloc || !blas_memory_free)
    return;
  std::vector<void*> held;
  held.reserve(threads);
  while (held.size() < threads)
    held.push_back(blas_memory_alloc(0));
  for (auto* buffer : held)
    blas_memory_free(buffer);
}

// oneDNN generates the code of all its products in the first call.
void make_product_code() {
  std::array<float, 4> a{}, b{}, c{};
  dnnl_sgemm('N', 'N', 2, 2, 2, 1.0f, a.data(), 2, b.data(), 2, 0.0f, c.data(),
             2);
}

} // namespace

void take_library_memory(std::size_t threads) {
  if (address_limit() == SIZE_MAX)
    return;
  static std::mutex taking;
  static std::size_t taken = 0; // for how many threads
  std::lock_guard guard{taking};
  if (threads <= taken)
    return;
  require_addresses(threads - taken);
  cpu::ensure_single_threaded();
  take_blas_buffers(threads);
  make_product_code();
  taken = threads;
}

} // namespace troupe
