// SPDX-License-Identifier: Apache-2.0
// What a worker runs one after the other, and what it keeps to itself.
#include "chained_jobs.hpp"

#include <troupe/base/job_queue.hpp>
#include <troupe/base/worker_place.hpp>

#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("base.worker_chain") {

namespace {

constexpr auto bound = worker::chain_limit;

/// Chains of a worker whose jobs are short.
class short_chains {
public:
  explicit short_chains(worker& here) : here_(here) {}

  /// Runs a job that names itself `length` times, at first with `act`. A thread
  /// that is interrupted takes its jobs for long ones: then once more.
  template <class Act>
  void run(std::uint32_t length, Act act) {
    bool acted = false;
    for (int tries = 0; tries < 100000 && !acted; ++tries) {
      for (int i = 0; i < 64; ++i)
        here_.run_chain(quick_);
      auto& chain = chains_.emplace_back(length);
      chain.first = [&](worker& on) {
        acted = on.has_short_jobs();
        if (acted)
          act(on, chain);
      };
      here_.run_chain(chain);
    }
    REQUIRE(acted);
  }

private:
  struct quick final : job {
    void run(worker&) override {}
  };

  worker& here_;
  quick quick_;
  std::deque<long_chain> chains_; // some are in the queue's list at the end
};

} // namespace

TEST_CASE("a chain runs what is named first and pushes the rest") {
  job_queue q{1};
  std::string log;
  recording_job b{log, 'b'}, c{log, 'c'}, d{log, 'd'};
  struct naming final : job {
    naming(std::string& to, std::vector<job*> jobs)
      : log(to), named(std::move(jobs)) {}
    void run(worker& on) override {
      log += 'a';
      for (auto* j : named)
        on.run_soon(*j);
    }
    std::string& log;
    std::vector<job*> named;
  } a{log, {&b, &c, &d}};
  worker here{q, 0};
  here.run_chain(a);
  CHECK(log.substr(0, 2) == "ab");
  while (auto* j = q.pop(0))
    here.run_chain(*j);
  CHECK(log == "abdc"); // newest first
}

TEST_CASE("what is kept runs in the chain, behind what is next, unseen") {
  job_queue q{1};
  std::string log;
  recording_job b{log, 'b'}, c{log, 'c'}, d{log, 'd'};
  worker here{q, 0};
  short_chains{here}.run(1, [&](worker& on, long_chain&) {
    on.keep(b);
    on.keep(c);
    on.run_soon(d);
    CHECK_FALSE(q.others_wait(0));
  });
  while (auto* j = q.pop(0)) // if jobs were slow
    here.run_chain(*j);
  CHECK(log.front() == 'd');
  CHECK(log.size() == 3);
}

TEST_CASE("jobs that keep each other run as often as they are kept") {
  job_queue q{1};
  struct kept_again final : job {
    explicit kept_again(int& count) : runs(count) {}
    void run(worker& on) override {
      if (++runs < 100)
        on.keep(*this);
    }
    int& runs;
  };
  int runs = 0;
  std::deque<kept_again> ring;
  for (std::uint32_t i = 0; i < worker::most_kept; ++i)
    ring.emplace_back(runs);
  worker here{q, 0};
  short_chains{here}.run(1, [&](worker& on, long_chain&) {
    for (auto& j : ring)
      on.keep(j);
  });
  while (auto* j = q.pop(0))
    here.run_chain(*j);
  CHECK(runs == 99 + static_cast<int>(worker::most_kept));
}

TEST_CASE("what is kept has its turn when the chain has its length") {
  job_queue q{1};
  std::string log;
  recording_job b{log, 'b'};
  worker here{q, 0};
  short_chains chains{here};
  chains.run(2 * bound, [&](worker& on, long_chain& a) {
    on.keep(b);
    a.last = [&] { log += 'a'; };
  });
  while (auto* j = q.pop(0)) // where jobs are slow the chain has ended
    here.run_chain(*j);
  CHECK(log == "ba");
}

TEST_CASE("a chain that ends leaves what it keeps to all") {
  job_queue q{2};
  std::string log;
  recording_job b{log, 'b'};
  worker here{q, 0};
  short_chains chains{here};
  chains.run(2 * bound, [&](worker& on, long_chain&) {
    on.keep(b);
    q.push_guest(&log); // ends it at its bound
  });
  CHECK(log == "");
  std::vector<job*> left;
  while (auto* j = q.pop(1))
    left.push_back(j);
  CHECK(std::ranges::count(left, &b) == 1);
}

TEST_CASE("what is kept can be seen once jobs have become long") {
  job_queue q{1};
  std::string log;
  recording_job b{log, 'b'};
  worker here{q, 0};
  short_chains{here}.run(1, [&](worker& on, long_chain&) {
    on.keep(b);
    const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    while (std::chrono::steady_clock::now() < end) {
    }
    on.did(bound);
    CHECK(q.pop(0) == &b);
    on.keep(b);
    CHECK(q.pop(0) == &b);
  });
}

TEST_CASE("beside many others, or without a chain, what is kept is pushed") {
  job_queue q{1};
  std::string log;
  std::deque<recording_job> many;
  for (std::uint32_t i = 0; i <= worker::most_kept; ++i)
    many.emplace_back(log, static_cast<char>('b' + i));
  worker here{q, 0};
  here.keep(many.front());
  CHECK(q.pop(0) == &many.front());
  short_chains{here}.run(1, [&](worker& on, long_chain&) {
    for (auto& j : many)
      on.keep(j);
    CHECK(q.pop(0) == &many.back());
  });
  while (auto* j = q.pop(0))
    here.run_chain(*j);
  CHECK(log.size() == worker::most_kept);
}

TEST_CASE("a chain of short jobs goes on with others of the worker") {
  job_queue q{1};
  struct quick final : job {
    void run(worker&) override { ++runs; }
    int runs = 0;
  } first, pushed, foreign;
  worker here{q, 0};
  // A thread that is interrupted takes its jobs for long ones.
  for (int tries = 0; tries < 100000 && pushed.runs == 0; ++tries) {
    q.push(pushed);
    here.run_chain(first);
    if (pushed.runs == 0)
      CHECK(q.pop(0) == &pushed);
  }
#ifdef __SANITIZE_THREAD__
  if (pushed.runs == 0)
    return skip_case("needs jobs that are short in spite of a sanitizer");
#endif
  CHECK(pushed.runs == 1);
  std::thread([&] { q.push(foreign); }).join();
  q.push(pushed);
  here.run_chain(first);
  CHECK(pushed.runs == 1); // what others wait for comes before
}

TEST_CASE("a long chain gives the worker's oldest job its turn") {
  job_queue q{1};
  worker here{q, 0};
  long_chain chain{3 * bound};
  struct noting final : job {
    explicit noting(long_chain& of) : chain(of) {}
    void run(worker& on) override {
      seen = chain.runs;
      rest_waits = on.queue().others_wait(on.index());
    }
    long_chain& chain;
    std::uint32_t seen = 0;
    bool rest_waits = false;
  } other{chain};
  chain.first = [&](worker& on) { on.queue().push(other); };
  here.run_chain(chain);
  CHECK(other.seen == bound + 1);
  CHECK(other.rest_waits); // where another worker would find it
  while (auto* j = q.pop(0))
    here.run_chain(*j);
  CHECK(chain.runs == 3 * bound);
}

TEST_CASE("long chains of a worker take turns") {
  job_queue q{1};
  worker here{q, 0};
  std::vector<std::unique_ptr<long_chain>> chains;
  for (int c = 0; c < 4; ++c)
    q.push(*chains.emplace_back(std::make_unique<long_chain>(10 * bound)));
  std::uint32_t fewest = 10 * bound; // runs of another when one has ended
  for (auto& c : chains)
    c->last = [&] {
      for (auto& other : chains)
        fewest = std::min(fewest, other->runs);
    };
  while (auto* j = q.pop(0))
    here.run_chain(*j);
  CHECK(fewest > 8 * bound);
}

TEST_CASE("a chain ends at its bound if others wait") {
  job_queue q{1};
  worker here{q, 0};
  long_chain chain{3 * bound}, other{1};
  condition until;
  SUBCASE("foreign threads") {
    chain.first = [&](worker& on) {
      std::thread([&] { on.queue().push(other); }).join();
    };
  }
  SUBCASE("guests") {
    chain.first = [&](worker& on) { on.queue().push_guest(&other); };
  }
  SUBCASE("the worker, for something that holds") {
    until.holds_for = [](void*) { return true; };
  }
  here.run_chain(chain, until);
  CHECK(chain.runs == bound + 1);
  while (auto* j = q.pop(0))
    here.run_chain(*j);
  CHECK(chain.runs == 3 * bound);
}

} // TEST_SUITE("base.worker_chain")
