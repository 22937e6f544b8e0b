// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/gloo_group.hpp"
#include "engine/host_groups.hpp"
#include "engine/memory_engine.hpp"
#include "values.hpp"

#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/shm/join.hpp>
#include <troupe/kernels/device.hpp>

#include <support/caught.hpp>

#include <atomic>
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

// Kinds of groups. If all ranks are in this process, a call has ended when the
// last rank has made it: `is_immediate`. Random cases try `seeds` seeds. If
// not `adds_in_rank_order`, only sums without rounding have known bits.

/// Ranks of one process.
struct local_ranks {
  static constexpr unsigned seeds = 60;
  static constexpr bool is_immediate = true;
  static constexpr bool adds_in_rank_order = true;
  static ends_of_group make(std::span<device* const> on,
                            const local_group_options& options = {}) {
    return make_local_group(on, options);
  }
};

/// Ranks that could be in several processes but are in one.
struct shm_ranks {
  static constexpr unsigned seeds = 60;
  static constexpr bool is_immediate = true;
  static constexpr bool adds_in_rank_order = true;
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
  static constexpr unsigned seeds = 60;
  static constexpr bool is_immediate = false;
  static constexpr bool adds_in_rank_order = true;
  static ends_of_group make(std::span<device* const> on) {
    return join_as_processes(on.size());
  }
};

/// Two such processes, whose ranks take turns: each has ranks that wait for
/// each other.
struct shm_pair {
  static constexpr unsigned seeds = 60;
  static constexpr bool is_immediate = false;
  static constexpr bool adds_in_rank_order = true;
  static ends_of_group make(std::span<device* const> on) {
    if (on.size() < 2)
      return shm_ranks::make(on);
    const auto path = socket_path();
    return join_on_threads(2, on.size(), [&](std::size_t p) {
      shm_group_options own{.path = path, .process = p, .processes = 2};
      for (auto r = p; r < on.size(); r += 2)
        own.ranks.push_back(r);
      return join_shm_group(own);
    });
  }
};

/// Ranks of an engine's group in one process.
struct engine_ranks {
  static constexpr unsigned seeds = 60;
  static constexpr bool is_immediate = true;
  static constexpr bool adds_in_rank_order = true;
  static ends_of_group make(std::span<device* const> on) {
    engine_group_options options;
    if (on.empty())
      options.ranks = {1}; // rank 0 is missing
    return join_over_memory(1, on.size(), 1, options);
  }
};

/// A process for each rank; they exchange messages in random order.
struct engine_processes {
  static constexpr unsigned seeds = 60;
  static constexpr bool is_immediate = false;
  static constexpr bool adds_in_rank_order = true;
  static ends_of_group make(std::span<device* const> on) {
    static std::atomic<unsigned> seed{1};
    return on.empty() ? engine_ranks::make(on)
                      : join_over_memory(on.size(), on.size(), seed++);
  }
};

/// Two processes, whose ranks take turns.
struct engine_pair {
  static constexpr unsigned seeds = 60;
  static constexpr bool is_immediate = false;
  static constexpr bool adds_in_rank_order = true;
  static ends_of_group make(std::span<device* const> on) {
    static std::atomic<unsigned> seed{1};
    return on.size() < 2 ? engine_ranks::make(on)
                         : join_over_memory(2, on.size(), seed++);
  }
};

/// The same over Gloo; over memory if this build has none.
struct gloo_processes {
  static constexpr unsigned seeds = 10; // connecting takes long
  static constexpr bool is_immediate = false;
  static constexpr bool adds_in_rank_order = true;
  static ends_of_group make(std::span<device* const> on) {
    return on.empty() || !gloo_support().is_built
             ? engine_processes::make(on)
             : join_over_gloo(on.size(), on.size());
  }
};

/// Processes on two hosts, one for each rank. Neighbours in numbers are on
/// different hosts.
inline host_map on_two_hosts(std::size_t processes) {
  host_map hosts;
  for (std::size_t p = 0; p < processes; ++p)
    hosts.push_back(p % 2);
  return hosts;
}

struct host_processes {
  static constexpr unsigned seeds = 60;
  static constexpr bool is_immediate = false;
  static constexpr bool adds_in_rank_order = false;
  static ends_of_group make(std::span<device* const> on) {
    static std::atomic<unsigned> seed{1};
    return on.empty()
             ? engine_ranks::make(on)
             : join_on_hosts(on_two_hosts(on.size()), on.size(), seed++);
  }
};

/// The same over Gloo; over memory if this build has none.
struct gloo_hosts {
  static constexpr unsigned seeds = 10; // connecting takes long
  static constexpr bool is_immediate = false;
  static constexpr bool adds_in_rank_order = false;
  static ends_of_group make(std::span<device* const> on) {
    return on.empty() || !gloo_support().is_built
             ? host_processes::make(on)
             : join_on_hosts_over_gloo(on_two_hosts(on.size()), on.size());
  }
};

/// Processes that an engine connects, all on one host.
struct one_host_processes {
  static constexpr unsigned seeds = 60;
  static constexpr bool is_immediate = false;
  static constexpr bool adds_in_rank_order = true;
  static ends_of_group make(std::span<device* const> on) {
    static std::atomic<unsigned> seed{1};
    return on.empty() ? engine_ranks::make(on)
                      : join_on_hosts(host_map(on.size()), on.size(), seed++);
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

  /// Waits for the end of the rank's call, which is pending. In an immediate
  /// group it has ended.
  outcome& end_of(std::size_t rank) {
    if constexpr (!Group::is_immediate)
      ends[rank].wait();
    return ends[rank];
  }
  /// The error that a call of the rank ends with.
  error failure_of(std::size_t rank, const collective_call& made) {
    return caught([&] {
      outcome end;
      if (ranks[rank]->start(made, end).state == launch_status::done)
        return;
      if (Group::is_immediate)
        return; // is reported as no error
      end.wait();
      if (const auto why = end.failure())
        throw error{*why};
    });
  }
  error failure_of(std::size_t rank) { return failure_of(rank, call(rank)); }
  /// All ranks make the next call, which succeeds.
  void run_all() {
    std::vector<bool> pending;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ends[r].forget();
      pending.push_back(start(r).state == launch_status::pending);
    }
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (pending[r]) {
        CHECK(end_of(r).times() == 1);
        CHECK(!ends[r].failure());
      }
  }
};

inline const error broken{
  errc::not_finite, "a NaN", {.op = "mul", .device = "cpu:1"}};

inline void check(const error& e, errc code, const char* message) {
  CHECK(e.code() == code);
  CHECK(e.message() == message);
}

} // namespace comm_test
