// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/machine_roofline.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/threads.hpp>
#include <troupe/kernels/cpu/product/gemm.hpp>

#include <algorithm>
#include <barrier>
#include <exception>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace troupe::apps {

namespace {

constexpr std::size_t rounds = 16;

/// Seconds of one thread in each round.
using round_times = std::vector<double>;

/// Each thread calls `work` with its number, once per round. All threads begin
/// a round together. Returns the times of each thread. A thread that has thrown
/// stays in the rounds, because the others wait for it; its exception is
/// rethrown when all threads have ended.
std::vector<round_times>
run_rounds(std::size_t threads, const std::function<void(std::size_t)>& work) {
  std::vector<round_times> times(threads, round_times(rounds));
  std::vector<std::exception_ptr> failures(threads);
  std::barrier together(static_cast<std::ptrdiff_t>(threads));
  auto run = [&](std::size_t thread) {
    for (double& seconds : times[thread]) {
      together.arrive_and_wait();
      const auto start = now_ns();
      try {
        work(thread);
      } catch (...) {
        failures[thread] = std::current_exception();
      }
      seconds = static_cast<double>(now_ns() - start) * 1e-9;
    }
  };
  std::vector<std::jthread> others;
  try {
    for (std::size_t thread = 1; thread < threads; ++thread)
      others.push_back(
        start_thread<std::jthread>("troupe-roofline", run, thread));
  } catch (...) {
    // The running threads must not wait for this one and for those that could
    // not be started.
    for (auto missing = threads - others.size(); missing > 0; --missing)
      together.arrive_and_drop();
    throw;
  }
  run(0);
  others.clear(); // joins them
  for (const auto& failure : failures)
    if (failure)
      std::rethrow_exception(failure);
  return times;
}

/// Adds up the best round of each thread, because cores that compute hardly
/// affect each other. On a busy machine there is hardly a round in which all
/// threads are at their best.
double measure_flops_per_s(std::size_t threads) {
  constexpr std::int64_t n = 1024;
  struct operands {
    std::vector<float> a, b, c;
  };
  std::vector<operands> of(threads, {std::vector<float>(n * n, 1),
                                     std::vector<float>(n * n, 1),
                                     std::vector<float>(n * n)});
  const auto times = run_rounds(threads, [&](std::size_t thread) {
    auto& [a, b, c] = of[thread];
    cpu::gemm(n, n, n, {a.data(), n}, {b.data(), n}, 0, c.data(), n);
  });
  double sum = 0;
  for (const auto& of_thread : times)
    sum += 2.0 * n * n * n / std::ranges::min(of_thread);
  return sum;
}

/// Takes the best round of all threads together, because cores share the
/// memory.
double measure_bytes_per_s(std::size_t threads) {
  constexpr std::size_t elements = (64 << 20) / sizeof(float);
  std::vector<float> a(elements), b(elements, 1), c(elements, 2);
  const auto times = run_rounds(threads, [&](std::size_t thread) {
    const auto end = elements * (thread + 1) / threads;
    for (auto i = elements * thread / threads; i < end; ++i)
      a[i] = b[i] + c[i] * 3;
  });
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t round = 0; round < rounds; ++round) {
    double longest = 0;
    for (const auto& of_thread : times)
      longest = std::max(longest, of_thread[round]);
    best = std::min(best, longest);
  }
  return 3.0 * sizeof(float) * elements / best;
}

} // namespace

graph::roofline measure_roofline(int threads) {
  if (threads < 1)
    throw error(errc::invalid_argument,
                "a roofline of " + std::to_string(threads) + " threads");
  const auto count = static_cast<std::size_t>(threads);
  return {.flops_per_s = measure_flops_per_s(count),
          .bytes_per_s = measure_bytes_per_s(count)};
}

} // namespace troupe::apps
