// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "values.hpp"

#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/shm/join.hpp>
#include <troupe/kernels/device.hpp>

#include <support/caught.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace comm_test {

using namespace troupe::comm;
using troupe::test::caught;

/// How a call ended.
class outcome final : public completion {
public:
  void completed(std::exception_ptr failure) noexcept override {
    std::lock_guard guard{mutex_};
    ++times_;
    failure_ = failure;
    told_.notify_all();
  }

  void wait() {
    std::unique_lock lock{mutex_};
    told_.wait(lock, [this] { return times_ > 0; });
  }
  int times() {
    std::lock_guard guard{mutex_};
    return times_;
  }
  /// The error that it failed with, if it has failed.
  std::optional<error> failure() {
    std::lock_guard guard{mutex_};
    if (!failure_)
      return std::nullopt;
    return caught([this] { std::rethrow_exception(failure_); });
  }
  void forget() {
    std::lock_guard guard{mutex_};
    times_ = 0;
    failure_ = nullptr;
  }

private:
  std::mutex mutex_;
  std::condition_variable told_;
  int times_ = 0;
  std::exception_ptr failure_;
};

using ends_of_group = std::vector<std::unique_ptr<communicator>>;

/// Ranks of one process.
struct local_ranks {
  static ends_of_group make(std::span<device* const> on,
                            const local_group_options& options = {}) {
    return make_local_group(on, options);
  }
};

/// Ranks that could be in several processes but are in one.
struct shm_ranks {
  static ends_of_group make(std::span<device* const> on) {
    std::vector<std::size_t> ranks(on.size());
    std::iota(ranks.begin(), ranks.end(), std::size_t{0});
    if (ranks.empty())
      ranks = {1}; // rank 0 is missing
    return join_shm_group({.path = socket_path(), .ranks = ranks});
  }
};

/// The ends of a group with one rank per process. The processes are in this
/// one, but have mappings and a thread of their own.
inline ends_of_group join_as_processes(std::size_t count) {
  ends_of_group ends(count);
  const auto path = socket_path();
  std::vector<std::jthread> threads;
  for (std::size_t p = 0; p < count; ++p)
    threads.emplace_back([&, p] {
      ends[p] = std::move(
        join_shm_group({.path = path, .process = p, .processes = count})
          .front());
    });
  threads.clear(); // joins them
  return ends;
}

struct shm_processes {
  static ends_of_group make(std::span<device* const> on) {
    return join_as_processes(on.size());
  }
};

/// A group of one of the kinds above, and a variable "x" of each rank.
template <class Group>
struct rig {
  std::vector<std::unique_ptr<device>> devices;
  std::vector<variable> x;
  std::vector<rank_value> values;
  std::vector<outcome> ends;
  // Goes first: it tells the ends of calls that are pending.
  ends_of_group ranks;

  template <class... Options>
  explicit rig(std::size_t size, const Options&... options)
    : x(size), values(size), ends(size) {
    std::vector<device*> on;
    for (std::size_t r = 0; r < size; ++r)
      on.push_back(
        devices.emplace_back(make_cpu_device(static_cast<int>(r))).get());
    ranks = Group::make(on, options...);
    for (std::size_t r = 0; r < size; ++r)
      values[r] = {"x", &x[r], &x[r]};
  }

  void put(std::size_t rank, double value, std::int64_t elements = 4) {
    auto t = tensor::make(devices[rank]->memory(), {elements}, dtype::float32);
    for (std::size_t i = 0; i < std::size_t(elements); ++i)
      set(t, i, value);
    x[rank].set(std::move(t));
  }
  double got(std::size_t rank) { return get(x[rank].as_tensor(), 0); }

  collective_call call(std::size_t rank) {
    return {collective_kind::all_reduce, 0, {&values[rank], 1}};
  }
  launch_result start(std::size_t rank) {
    return ranks[rank]->start(call(rank), ends[rank]);
  }
};

inline const error broken{
  errc::not_finite, "a NaN", {.op = "mul", .device = "cpu:1"}};

inline void check(const error& e, errc code, const char* message) {
  CHECK(e.code() == code);
  CHECK(e.message() == message);
}

} // namespace comm_test
