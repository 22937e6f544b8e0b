// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bodies of kernels are compiled twice: by nvcc for GPUs, and by the C++
// compiler for tests without one. So these headers use only what both have.

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define TROUPE_BODY __host__ __device__ inline
#else
#define TROUPE_BODY inline
#endif

namespace troupe::cuda {

/// Which thread of which block runs the body.
struct place {
  std::uint32_t block = 0;
  std::uint32_t thread = 0; ///< in its block
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1; ///< per block

  /// Number of the thread among all threads.
  TROUPE_BODY std::int64_t index() const {
    return std::int64_t{block} * threads + thread;
  }
  /// Number of all threads.
  TROUPE_BODY std::int64_t count() const {
    return std::int64_t{blocks} * threads;
  }
};

/// The most threads per block that a body with shared memory is written for.
constexpr std::uint32_t most_threads = 256;

/// For bodies whose threads share nothing.
struct nothing_shared {};

// A body is a type with
//   struct arguments     what the kernel is given; copied to the GPU
//   struct shared        memory that the threads of a block share
//   phases               how often the body runs for each thread
//   name                 for errors
//   static run(place, const arguments&, shared&, int phase)
// All threads of a block end a phase before one of them begins the next. Within
// a phase, threads run in any order, or at the same time.

/// Whether a kernel met bad values, in pinned memory. Bodies note them; the
/// host looks when work that it waits for is complete.
struct fault_report {
  enum kind : std::uint32_t { none, bad_label, bad_index };
  std::uint32_t what = none;
  std::int64_t value = 0;
  std::int64_t limit = 0;

  /// `what` is written last, so that the host sees what belongs to it.
  TROUPE_BODY void note(kind found, std::int64_t of_value,
                        std::int64_t of_limit) {
    value = of_value;
    limit = of_limit;
#ifdef __CUDA_ARCH__
    __threadfence_system();
    *const_cast<volatile std::uint32_t*>(&what) = found;
#else
    __atomic_store_n(&what, std::uint32_t{found}, __ATOMIC_RELEASE);
#endif
  }
};

} // namespace troupe::cuda
