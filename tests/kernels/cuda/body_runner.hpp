// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/random.hpp>
#include <troupe/kernels/cuda/bodies/all.hpp>
#include <troupe/kernels/cuda/driver.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

namespace troupe::test {

/// Runs the body of a kernel on the CPU, with a copy of its arguments. `draw`
/// decides the order of threads within a block.
using body_runner = void (*)(const cuda::launch_shape&, const void*,
                             splitmix64&);

template <class Body>
void run_block(cuda::place at, const typename Body::arguments& a,
               std::vector<std::uint32_t>& order, splitmix64& draw) {
  typename Body::shared shared;
  std::memset(static_cast<void*>(&shared), 0xff, sizeof shared);
  for (int phase = 0; phase < Body::phases; ++phase) {
    std::shuffle(order.begin(), order.end(), draw);
    for (auto thread : order) {
      at.thread = thread;
      Body::run(at, a, shared, phase);
    }
  }
}

template <class Body>
void run_body(const cuda::launch_shape& shape, const void* arguments,
              splitmix64& draw) {
  typename Body::arguments a;
  std::memcpy(static_cast<void*>(&a), arguments, sizeof a);
  std::vector<std::uint32_t> order(shape.threads);
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t block = 0; block < shape.blocks; ++block)
    run_block<Body>({block, 0, shape.blocks, shape.threads}, a, order, draw);
}

template <class Body>
struct runner_of {
  static constexpr body_runner value = &run_body<Body>;
};

/// By the kernel's number.
inline constexpr auto body_runners = cuda::all_bodies::table<runner_of>();

} // namespace troupe::test
