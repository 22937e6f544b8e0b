// SPDX-License-Identifier: Apache-2.0

// What only groups in shared memory have. communicator_test.cpp tests the rest.
#include "../group_rig.hpp"
#include "../layouts.hpp"
#include "../values.hpp"

#include <troupe/comm/local/group_merge.hpp>
#include <troupe/comm/shm/join.hpp>
#include <troupe/kernels/device.hpp>

#include <support/caught.hpp>
#include <support/child_process.hpp>

#include <doctest/doctest.h>

#include <signal.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using namespace std::chrono_literals;
using troupe::test::caught;
using troupe::test::exit_code;
using troupe::test::in_child;
using troupe::test::says;

TEST_SUITE("comm.shm.shm_group") {

namespace {

/// How a call ended.
class waited_call final : public completion {
public:
  void completed(std::exception_ptr failure) noexcept override {
    failure_ = failure;
    told_ = true;
  }
  bool told() const { return told_; }
  /// Returns after the call has ended. Throws what it failed with.
  void wait(communicator& at, launch_result started) {
    if (started.state == launch_status::pending)
      while (!told_) {
        at.progress();
        std::this_thread::yield();
      }
    if (failure_)
      std::rethrow_exception(failure_);
  }

private:
  std::exception_ptr failure_;
  std::atomic<bool> told_{false};
};

void all_reduce(communicator& at, variable& x) {
  waited_call end;
  const rank_value value{"x", &x, &x};
  end.wait(at, at.start({collective_kind::all_reduce, 0, {&value, 1}}, end));
}

/// Calls `act(rank)` on a thread for each rank.
void on_threads(std::size_t ranks,
                const std::function<void(std::size_t)>& act) {
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { act(r); });
}

tensor filled(arena& memory, std::int64_t elements, float value) {
  auto made = tensor::make(memory, {elements}, dtype::float32);
  for (auto& v : made.values<float>())
    v = value;
  return made;
}

} // namespace

TEST_CASE("values in the group's memory are merged where they lie") {
  const auto ends = join_as_processes(2);
  on_threads(2, [&](std::size_t r) {
    variable x;
    x.set(filled(*ends[r]->memory(), 1000, float(r + 1)));
    const auto* data = x.as_tensor().raw();
    all_reduce(*ends[r], x);
    CHECK(x.as_tensor().raw() == data);
    CHECK(get(x.as_tensor(), 999) == 3);
  });
}

TEST_CASE("values elsewhere, and values that others use, stay as they are") {
  const auto ends = join_as_processes(2);
  arena own{make_host_memory_source()};
  for (const bool shared : {false, true})
    on_threads(2, [&](std::size_t r) {
      const auto given = filled(shared ? *ends[r]->memory() : own, 10, 1);
      variable x;
      x.set(shared ? given.share() : given);
      all_reduce(*ends[r], x);
      CHECK(get(x.as_tensor(), 9) == 2);
      CHECK(get(given, 9) == 1);
    });
}

TEST_CASE("large sums have the bits of one process, whoever adds the parts") {
  constexpr std::size_t ranks = 3;
  const shape dims{1 << 20, 1};
  for (const auto type : {dtype::float32, dtype::bfloat16}) {
    std::vector<variable> expected(ranks);
    std::vector<std::unique_ptr<device>> devices;
    std::vector<device*> on;
    std::vector<rank_value> values;
    for (std::size_t r = 0; r < ranks; ++r) {
      on.push_back(devices.emplace_back(make_cpu_device(int(r))).get());
      expected[r].set(random_tensor(dims, type, unsigned(r)));
      values.push_back({"x", &expected[r], &expected[r]});
    }
    local::group_merge{on, {}}.run(collective_kind::all_reduce, 0, values);
    const auto ends = join_as_processes(ranks);
    on_threads(ranks, [&](std::size_t r) {
      for (int round = 0; round < 5; ++round) {
        variable x;
        x.set(random_tensor(dims, type, unsigned(r)));
        all_reduce(*ends[r], x);
        CHECK(same_bits(x.as_tensor(), expected[r].as_tensor()));
      }
    });
  }
}

TEST_CASE("equal layouts are kept, different ones become plain") {
  const auto ends = join_as_processes(3);
  for (const std::size_t odd : {3, 0, 1, 2}) // 3: no rank
    on_threads(3, [&](std::size_t r) {
      auto x = counted(*ends[r]->memory(), r != odd);
      all_reduce(*ends[r], x);
      const auto& sum = x.as_tensor();
      CHECK(sum.is_plain() == (odd != 3));
      for (int i = 0; i < 6; ++i) {
        const auto moved = float(i % 3 * 2 + i / 3);
        CHECK(sum.data<float>()[i]
              == (odd == 3 ? 3 * float(i) : 2 * moved + float(i)));
      }
    });
}

TEST_CASE("a rank without a value gets a plain result") {
  const auto ends = join_as_processes(3);
  for (const std::size_t idle : {0, 1, 2})
    on_threads(3, [&](std::size_t r) {
      variable x;
      if (r != idle)
        x = counted(*ends[r]->memory(), true);
      all_reduce(*ends[r], x);
      CHECK(x.as_tensor().is_plain());
      CHECK(x.as_tensor().dims() == shape{2, 3});
      CHECK(get(x.as_tensor(), 1) == 2 * 2);
    });
}

TEST_CASE("a rank that is many calls ahead waits for a free slot") {
  constexpr std::size_t calls = 500;
  const auto ends = join_as_processes(2);
  std::vector<variable> x(calls);
  std::vector<waited_call> told(calls);
  std::vector<rank_value> values(calls);
  for (std::size_t c = 0; c < calls; ++c) {
    x[c].set(filled(*ends[0]->memory(), 5, float(c)));
    values[c] = {"x", &x[c], &x[c]};
    const auto result = ends[0]->start(
      {collective_kind::all_reduce, 0, {&values[c], 1}}, told[c]);
    CHECK(result.state == launch_status::pending);
    CHECK(result.position == c + 1);
  }
  for (std::size_t c = 0; c < calls; ++c) {
    variable other;
    other.set(filled(*ends[1]->memory(), 5, 1));
    all_reduce(*ends[1], other);
    CHECK(get(other.as_tensor(), 0) == double(c + 1));
  }
  for (auto& t : told)
    while (!t.told()) // by the group's own thread
      std::this_thread::yield();
  CHECK(get(x.back().as_tensor(), 4) == calls);
}

TEST_CASE("a call ends without anybody who calls progress") {
  const auto ends = join_as_processes(2);
  for (int round = 0; round < 200; ++round) {
    variable x[2];
    waited_call told[2];
    rank_value values[2];
    for (std::size_t r : {0, 1}) {
      x[r].set(filled(*ends[r]->memory(), 1 << 18, 1));
      values[r] = {"x", &x[r], &x[r]};
    }
    bool pending[2];
    for (std::size_t r : {0, 1})
      pending[r] =
        ends[r]
          ->start({collective_kind::all_reduce, 0, {&values[r], 1}}, told[r])
          .state
        == launch_status::pending;
    for (std::size_t r : {0, 1})
      while (pending[r] && !told[r].told())
        std::this_thread::sleep_for(10us);
    CHECK(get(x[0].as_tensor(), 0) == 2);
  }
}

TEST_CASE("a thread that stops looking sees what came meanwhile") {
  const auto ends = join_as_processes(2);
  for (int round = 0; round < 100; ++round) {
    variable x[2];
    waited_call told[2];
    rank_value values[2];
    const auto start = [&](std::size_t r) {
      x[r].set(filled(*ends[r]->memory(), 10, 1));
      values[r] = {"x", &x[r], &x[r]};
      return ends[r]
        ->start({collective_kind::all_reduce, 0, {&values[r], 1}}, told[r])
        .state;
    };
    CHECK(start(0) == launch_status::pending);
    ends[0]->begin_looking();
    CHECK(start(1) == launch_status::done); // rings no bell
    ends[0]->end_looking();
    CHECK(told[0].told());
  }
}

TEST_CASE("of several ranks that have left, the first one is named") {
  const auto ends = join_as_processes(3);
  ends[2]->leave({errc::peer_failure, "process 2 is lost"});
  ends[0]->leave({errc::peer_failure, "process 0 follows"});
  variable x;
  x.set(filled(*ends[1]->memory(), 5, 1));
  CHECK(says(caught([&] { all_reduce(*ends[1], x); }),
             "rank 2 has left the group: process 2 is lost"));
}

TEST_CASE("real processes merge, and name the one that leaves") {
  const auto path = socket_path();
  const auto child = in_child([&] {
    auto end = join_shm_group({.path = path, .process = 1, .processes = 2});
    for (int step = 1; step <= 100; ++step) {
      variable x;
      x.set(filled(*end.front()->memory(), 100'000, float(step)));
      all_reduce(*end.front(), x);
      if (get(x.as_tensor(), 99'999) != 2 * step)
        throw std::runtime_error("a wrong sum");
    }
  });
  const auto end = join_shm_group({.path = path, .processes = 2});
  for (int step = 1; step <= 100; ++step) {
    variable x;
    x.set(filled(*end.front()->memory(), 100'000, float(step)));
    all_reduce(*end.front(), x);
    CHECK(get(x.as_tensor(), 0) == 2 * step);
  }
  CHECK(exit_code(child) == 0);
  variable x;
  x.set(filled(*end.front()->memory(), 5, 1));
  const auto e = caught([&] { all_reduce(*end.front(), x); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "rank 1 has left the group: its communicator is gone"));
}

TEST_CASE("a process that is killed leaves the others able to leave") {
  for (int round = 0; round < 10; ++round) {
    const auto path = socket_path();
    const auto child = in_child([&] {
      auto end = join_shm_group({.path = path, .process = 1, .processes = 2});
      for (;;) {
        variable x;
        x.set(filled(*end.front()->memory(), 1 << 18, 1));
        all_reduce(*end.front(), x);
      }
    });
    const auto end = join_shm_group({.path = path, .processes = 2});
    std::jthread killer{[&] {
      std::this_thread::sleep_for(20ms);
      ::kill(child, SIGKILL);
      CHECK(exit_code(child) == -1);
      // Whoever watches the process does this.
      end.front()->leave({errc::peer_failure, "process 1 was killed"});
    }};
    const auto e = caught([&] {
      for (;;) {
        variable x;
        x.set(filled(*end.front()->memory(), 1 << 18, 1));
        all_reduce(*end.front(), x);
      }
    });
    CHECK(e.code() == errc::peer_failure);
  }
}

TEST_CASE("a call that only a dead process could end fails when the rank "
          "leaves") {
  const auto path = socket_path();
  const troupe::test::pipe_pair started;
  const auto broadcast = [](communicator& at, const rank_value& value,
                            completion& whole) {
    return at.start({collective_kind::broadcast, 0, {&value, 1}}, whole).state;
  };
  const auto child = in_child([&] {
    auto end = join_shm_group({.path = path, .process = 1, .processes = 2});
    variable x;
    waited_call told;
    const rank_value value{"x", &x, &x};
    broadcast(*end.front(), value, told);
    started.put('s');
    for (;;)
      ::pause();
  });
  const auto end = join_shm_group({.path = path, .processes = 2});
  started.get<char>();
  ::kill(child, SIGKILL);
  CHECK(exit_code(child) == -1);
  variable x;
  x.set(filled(*end.front()->memory(), 5, 1));
  waited_call told;
  const rank_value value{"x", &x, &x};
  CHECK(broadcast(*end.front(), value, told) == launch_status::pending);
  end.front()->leave({errc::peer_failure, "process 1 was killed"});
  REQUIRE(told.told());
  CHECK(says(caught([&] { told.wait(*end.front(), {}); }), "does not end"));
}

// A thread that works on a rank's calls can meet a call that another thread has
// just added, be the one that makes it last, and must then see to the other
// ranks of its process: nobody else tells them.
TEST_CASE("ranks of a process get all results while no thread looks") {
  constexpr std::size_t ranks = 4;
  const auto path = socket_path();
  const auto ends = join_on_threads(2, ranks, [&](std::size_t p) {
    return join_shm_group({.path = path,
                           .process = p,
                           .processes = 2,
                           .ranks = {2 * p, 2 * p + 1}});
  });
  on_threads(ranks, [&](std::size_t r) {
    variable x;
    for (std::size_t call = 0; call < 20'000; ++call) {
      const auto root = call % ranks;
      x.set(filled(*ends[r]->memory(), 16, float(call + r)));
      const rank_value value{"x", &x, &x};
      outcome end;
      if (ends[r]
            ->start({collective_kind::broadcast, root, {&value, 1}}, end)
            .state
          == launch_status::pending)
        end.wait(); // asleep
      REQUIRE(get(x.as_tensor(), 15) == float(call + root));
    }
  });
}

} // TEST_SUITE("comm.shm.shm_group")
