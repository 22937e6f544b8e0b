// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/part_runner.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <latch>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace troupe::test {

/// Runs parts on `width` threads at the same time, dealt out in an order that
/// the seed and the number of earlier runs give. Parts do not throw.
class scrambled_parts final : public part_runner {
public:
  scrambled_parts(std::size_t width, unsigned seed)
    : width_(width), seed_(seed) {}

  void run(std::size_t parts, const part_function& part) override {
    note(parts);
    const auto order = scrambled(parts);
    const auto hands = std::min(width_, parts);
    std::latch all_there(static_cast<std::ptrdiff_t>(hands));
    const auto work = [&](std::size_t hand) {
      all_there.arrive_and_wait(); // so that parts do meet
      for (std::size_t i = hand; i < parts; i += hands)
        part(order[i]);
    };
    std::vector<std::jthread> others;
    for (std::size_t hand = 1; hand < hands; ++hand)
      others.emplace_back(work, hand);
    work(0);
  }

  /// The most parts that one piece of work had; 0: nobody asked.
  std::size_t most_parts() const noexcept { return most_parts_; }

private:
  void note(std::size_t parts) {
    auto most = most_parts_.load();
    while (most < parts && !most_parts_.compare_exchange_weak(most, parts)) {
    }
  }

  std::vector<std::size_t> scrambled(std::size_t parts) {
    std::vector<std::size_t> order(parts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::minstd_rand(seed_ + runs_++));
    return order;
  }

  std::size_t width_;
  unsigned seed_;
  std::atomic<unsigned> runs_{0};
  std::atomic<std::size_t> most_parts_{0};
};

} // namespace troupe::test
