// SPDX-License-Identifier: Apache-2.0

// Groups over MPI. mpirun starts several processes of this program; all of them
// run the same cases in step.
#include "../group_rig.hpp"
#include "../values.hpp"
#include "seen_beats.hpp"
#include "shared_calls.hpp"

#include <troupe/comm/engine/join.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using troupe::test::caught;
using troupe::test::says;

TEST_SUITE("comm.engine.mpi") {

namespace {

/// This process's ends; rank r is in process r modulo the number of
/// processes.
ends_of_group join(std::size_t ranks_per_process) {
  const auto mpi = mpi_support();
  engine_group_options options;
  options.piece_bytes = 64 << 10;
  for (std::size_t i = 0; i < ranks_per_process; ++i)
    options.ranks.push_back(mpi.process + i * mpi.processes);
  return join_mpi_group(options);
}

variable four(float value) {
  variable made;
  made.set(tensor::make(host(), {4}, dtype::float32));
  for (auto& v : made.as_tensor().values<float>())
    v = value;
  return made;
}

/// The error of a rank's next call.
error failure_of_call(communicator& at, const char* name = "x") {
  auto x = four(1);
  const rank_value value{name, &x, &x};
  return caught([&] {
    run(at, {collective_kind::all_reduce, 0, {&value, 1}});
  });
}

/// What the process of rank 0 has said in its last beat.
std::uint64_t steps_of_first(const communicator& at) {
  for (auto& peer : at.peers())
    if (peer.ranks.front() == 0)
      return peer.steps;
  return 0;
}

void run_good_call(communicator& at) {
  auto x = four(1);
  all_reduce(at, x);
  CHECK(get(x.as_tensor(), 3) == double(at.size()));
}

} // namespace

TEST_CASE("values of all sizes have the bits of one process, over MPI") {
  for (std::size_t per_process = 1; per_process <= 2; ++per_process) {
    auto ends = join(per_process);
    const auto ranks = ends.front()->size();
    std::minstd_rand random{unsigned(per_process)};
    std::vector<shared_call> calls;
    for (int i = 0; i < 25; ++i)
      calls.push_back(random_call(ranks, random));
    std::vector<std::jthread> threads;
    for (auto& end : ends)
      threads.emplace_back([&] {
        const auto r = end->rank();
        for (auto& c : calls) {
          const rank_value value{"x", &c.given[r], &c.given[r]};
          run(*end, {c.kind, c.root, {&value, 1}});
          if (c.kind != collective_kind::reduce || r == c.root)
            CHECK(same_values(c.given[r], c.expected[r]));
        }
      });
  }
}

TEST_CASE("a failed rank, a mismatch and a call that is given up fail "
          "everywhere") {
  auto end = std::move(join(1).front());
  const bool is_last = end->rank() + 1 == end->size();
  const auto last = "rank " + std::to_string(end->size() - 1);
  for (int round = 0; round < 5; ++round) {
    if (is_last)
      end->fail(broken);
    else
      check(failure_of_call(*end), errc::not_finite,
            (last + " has failed: a NaN").c_str());
    run_good_call(*end);
    CHECK(failure_of_call(*end, is_last ? "y" : "x").code()
          == errc::order_mismatch);
    if (end->rank() == 0) { // the last rank makes this call afterwards
      auto x = four(1);
      const rank_value value{"x", &x, &x};
      outcome told;
      const auto at =
        end->start({collective_kind::all_reduce, 0, {&value, 1}}, told);
      end->give_up(at.position, at.position, broken);
      end->beat(std::uint64_t(round) + 1, "has given up");
      told.wait();
      REQUIRE(told.failure());
      CHECK(told.failure()->message() == "rank 0 has failed: a NaN");
    } else {
      while (is_last && steps_of_first(*end) <= std::uint64_t(round))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      check(failure_of_call(*end), errc::not_finite,
            "rank 0 has failed: a NaN");
    }
    run_good_call(*end);
  }
}

TEST_CASE("all processes see the beats of all others, over MPI") {
  auto end = std::move(join(1).front());
  end->beat(10 + end->rank(), "step of " + std::to_string(end->rank()));
  CHECK(sees_beats(*end, 1));
  const auto peers = end->peers();
  CHECK(peers.size() + 1 == end->size());
  for (auto& peer : peers) {
    const auto rank = peer.ranks.at(0);
    CHECK(rank != end->rank());
    CHECK(peer.beats == 1);
    CHECK(peer.steps == 10 + rank);
    CHECK(peer.doing == "step of " + std::to_string(rank));
  }
  run_good_call(*end); // nobody goes before
}

TEST_CASE("a rank that leaves is named, and its process can go") {
  auto end = std::move(join(1).front());
  run_good_call(*end);
  if (end->rank() == 0)
    return; // destroys its end
  const auto e = failure_of_call(*end);
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "has left the group: its communicator is gone"));
}

TEST_CASE("values that are on their way when a rank leaves arrive") {
  auto end = std::move(join(1).front());
  variable x;
  x.set(random_tensor({1 << 20}, dtype::float32, 1));
  const auto before = get(x.as_tensor(), 77);
  all_reduce(*end, x);
  CHECK(get(x.as_tensor(), 77)
        == doctest::Approx(before * double(end->size())));
}

} // TEST_SUITE("comm.engine.mpi")
