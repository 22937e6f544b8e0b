// SPDX-License-Identifier: Apache-2.0

// How ranks of an elastic job get to the same state, and back to it.

#include <support/caught.hpp>
#include <support/child_process.hpp>
#include <support/files.hpp>
#include <troupe/apps/elastic/parameter_backup.hpp>
#include <troupe/apps/elastic/state_exchange.hpp>
#include <troupe/comm/job_epoch.hpp>

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("apps.elastic.state_exchange") {

namespace {

/// A job of an epoch with two ranks.
struct job {
  temporary_folder at; // of mode 0700
  std::string folder = at.path().string();

  job() { comm::write_epoch(folder, {1, {0, 1}}); }

  comm::rank_environment rank(std::size_t member) const {
    return {.launcher = "troupe launch",
            .rank = member,
            .size = 2,
            .local_rank = member,
            .local_size = 2,
            .job = "test",
            .rendezvous = folder,
            .member = member};
  }
};

void set(scope& parameters, const std::string& name, float value) {
  arena memory{make_host_memory_source()};
  auto made = tensor::make(memory, {2}, dtype::float32);
  made.values<float>()[0] = made.values<float>()[1] = value;
  parameters.var(name).set(made);
}

float get(scope& parameters, const std::string& name) {
  auto& held = parameters.var(name);
  return held.is_tensor() && held.as_tensor()
           ? held.as_tensor().values<float>()[1]
           : -1;
}

/// Rank 1 in a child process, which ends with 0 if `act` returns true.
template <class Act>
pid_t second_rank(const job& of, Act act) {
  return in_child([&] {
    rank_part part{of.rank(1)};
    ::_exit(act(part) ? 0 : 1);
  });
}

} // namespace

TEST_CASE_FIXTURE(job, "a rank that is behind gets values, position and line") {
  const auto behind = second_rank(*this, [](rank_part& part) {
    scope parameters;
    set(parameters, "w", 1);
    set(parameters.replica(1), "w", 1);
    const auto now = *exchange_state(part, parameters, {{4, 0.5, 8}, "old\n"});
    return get(parameters, "w") == 7 && get(parameters, "late") == 3
           && parameters.replicas() == 0 && now.position.steps == 5
           && now.position.epoch_loss == 0.25
           && now.position.epoch_samples == 16 && now.last_line == "new\n";
  });
  rank_part part{rank(0)};
  scope parameters;
  set(parameters, "w", 7);
  set(parameters, "late", 3);
  parameters.var("empty");
  const auto now = *exchange_state(part, parameters, {{5, 0.25, 16}, "new\n"});
  CHECK(now.position.steps == 5);
  CHECK(get(parameters, "w") == 7);
  CHECK(exit_code(behind) == 0);
}

TEST_CASE_FIXTURE(job, "the first rank can be the one that is behind") {
  const auto ahead = second_rank(*this, [](rank_part& part) {
    scope parameters;
    set(parameters, "w", 9);
    return exchange_state(part, parameters, {{2, 0, 0}, ""})->position.steps
           == 2;
  });
  rank_part part{rank(0)};
  scope parameters;
  const auto now = *exchange_state(part, parameters, {});
  CHECK(now.position.steps == 2);
  CHECK(now.last_line.empty());
  CHECK(get(parameters, "w") == 9);
  CHECK(exit_code(ahead) == 0);
}

TEST_CASE_FIXTURE(job, "ranks at the same step keep what they have") {
  const auto other = second_rank(*this, [](rank_part& part) {
    scope parameters;
    set(parameters, "mean", 2); // a statistic
    exchange_state(part, parameters, {{3, 0, 0}, ""});
    return get(parameters, "mean") == 2;
  });
  rank_part part{rank(0)};
  scope parameters;
  set(parameters, "mean", 1);
  exchange_state(part, parameters, {{3, 0, 0}, ""});
  CHECK(get(parameters, "mean") == 1);
  CHECK(exit_code(other) == 0);
}

TEST_CASE_FIXTURE(job, "divided variables come from the ranks that have them") {
  const std::vector<std::string> divided{"m0", "m1", "w"};
  const auto other = second_rank(*this, [&](rank_part& part) {
    scope parameters;
    set(parameters, "w", 5);
    set(parameters, "m1", 1);
    parameters.var("m0");
    return exchange_state(part, parameters, {{3, 0, 0}, ""}, divided)
           && get(parameters, "m0") == 2 && get(parameters, "m1") == 1
           && get(parameters, "w") == 5;
  });
  rank_part part{rank(0)};
  scope parameters;
  set(parameters, "w", 6); // each keeps what it has
  set(parameters, "m0", 2);
  const auto now = exchange_state(part, parameters, {{3, 0, 0}, ""}, divided);
  REQUIRE(now);
  CHECK(now->position.steps == 3);
  CHECK(get(parameters, "m1") == 1);
  CHECK(get(parameters, "w") == 6);
  CHECK(exit_code(other) == 0);
}

TEST_CASE_FIXTURE(job, "a divided variable is lost if only a rank that is "
                       "behind has it") {
  const std::vector<std::string> divided{"m0", "m1"};
  const auto other = second_rank(*this, [&](rank_part& part) {
    scope parameters;
    set(parameters, "m1", 1);
    return !exchange_state(part, parameters, {{2, 0, 0}, ""}, divided)
           && get(parameters, "m1") == 1 && get(parameters, "m0") == -1;
  });
  rank_part part{rank(0)};
  scope parameters;
  set(parameters, "m0", 2);
  CHECK_FALSE(exchange_state(part, parameters, {{3, 0, 0}, ""}, divided));
  CHECK(exit_code(other) == 0);
}

TEST_CASE_FIXTURE(job, "a rank alone knows what it has lost") {
  comm::write_epoch(folder, {2, {0}});
  rank_part part{rank(0)};
  scope parameters;
  set(parameters, "m0", 2);
  CHECK(exchange_state(part, parameters, {}, {"m0"}));
  CHECK_FALSE(exchange_state(part, parameters, {}, {"m0", "m1"}));
}

TEST_CASE_FIXTURE(job,
                  "an epoch that ends also ends the wait for another rank") {
  rank_part part{rank(0)};
  CHECK_NOTHROW(part.require_epoch());
  std::thread launcher{[this] {
    std::this_thread::sleep_for(50ms);
    comm::write_epoch(folder, {2, {0}});
  }};
  scope parameters;
  const auto e = caught([&] { exchange_state(part, parameters, {}); });
  launcher.join();
  CHECK(e.code() == errc::peer_failure);
  part.enter_next_epoch({});
  CHECK(comm::has_epoch_ended(folder, 1, 0));
  CHECK(part.size() == 1);
  CHECK_NOTHROW(part.require_epoch());
}

TEST_CASE_FIXTURE(job,
                  "a rank knows whether it came late and all may be lost") {
  CHECK_FALSE(rank_part{rank(0)}.is_late());
  comm::write_epoch(folder, {2, {1, 2}});
  auto late = rank(2);
  late.rank = late.local_rank = 1;
  const rank_part second{late};
  CHECK(second.is_late());
  CHECK(second.rank() == 1);
  CHECK_FALSE(second.may_have_lost_all());
  comm::write_epoch(folder, {3, {2, 3}, true});
  CHECK(rank_part{late}.may_have_lost_all());
}

TEST_CASE_FIXTURE(job, "a rank that joins says that it waits") {
  std::thread launcher{[this] {
    while (!comm::has_epoch_ended(folder, 0, 2))
      std::this_thread::sleep_for(1ms);
    comm::write_epoch(folder, {2, {0, 1, 2}});
  }};
  auto joins = rank(2);
  joins.size = joins.local_size = 3;
  const rank_part part{joins};
  launcher.join();
  CHECK(part.is_late());
  CHECK(part.rank() == 2);
  CHECK(part.size() == 3);
}

TEST_CASE_FIXTURE(job, "a stop ends the wait for the next epoch") {
  rank_part part{rank(0)};
  const auto e = caught([&] { part.enter_next_epoch([] { return true; }); });
  CHECK(e.code() == errc::cancelled);
}

TEST_CASE("a backup brings back values, and does not copy them") {
  scope parameters;
  set(parameters, "w", 1);
  set(parameters.replica(1), "w", 2);
  const auto* before = parameters.var("w").as_tensor().raw();
  parameter_backup backup;
  backup.take(parameters, 2);
  CHECK(parameters.var("w").as_tensor().is_shared()); // kernels leave it alone
  set(parameters, "w", 5);
  set(parameters.replica(1), "w", 6);
  backup.restore(parameters);
  CHECK(get(parameters, "w") == 1);
  CHECK(get(parameters.replica(1), "w") == 2);
  CHECK(parameters.var("w").as_tensor().raw() == before);
}

} // TEST_SUITE("apps.elastic.state_exchange")
