// SPDX-License-Identifier: Apache-2.0
//
// Counts what repeated calls take from the heap. This executable has its own
// operator new.
#include "values.hpp"

#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/kernels/device.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;

namespace {

std::atomic<std::size_t> allocations{0};
std::atomic<std::int64_t> live{0}; // not freed

void* take(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  ++live;
  const auto rounded = (bytes / alignment + 1) * alignment;
  if (void* taken = std::aligned_alloc(alignment, rounded))
    return taken;
  throw std::bad_alloc{};
}

void give_back(void* data) noexcept {
  live -= data != nullptr;
  std::free(data);
}

} // namespace

void* operator new(std::size_t bytes) {
  return take(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* data) noexcept {
  give_back(data);
}
void operator delete(void* data, std::size_t) noexcept {
  give_back(data);
}
void operator delete(void* data, std::align_val_t) noexcept {
  give_back(data);
}
void operator delete(void* data, std::size_t, std::align_val_t) noexcept {
  give_back(data);
}

TEST_SUITE("comm.allocation") {

namespace {

struct ignored final : completion {
  void completed(std::exception_ptr) noexcept override {}
};

/// Buckets of two variables on three ranks.
class three_ranks {
public:
  three_ranks() {
    for (std::size_t r = 0; r < 3; ++r) {
      on_.push_back(
        devices_.emplace_back(make_cpu_device(static_cast<int>(r))).get());
      for (std::size_t i = 0; i < 2; ++i)
        given_[r][i] = random_tensor({1000}, dtype::float32, unsigned(r));
    }
    ranks_ = make_local_group(on_);
  }

  /// Each rank makes two calls; `first` is ahead of the others.
  void run(collective_kind kind, std::size_t first) {
    for (std::size_t call = 0; call < 2; ++call)
      start(first, kind, call);
    for (std::size_t call = 0; call < 2; ++call)
      for (std::size_t r = 0; r < 3; ++r)
        if (r != first)
          start(r, kind, call);
  }

private:
  void start(std::size_t rank, collective_kind kind, std::size_t call) {
    auto& values = values_[call][rank];
    for (std::size_t i = 0; i < 2; ++i) {
      auto& v = vars_[call][rank][i];
      v.set(given_[rank][i]);
      values[i] = {"a variable with a name that is long", &v, &v};
    }
    ranks_[rank]->start(
      {kind, kind == collective_kind::all_reduce ? 0u : 1u, values}, nobody_);
  }

  ignored nobody_;
  std::vector<std::unique_ptr<device>> devices_;
  std::vector<device*> on_;
  std::vector<std::unique_ptr<communicator>> ranks_;
  tensor given_[3][2];
  variable vars_[2][3][2];
  rank_value values_[2][3][2];
};

} // namespace

TEST_CASE("calls that repeat take nothing from the heap") {
  for (auto kind : {collective_kind::all_reduce, collective_kind::reduce,
                    collective_kind::broadcast}) {
    CAPTURE(std::string{to_string(kind)});
    three_ranks ranks;
    for (std::size_t first = 0; first < 3; ++first)
      ranks.run(kind, first);
    const auto before = allocations.load();
    CHECK(before > 0);
    for (std::size_t i = 0; i < 30; ++i)
      ranks.run(kind, i % 3);
    CHECK(allocations == before);
  }
}

TEST_CASE("calls that fail leave nothing behind") {
  for (const int round : {0, 1, 2}) {
    CAPTURE(round);
    std::unique_ptr<device> devices[] = {make_cpu_device(0), make_cpu_device(1),
                                         make_cpu_device(2)};
    device* on[] = {devices[0].get(), devices[1].get(), devices[2].get()};
    ignored nobody; // outlives the ranks, which have pending calls
    const auto ranks = make_local_group(on);
    const auto start = [&](std::size_t rank) {
      try {
        ranks[rank]->start({}, nobody);
      } catch (const error&) {
        // as it must
      }
    };
    start(0);
    if (round == 2)
      start(2);
    if (round > 0)
      ranks[1]->leave({errc::cancelled, "no more"});
    std::int64_t after_warm_up = 0;
    for (int i = 0; i < 200; ++i) {
      ranks[1]->fail({errc::not_finite, "a NaN"}); // nothing if it has left
      start(2);
      start(0);
      if (i == 10)
        after_warm_up = live;
    }
    CHECK(live == after_warm_up);
  }
}

} // TEST_SUITE("comm.allocation")
