// SPDX-License-Identifier: Apache-2.0

// Dumps with the call stacks of busy workers.

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/tracing/step_watchdog.hpp>
#include <troupe/actors/tracing/worker_stacks.hpp>
#include <troupe/actors/workers/busy_workers.hpp>
#include <troupe/actors/workers/idle_workers.hpp>
#include <troupe/base/stacks/thread_stacks.hpp>
#include <troupe/base/threads.hpp>
#include <troupe/trace/trace_reader.hpp>

#include <actors/small_nets.hpp>
#include <support/files.hpp>
#include <support/serving_threads.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace troupe::actors;

TEST_SUITE("actors.tracing.worker_stacks") {

namespace {

/// On a busy machine, too, every worker answers.
std::shared_ptr<thread_stacks> patient_stacks() {
  return std::make_shared<thread_stacks>(SIGRTMIN, std::chrono::minutes{2});
}

/// `relu` is stuck until it is released.
class stuck_op {
public:
  explicit stuck_op(bool blocks_signals = false)
    : blocks_signals_(blocks_signals) {}

  std::shared_ptr<const kernel_table> kernels() {
    class stuck final : public kernel {
    public:
      explicit stuck(stuck_op& at) : at_(at) {}
      void run(kernel_context& ctx) override {
        at_.is_stuck_in_relu();
        const auto x = ctx.input("X");
        auto out = ctx.output("Out", x.dims(), x.type());
        std::copy_n(x.data<float>(), x.numel(), out.data<float>());
      }

    private:
      stuck_op& at_;
    };
    auto table = std::make_shared<kernel_table>(cpu_kernels());
    table->add("relu", device_kind::cpu, [this](const attribute_map&) {
      return std::make_unique<stuck>(*this);
    });
    return table;
  }

  struct place {
    std::size_t worker = 0;
    pid_t thread = 0;
  };
  /// Waits until the op is stuck. Returns where.
  place wait_until_stuck() {
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [this] { return at_.has_value(); });
    return *at_;
  }
  void release() {
    std::lock_guard guard{mutex_};
    is_released_ = true;
    changed_.notify_all();
  }

private:
  [[gnu::noinline]] void is_stuck_in_relu() {
    sigset_t all{};
    sigset_t before{};
    sigfillset(&all);
    if (blocks_signals_)
      pthread_sigmask(SIG_SETMASK, &all, &before);
    {
      std::unique_lock guard{mutex_};
      at_ = {worker::current()->index(), this_thread_number()};
      changed_.notify_all();
      changed_.wait(guard, [this] { return is_released_; });
    }
    if (blocks_signals_)
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  const bool blocks_signals_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<place> at_;
  bool is_released_ = false;
};

/// An executor whose step is stuck on one of two workers.
struct stuck_run {
  explicit stuck_run(std::shared_ptr<thread_stacks> by, bool blocks = false)
    : op(blocks), exe(net.main, options(std::move(by))) {
    step = exe.submit(net.batch(0, 6));
    at = op.wait_until_stuck();
  }
  ~stuck_run() {
    op.release();
    exe.wait(step);
  }

  executor_options options(std::shared_ptr<thread_stacks> by) {
    executor_options o;
    o.devices = parse_devices("cpu:1");
    o.threads = 2;
    o.parameters = net.parameters();
    o.kernels = op.kernels();
    o.flight_recorder.stacks = std::move(by);
    return o;
  }

  const small_net net = make_mlp();
  stuck_op op;
  executor exe;
  step_id step = 0;
  stuck_op::place at;
};

trace::process_trace dump_of(const executor& exe, const std::string& name) {
  const temporary_folder folder;
  exe.dump_trace(folder / name);
  return trace::read_trace(folder / name);
}

bool is_in(const trace::worker_stack& stack, const std::string& function) {
  return std::ranges::any_of(stack.frames, [&](const code_place& f) {
    return f.symbol.find(function) != std::string::npos;
  });
}

std::string text_of(const trace::worker_stack& stack) {
  std::string text = stack.missing + "\n";
  for (auto& f : stack.frames)
    text += to_string(f) + "\n";
  return text;
}

} // namespace

TEST_CASE("a dump has the stack of a stuck worker and none of idle ones") {
  const stuck_run run{patient_stacks()};
  auto t = dump_of(run.exe, "a.trt");
  // The other worker may still be about to end an op of the step.
  for (int i = 0; i < 1000 && t.stacks.size() > 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
    t = dump_of(run.exe, "a.trt");
  }
  CHECK(t.is_complete);
  REQUIRE(t.stacks.size() == 1);
  const auto& s = t.stacks[0];
  INFO(text_of(s));
  CHECK(s.worker == run.at.worker);
  CHECK(s.thread == run.at.thread);
  CHECK(t.name_of(s.op).starts_with("relu#"));
  CHECK(t.find(s.op)->is_op);
  CHECK(s.step == run.step);
  CHECK_FALSE(s.is_help);
  CHECK(s.missing.empty());
  CHECK(s.since_ns > 0); // since the executor was made
  CHECK(s.since_ns < s.taken_ns);
  CHECK(is_in(s, "is_stuck_in_relu"));
  // Also what called it: the kernel, and the engine.
  CHECK(is_in(s, "stuck_op::kernels()::stuck::run"));
  CHECK(is_in(s, "troupe::actors::engine::run"));
  CHECK_FALSE(is_in(s, "answer_stack_request"));
}

TEST_CASE("after a step no worker is busy") {
  const auto net = make_mlp();
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.parameters = net.parameters();
  options.flight_recorder.stacks = patient_stacks();
  executor exe{net.main, options};
  exe.run(net.batch(0, 6));
  // The op that ends the step can still be on its way out.
  while (!dump_of(exe, "a.trt").stacks.empty())
    std::this_thread::yield();
}

TEST_CASE("two dumps at once both have the stack") {
  const stuck_run run{patient_stacks()};
  std::array<trace::process_trace, 2> dumps;
  std::thread other{[&] { dumps[0] = dump_of(run.exe, "a.trt"); }};
  dumps[1] = dump_of(run.exe, "b.trt");
  other.join();
  for (auto& t : dumps) {
    REQUIRE(t.stacks.size() == 1);
    CHECK(is_in(t.stacks[0], "is_stuck_in_relu"));
  }
}

TEST_CASE("dumps while ops run have stacks of ops or none") {
  const auto net = make_mlp();
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.parameters = net.parameters();
  options.flight_recorder.stacks = patient_stacks();
  executor exe{net.main, options};
  std::atomic<bool> is_over{false};
  std::thread trains{[&] {
    while (!is_over)
      exe.run(net.batch(0, 6));
  }};
  for (int i = 0; i < 20; ++i) {
    const auto t = dump_of(exe, "a.trt");
    CHECK(t.is_complete);
    for (auto& s : t.stacks) {
      INFO(text_of(s));
      REQUIRE(t.find(s.op));
      CHECK(t.find(s.op)->is_op);
      CHECK(s.missing.empty());
      CHECK_FALSE(s.frames.empty());
      CHECK(s.since_ns <= s.taken_ns);
    }
  }
  is_over = true;
  trains.join();
}

TEST_CASE("a worker that does not answer has an entry that says so") {
  const stuck_run run{
    std::make_shared<thread_stacks>(SIGRTMIN, std::chrono::milliseconds{50}),
    true};
  const auto t = dump_of(run.exe, "a.trt");
  REQUIRE(t.stacks.size() == 1);
  const auto& s = t.stacks[0];
  CHECK(s.frames.empty());
  CHECK(s.missing.starts_with("it has not answered the signal for 50 ms"));
  CHECK(s.missing.find("the system says: ") != std::string::npos);
  CHECK(t.name_of(s.op).starts_with("relu#"));
  CHECK(s.thread == run.at.thread);
}

TEST_CASE("the watchdog's line names the function in which an op is stuck") {
  const stuck_run run{patient_stacks()};
  std::promise<std::string> told;
  std::atomic<bool> is_told{false};
  const step_watchdog dog{run.exe, std::chrono::milliseconds{50},
                          [&](const std::string& text) {
                            if (!is_told.exchange(true))
                              told.set_value(text);
                          }};
  const auto line = told.get_future().get();
  CAPTURE(line);
  CHECK(line.find("slow op: relu#") != std::string::npos);
  CHECK(line.find(", in ") != std::string::npos);
#if !defined(__SANITIZE_THREAD__) // it names its own function for this
  CHECK(line.find("pthread") == std::string::npos);
#endif
}

TEST_CASE("a step has lasted at least as long as the op that it waits for") {
  const stuck_run run{patient_stacks()};
  // Before the watchdog looks for the first time.
  std::this_thread::sleep_for(std::chrono::seconds{1});
  std::promise<std::string> told;
  std::atomic<bool> is_told{false};
  const step_watchdog dog{run.exe, std::chrono::milliseconds{50},
                          [&](const std::string& text) {
                            if (!is_told.exchange(true))
                              told.set_value(text);
                          }};
  const auto line = told.get_future().get();
  CAPTURE(line);
  const auto seconds_after = [&](const std::string& words) {
    const auto at = line.find(words);
    REQUIRE(at != std::string::npos);
    return std::stod(line.substr(at + words.size()));
  };
  CHECK(seconds_after("has not ended for ") >= 1);
  CHECK(seconds_after("has not ended for ") >= seconds_after(
          "on worker " + std::to_string(run.at.worker) + " for "));
}

TEST_CASE("the useful function is the innermost one outside of the C and C++ "
          "libraries") {
  const std::vector<code_place> frames{
    {"", 0, "", 0x10},
    {"clock_nanosleep", 4, "libc.so.6", 0x10},
    {"std::condition_variable::wait()", 4, "libstdc++.so.6", 0x10},
    {"", 0, "libdnnl.so.2", 0x10},
    {"a::(anonymous namespace)::b<int (*)(int)>::run(int (&)(int)) const", 4,
     "troupe", 0x10},
    {"main", 4, "troupe", 0x10}};
  CHECK(useful_function(frames)
        == "a::(anonymous namespace)::b<int (*)(int)>::run");
  CHECK(useful_function(std::span{frames}.last(1)) == "main");
  CHECK(useful_function(std::span{frames}.first(4)).empty());
}

TEST_CASE("without an object that takes stacks dumps have none") {
  const stuck_run run{nullptr};
  CHECK(dump_of(run.exe, "a.trt").stacks.empty());
}

TEST_CASE("a worker that helps another one is noted with the other's op") {
  job_queue queue{2};
  serving_threads helpers{queue, 1, 1};
  worker here{queue, 0};
  busy_workers busy{2};
  idle_workers runner{queue, nullptr, &busy};
  std::atomic<int> inside{0};
  std::array<std::optional<busy_workers::work>, 2> seen;
  busy.begins(0, 17, 4);
  // Each part waits for the other, so each worker runs one.
  runner.run(2, [&](std::size_t) {
    ++inside;
    while (inside < 2)
      std::this_thread::yield();
    const auto own = worker::current()->index();
    seen[own] = busy.on(own);
  });
  busy.ends(0);
  for (std::size_t w = 0; w < seen.size(); ++w) {
    REQUIRE(seen[w]);
    CHECK(seen[w]->op == 17);
    CHECK(seen[w]->step == 4);
    CHECK(seen[w]->is_help == (w == 1));
    CHECK(seen[w]->since > 0);
    CHECK_FALSE(busy.on(w));
  }
  CHECK(seen[0]->thread == this_thread_number());
  CHECK(seen[1]->thread != this_thread_number());
}

} // TEST_SUITE("actors.tracing.worker_stacks")
