// SPDX-License-Identifier: Apache-2.0
//
// The parking protocol of job_queue: push, sleepers, claims, permits, stop.
// The programs follow job_queue.cpp line by line; change both together.
#include "model/machine.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe::model;

namespace {

enum shared : variable {
  flag,     ///< spin_flag of the list
  jobs,     ///< the list: a bit per job
  size,     ///< the hint that is read without the flag
  sleepers, ///< counted in `wait`
  permits,
  stopped,
  stranded, ///< test: bits of jobs that nobody may push before they have run
  runs,     ///< test: runs + job is how often a job has run
};
constexpr std::size_t job_count = 3;
using kind = instruction::kind;

/// What a mistake leaves out or does wrongly.
struct mistakes {
  bool no_fence_in_push = false;      ///< F1
  bool looks_before_counting = false; ///< without F2 the look may come early
  bool permit_without_claim = false;  ///< wakes without taking a sleeper
  bool sleeps_without_look = false;
};

/// Steps that add job `job` to the list and wake a sleeper. Then goes on with
/// the step behind them.
void push(program& p, int job, const mistakes& wrong) {
  p.push_back({"push: take the flag", kind::change, flag,
               [](access& a) { return a.shared(flag) == 0; },
               [](access& a) { a.shared(flag) = 1; }});
  p.push_back({"push: add", kind::plain, 0, {}, [job](access& a) {
                 a.store(jobs, static_cast<value>(a.load(jobs) | 1 << job));
                 a.store(size, static_cast<value>(a.load(size) + 1));
                 a.store_release(flag, 0);
               }});
  if (!wrong.no_fence_in_push)
    p.push_back({"push: F1", kind::release, 0, {}, [](access&) {}});
  const auto behind = static_cast<std::uint8_t>(p.size() + 3);
  p.push_back(
    {"push: look for sleepers", kind::plain, 0, {}, [behind](access& a) {
       if (a.load(sleepers) == 0)
         a.go_to(behind);
     }});
  const auto claims = !wrong.permit_without_claim;
  p.push_back(
    {"push: claim", kind::release, sleepers, {}, [behind, claims](access& a) {
       if (!claims)
         return;
       if (a.shared(sleepers) == 0)
         a.go_to(behind);
       else
         --a.shared(sleepers);
     }});
  p.push_back({"push: permit", kind::release, permits, {}, [](access& a) {
                 ++a.shared(permits);
               }});
}

program pusher(std::initializer_list<int> pushed, const mistakes& wrong) {
  program p;
  for (auto job : pushed)
    push(p, job, wrong);
  return p;
}

/// Steps of `stop`.
void stop(program& p, int workers) {
  p.push_back({"stop: store", kind::plain, 0, {}, [](access& a) {
                 a.store(stopped, 1);
               }});
  for (int i = 0; i < workers; ++i) {
    p.push_back({"stop: F1", kind::release, 0, {}, [](access&) {}});
    const auto behind = static_cast<std::uint8_t>(p.size() + 2);
    p.push_back(
      {"stop: claim", kind::release, sleepers, {}, [behind](access& a) {
         if (a.shared(sleepers) == 0)
           a.go_to(behind);
         else
           --a.shared(sleepers);
       }});
    p.push_back({"stop: permit", kind::release, permits, {}, [](access& a) {
                   ++a.shared(permits);
                 }});
  }
}

/// Registers of a worker.
enum local : std::size_t { taken, stopping, woken_to };

/// Steps of a worker, in their order in the program.
enum worker_step : std::uint8_t {
  look,
  lock,
  take,
  run,
  count,
  fence,
  look_again,
  claim_back,
  sleep,
  after_look,
  push_more, // only in a worker whose job pushes another
};

void run_job(access& a, bool pushes_more) {
  const auto job = a.local(taken);
  ++a.shared(static_cast<variable>(runs + job));
  a.go_to(pushes_more && job == 0 ? push_more : look);
}

void take_job(access& a) {
  const auto listed = a.load(jobs);
  value job = 0;
  while (job < value{job_count} && (listed >> job & 1) == 0)
    ++job;
  if (job < value{job_count}) {
    a.store(jobs, static_cast<value>(listed & ~(1 << job)));
    a.store(size, static_cast<value>(a.load(size) - 1));
  }
  a.store_release(flag, 0);
  a.local(taken) = job;
  a.go_to(job < value{job_count} ? run : count);
}

/// `job_queue::wait` and the run of what it returns, until stopped.
/// @param pushes_more job 0 pushes job 2 when it runs
program worker(const mistakes& wrong, bool pushes_more = false) {
  program p;
  p.push_back({"look", kind::plain, 0, {}, [](access& a) {
                 a.go_to(a.load(size) == 0 ? count : lock);
               }});
  p.push_back({"take the flag", kind::change, flag,
               [](access& a) { return a.shared(flag) == 0; },
               [](access& a) { a.shared(flag) = 1; }});
  p.push_back({"take a job", kind::plain, 0, {}, take_job});
  p.push_back({"run", kind::release, runs, {}, [pushes_more](access& a) {
                 run_job(a, pushes_more);
               }});
  const auto counted = [](access& a) { ++a.shared(sleepers); };
  const auto looked = [wrong](access& a) {
    a.local(stopping) = a.load(stopped);
    const auto found = a.load(size) > 0 && !wrong.sleeps_without_look;
    a.local(woken_to) = found || a.local(stopping) ? after_look : look;
  };
  if (wrong.looks_before_counting) {
    p.push_back({"look again (early)", kind::plain, 0, {}, looked});
    p.push_back({"count as sleeper", kind::change, sleepers, {}, counted});
  } else {
    p.push_back({"count as sleeper", kind::change, sleepers, {}, counted});
    p.push_back({"F2", kind::release, 0, {}, [](access&) {}});
  }
  const auto branch = [](access& a) {
    a.go_to(a.local(woken_to) == after_look ? claim_back : sleep);
  };
  if (wrong.looks_before_counting)
    p.push_back({"decide", kind::plain, 0, {}, branch});
  else
    p.push_back({"look again", kind::plain, 0, {}, [looked, branch](access& a) {
                   looked(a);
                   branch(a);
                 }});
  p.push_back({"claim itself", kind::release, sleepers, {}, [](access& a) {
                 if (a.shared(sleepers) == 0)
                   return; // somebody owes it a permit
                 --a.shared(sleepers);
                 a.go_to(after_look);
               }});
  p.push_back({"sleep", kind::change, permits,
               [](access& a) { return a.shared(permits) > 0; },
               [](access& a) {
                 --a.shared(permits);
                 a.go_to(static_cast<std::uint8_t>(a.local(woken_to)));
               }});
  p.push_back({"leave if stopped", kind::plain, 0, {}, [](access& a) {
                 const auto leaves = a.local(stopping) && a.load(size) == 0;
                 a.go_to(leaves ? ended : std::uint8_t{look});
               }});
  if (pushes_more) {
    push(p, 2, wrong);
    p.push_back(
      {"go on", kind::plain, 0, {}, [](access& a) { a.go_to(look); }});
  }
  return p;
}

std::string no_double_run(const state& s) {
  for (std::size_t job = 0; job < job_count; ++job)
    if (s.shared[runs + job] > 1)
      return "job " + std::to_string(job) + " ran twice";
  return "";
}

/// Nobody can go on: all `pushed` jobs have run, and the counts are those of
/// the workers that sleep.
std::string all_done(const state& s, std::size_t pushed,
                     const std::vector<std::size_t>& workers) {
  for (std::size_t job = 0; job < pushed; ++job)
    if (s.shared[runs + job] != 1)
      return "a wake-up is lost: job " + std::to_string(job) + " waits";
  value asleep = 0;
  for (auto w : workers)
    asleep = static_cast<value>(asleep + (s.threads[w].step == sleep));
  if (s.shared[permits] != 0)
    return "a permit is left over";
  if (s.shared[sleepers] != asleep)
    return "sleepers are miscounted";
  return "";
}

machine make(memory rules, std::vector<program> threads, std::size_t pushed,
             std::vector<std::size_t> workers) {
  machine m;
  m.rules = rules;
  m.threads = std::move(threads);
  m.always = no_double_run;
  m.at_end = [pushed, workers = std::move(workers)](const state& s) {
    return all_done(s, pushed, workers);
  };
  return m;
}

constexpr mistakes none{};
constexpr memory all_rules[] = {memory::sequential, memory::buffered,
                                memory::weak};

} // namespace

TEST_SUITE("model.parking") {

TEST_CASE("two workers and a thread outside lose no wake-up") {
  for (auto rules : all_rules) {
    const auto result = explore(make(
      rules, {pusher({0, 1, 2}, none), worker(none), worker(none)}, 3, {1, 2}));
    INFO(result.trace);
    CHECK(result.failure == "");
    CHECK(result.ends > 0);
  }
}

TEST_CASE("two threads outside that push at once lose no wake-up") {
  for (auto rules : all_rules) {
    const auto result = explore(make(
      rules, {pusher({0}, none), pusher({1}, none), worker(none), worker(none)},
      2, {2, 3}));
    INFO(result.trace);
    CHECK(result.failure == "");
  }
}

TEST_CASE("a worker that pushes wakes another or does the job itself") {
  for (auto rules : all_rules) {
    const auto result = explore(make(
      rules, {pusher({0, 1}, none), worker(none, true), worker(none, true)}, 3,
      {1, 2}));
    INFO(result.trace);
    CHECK(result.failure == "");
  }
}

TEST_CASE("stopped workers leave when no job is left") {
  for (auto rules : all_rules) {
    auto outside = pusher({0, 1}, none);
    stop(outside, 2);
    auto m = make(rules, {outside, worker(none), worker(none)}, 2, {1, 2});
    m.at_end = [end = m.at_end](const state& s) -> std::string {
      if (s.threads[1].step != ended || s.threads[2].step != ended)
        return "a worker sleeps though the queue is stopped";
      return end(s);
    };
    const auto result = explore(m);
    INFO(result.trace);
    CHECK(result.failure == "");
  }
}

TEST_CASE("without the fence in push a wake-up is lost") {
  mistakes wrong;
  wrong.no_fence_in_push = true;
  const auto run = [&](memory rules) {
    return explore(make(rules, {pusher({0}, wrong), worker(none)}, 1, {1}));
  };
  CHECK(run(memory::buffered).failure == "a wake-up is lost: job 0 waits");
  CHECK(run(memory::weak).failure == "a wake-up is lost: job 0 waits");
  CHECK(run(memory::sequential).failure == "");
}

TEST_CASE("without the fence in wait a wake-up is lost") {
  mistakes wrong;
  wrong.looks_before_counting = true;
  const auto result = explore(
    make(memory::sequential, {pusher({0}, none), worker(wrong)}, 1, {1}));
  CHECK(result.failure == "a wake-up is lost: job 0 waits");
}

TEST_CASE("without a second look a wake-up is lost") {
  mistakes wrong;
  wrong.sleeps_without_look = true;
  const auto result = explore(
    make(memory::sequential, {pusher({0}, none), worker(wrong)}, 1, {1}));
  CHECK(result.failure == "a wake-up is lost: job 0 waits");
}

TEST_CASE("without claims sleepers are miscounted") {
  mistakes wrong;
  wrong.permit_without_claim = true;
  const auto result = explore(
    make(memory::sequential, {pusher({0, 1}, wrong), worker(none)}, 2, {1}));
  CHECK(result.failure == "sleepers are miscounted");
}

} // TEST_SUITE("model.parking")
