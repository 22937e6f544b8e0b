// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/job_queue.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;

namespace {

struct recording_job final : job {
  recording_job(std::string& log, char name) : log_(log), name_(name) {}
  void run(worker&) override { log_ += name_; }
  std::string& log_;
  char name_;
};

struct counting_job final : job {
  explicit counting_job(std::atomic<int>& count) : count_(count) {}
  void run(worker&) override { count_.fetch_add(1); }
  std::atomic<int>& count_;
};

/// Plain threads that serve a queue until it is stopped.
class serving_threads {
public:
  explicit serving_threads(job_queue& q) : queue_(q) {
    for (std::size_t i = 0; i < q.workers(); ++i)
      threads_.emplace_back([this, i] {
        worker here{queue_, i, nullptr};
        while (auto* j = queue_.wait(i))
          here.run_chain(*j);
      });
  }
  ~serving_threads() {
    queue_.stop();
    for (auto& t : threads_)
      t.join();
  }

private:
  job_queue& queue_;
  std::vector<std::thread> threads_;
};

void wait_for(const std::atomic<int>& count, int expected) {
  while (count.load() < expected)
    std::this_thread::yield();
}

} // namespace

TEST_SUITE("base.job_queue") {

TEST_CASE("a worker takes its newest job first and high priority before") {
  job_queue q{1};
  std::string log;
  recording_job a{log, 'a'}, b{log, 'b'}, c{log, 'c'};
  worker here{q, 0, nullptr};
  q.push(a);
  q.push(b, job_priority::high);
  q.push(c);
  while (auto* j = q.pop(0))
    here.run_chain(*j);
  CHECK(log == "bca");
}

TEST_CASE("a worker takes the oldest job of another") {
  job_queue q{2};
  std::string log;
  recording_job a{log, 'a'}, b{log, 'b'};
  q.push_to(1, a);
  q.push_to(1, b);
  worker here{q, 0, nullptr};
  here.run_chain(*q.pop(0));
  CHECK(log == "a");
}

TEST_CASE("a job that yields runs behind the others of its worker") {
  job_queue q{1};
  std::string log;
  recording_job a{log, 'a'}, b{log, 'b'};
  worker here{q, 0, nullptr};
  q.push(b);
  q.yield(a);
  CHECK(q.others_wait(0));
  while (auto* j = q.pop(0))
    here.run_chain(*j);
  CHECK(log == "ba");
  CHECK_FALSE(q.others_wait(0));
}

TEST_CASE("a chain runs one successor at a time and is bounded") {
  struct endless final : job {
    void run(worker& on) override {
      ++runs;
      refused = !on.run_next(*this);
      CHECK_FALSE(on.run_next(*this));
    }
    int runs = 0;
    bool refused = false;
  } j;
  job_queue q{1};
  worker here{q, 0, nullptr};
  here.run_chain(j);
  CHECK(j.runs == worker::chain_limit + 1);
  CHECK(j.refused);
}

TEST_CASE("the current worker is known on its thread and only there") {
  job_queue outer{1}, inner{1};
  CHECK(worker::current() == nullptr);
  {
    worker a{outer, 0, nullptr};
    CHECK(worker::current() == &a);
    {
      worker b{inner, 0, nullptr};
      CHECK(worker::current() == &b);
    }
    CHECK(worker::current() == &a);
    std::thread([] { CHECK(worker::current() == nullptr); }).join();
  }
  CHECK(worker::current() == nullptr);
}

TEST_CASE("no push is lost while workers fall asleep and wake") {
  for (std::size_t workers : {1u, 2u, 4u}) {
    CAPTURE(workers);
    job_queue q{workers};
    serving_threads threads{q};
    std::atomic<int> count{0};
    counting_job a{count}, b{count};
    for (int round = 1; round <= 3000; ++round) {
      q.push(a);
      q.push_to(static_cast<std::size_t>(round), b);
      wait_for(count, 2 * round);
    }
    CHECK(count == 6000);
  }
}

TEST_CASE("several foreign threads push and every job runs once") {
  job_queue q{2};
  std::atomic<int> count{0};
  constexpr int threads = 3, jobs_each = 2000;
  std::vector<std::unique_ptr<counting_job>> jobs;
  for (int i = 0; i < threads * jobs_each; ++i)
    jobs.push_back(std::make_unique<counting_job>(count));
  {
    serving_threads serving{q};
    std::vector<std::thread> pushers;
    for (int t = 0; t < threads; ++t)
      pushers.emplace_back([&, t] {
        for (int i = 0; i < jobs_each; ++i)
          q.push(*jobs[static_cast<std::size_t>(t * jobs_each + i)]);
      });
    for (auto& p : pushers)
      p.join();
  } // stops, which lets waiting jobs run first
  CHECK(count == threads * jobs_each);
}

TEST_CASE("a stopped queue lets its workers go and can be restarted") {
  job_queue q{2};
  std::atomic<int> count{0};
  counting_job j{count};
  for (int round = 1; round <= 50; ++round) {
    {
      serving_threads threads{q};
      q.push(j);
      wait_for(count, round);
    }
    q.restart();
  }
  CHECK(count == 50);
}

TEST_CASE("quiesce waits for a job that runs") {
  job_queue q{1};
  struct slow final : job {
    void run(worker&) override {
      started = true;
      while (!release)
        std::this_thread::yield();
      ended = true;
    }
    std::atomic<bool> started{false}, release{false}, ended{false};
  } j;
  serving_threads threads{q};
  q.push(j);
  while (!j.started)
    std::this_thread::yield();
  std::thread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    j.release = true;
  });
  q.quiesce();
  CHECK(j.ended);
  releaser.join();
}

} // TEST_SUITE("base.job_queue")
