// SPDX-License-Identifier: Apache-2.0

// A step that does not go on is told, with its cause.

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/tracing/step_watchdog.hpp>
#include <troupe/base/cores.hpp>

#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/skip_case.hpp>

#include <troupe/actors/configure.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("actors.tracing.step_watchdog") {

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// What the watchdog has told.
class told_texts {
public:
  void add(const std::string& text) {
    std::lock_guard guard{mutex_};
    texts_.push_back(text);
    news_.notify_all();
  }
  /// Waits until there are so many.
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock{mutex_};
    news_.wait(lock, [&] { return texts_.size() >= count; });
    return texts_;
  }
  std::size_t count() {
    std::lock_guard guard{mutex_};
    return texts_.size();
  }

private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<std::string> texts_;
};

/// `relu` waits until the gate is open, and takes a time of its own then.
struct gate {
  std::atomic<bool> open{false};
  std::chrono::milliseconds time{0};
  bool fails = false;
  bool shares_core = false; ///< `relu` and `crowd` are busy on the first core

  void be_busy() const {
    const stay_on_core first{0};
    while (!open) {
    }
  }
  std::jthread crowd() const {
    return std::jthread{[this] { be_busy(); }};
  }

  std::shared_ptr<const kernel_table> kernels() {
    class gated final : public kernel {
    public:
      explicit gated(gate& at) : at_(at) {}
      void run(kernel_context& ctx) override {
        if (at_.shares_core)
          at_.be_busy();
        while (!at_.open)
          std::this_thread::sleep_for(1ms);
        std::this_thread::sleep_for(at_.time);
        if (at_.fails)
          throw error(errc::invalid_argument, "as the test wants it");
        const auto x = ctx.input("X");
        auto out = ctx.output("Out", x.dims(), x.type());
        std::copy_n(x.data<float>(), x.numel(), out.data<float>());
      }

    private:
      gate& at_;
    };
    auto table = std::make_shared<kernel_table>(cpu_kernels());
    table->add("relu", device_kind::cpu, [this](const attribute_map&) {
      return std::make_unique<gated>(*this);
    });
    return table;
  }
};

executor_options options_for(const small_net& net) {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.parameters = net.parameters();
  return o;
}

step_watchdog watch(const executor& exe, told_texts& told,
                    std::chrono::milliseconds limit) {
  return {exe, limit, [&](const std::string& text) { told.add(text); }};
}

} // namespace

TEST_CASE("a step that follows another one at once is watched from its begin") {
  const auto net = make_mlp();
  gate at{.open = true, .time = 250ms};
  auto options = options_for(net);
  options.devices = parse_devices("cpu:1");
  options.kernels = at.kernels();
  executor exe{net.main, options};
  told_texts told;
  const auto dog = watch(exe, told, 200ms);
  // If others use the core, the watchdog can be late, but not in all steps.
  bool is_told = false;
  for (int step = 0; step < 6 && !is_told; ++step) {
    exe.run(net.batch(0, 6));
    for (auto& text : told.wait_for(0))
      is_told |= step > 0
                 && text.starts_with("step " + std::to_string(step)
                                     + " has not ended for 0.2 s");
  }
  CHECK(is_told);
}

TEST_CASE("a slow op is named, and when its step has ended") {
  if (usable_cores() < 2)
    return skip_case("needs two cores");
  const auto net = make_mlp();
  gate at;
  auto options = options_for(net);
  options.kernels = at.kernels();
  executor exe{net.main, options};
  told_texts told;
  const auto dog = watch(exe, told, 100ms);
  const auto step = exe.submit(net.batch(0, 6));
  const auto first = told.wait_for(1)[0];
  CAPTURE(first);
  CHECK(contains(first, "step 0 has not ended for 0."));
  CHECK(contains(first, "slow op: relu#"));
  CHECK(contains(first, " runs on worker "));
  std::this_thread::sleep_for(400ms);
  CHECK(told.count() == 1); // once per step
  at.open = true;
  exe.wait(step);
  CHECK(contains(told.wait_for(2)[1], "step 0 has ended after 0."));
  for (int i = 0; i < 20; ++i)
    exe.run(net.batch(0, 6));
  CHECK(told.count() == 2);
}

TEST_CASE("a slow op's line has the times that the application knows of it") {
  const auto net = make_mlp();
  gate at;
  auto options = options_for(net);
  options.kernels = at.kernels();
  executor exe{net.main, options};
  told_texts told;
  const auto usual = [&](handle_id op) {
    const bool is_relu =
      exe.graph().is_op(op) && exe.graph().op(op).desc->type == "relu";
    return is_relu
             ? usual_time{.median = 5ms, .fastest = 4ms, .fastest_rank = 3}
             : usual_time{};
  };
  const step_watchdog dog{exe,
                          100ms,
                          [&](const std::string& text) { told.add(text); },
                          {.rank = 1, .usual = usual}};
  const auto step = exe.submit(net.batch(0, 6));
  const auto first = told.wait_for(1)[0];
  CAPTURE(first);
  CHECK(contains(first, "; its median is 5.0 ms, that of rank 3 is 4.0 ms"));
  at.open = true;
  exe.wait(step);
}

TEST_CASE("workers that do not get their cores are named") {
  const auto net = make_mlp();
  gate at;
  at.shares_core = true;
  auto options = options_for(net);
  options.kernels = at.kernels();
  executor exe{net.main, options};
  told_texts told;
  const auto dog = watch(exe, told, 200ms);
  std::string first;
  {
    const std::array crowd{at.crowd(), at.crowd(), at.crowd(), at.crowd()};
    const auto step = exe.submit(net.batch(0, 6));
    first = told.wait_for(1)[0];
    at.open = true;
    exe.wait(step);
  }
  CAPTURE(first);
  CHECK(contains(first, "preempted worker: threads of this process waited "));
  CHECK(contains(first, " for a core, all together, and ran "));
  CHECK(contains(first, "slow op: relu#"));
}

TEST_CASE("a message that was lost is named") {
  const auto net = make_mlp();
  auto options = options_for(net);
  options.hooks.dry_run = true;
  const auto g = executor{net.main, options}.graph();
  handle_id feed = no_handle;
  for (auto& v : g.vars)
    if (v.feed && feed == no_handle)
      feed = v.id;
  options.hooks.shuffle =
    delivery_shuffle{.seed = {}, .withheld = message_id{no_handle, feed, 0}};
  executor exe{net.main, options};
  told_texts told;
  const auto dog = watch(exe, told, 100ms);
  const auto step = exe.submit(net.batch(0, 6));
  const auto first = told.wait_for(1)[0];
  CAPTURE(first);
  CHECK(contains(first, "lost message: what the start of step 0 sends"));
  let_go(exe);
  exe.wait(step);
}

TEST_CASE("slow motion is named") {
  const auto net = make_mlp();
  executor exe{net.main, options_for(net)};
  told_texts told;
  const auto dog = watch(exe, told, 100ms);
  exe.pace().delay_ops(10min);
  exe.run(net.batch(0, 6)); // nobody looks: ops are not delayed
  {
    const level_request looks{exe.trace(), trace_level::ops};
    const auto step = exe.submit(net.batch(0, 6));
    const auto first = told.wait_for(1)[0];
    CAPTURE(first);
    CHECK(contains(first, "slow motion: each op begins 600.0 s later; "));
    exe.pace().delay_ops(0ms);
    while (exe.stats().steps <= step) {
      exe.pace().interrupt(); // an op may begin to wait after an interrupt
      std::this_thread::sleep_for(1ms);
    }
    exe.wait(step);
  }
}

TEST_CASE("a run that somebody has paused says so, and has not stalled") {
  const auto net = make_mlp();
  gate at{.open = true};
  auto options = options_for(net);
  options.kernels = at.kernels();
  executor exe{net.main, options};
  told_texts told, stalls;
  const step_watchdog dog{exe,
                          100ms,
                          [&](const std::string& text) { told.add(text); },
                          {.rank = 1, .stalled = [&] { stalls.add(""); }}};
  exe.run(net.batch(0, 6));
  exe.pace().pause();
  const auto first = told.wait_for(1)[0];
  CAPTURE(first);
  CHECK(contains(first, "no step is under way: rank 1 has been paused for "));
  exe.pace().admit_step();
  exe.run(net.batch(0, 6));
  exe.pace().resume();
  exe.run(net.batch(0, 6));
  CHECK(stalls.count() == 0);

  at.open = false; // a stall after the pause
  const auto step = exe.submit(net.batch(0, 6));
  stalls.wait_for(1);
  at.open = true;
  exe.wait(step);
  exe.run(net.batch(0, 6));
  CHECK(stalls.count() == 1); // its end is none
}

TEST_CASE("a step in slow motion has stalled when it does not go on") {
  const auto net = make_mlp();
  gate at{.open = true};
  auto options = options_for(net);
  options.kernels = at.kernels();
  executor exe{net.main, options};
  const level_request looks{exe.trace(), trace_level::ops};
  told_texts told, stalls;
  const step_watchdog dog{exe,
                          200ms,
                          [&](const std::string& text) { told.add(text); },
                          {.stalled = [&] { stalls.add(""); }}};
  exe.pace().delay_ops(40ms);
  exe.run(net.batch(0, 6)); // of more ops than fit into the limit
  CHECK(contains(told.wait_for(1)[0], "slow motion: "));
  CHECK(stalls.count() == 0);
  at.open = false;
  const auto step = exe.submit(net.batch(0, 6));
  stalls.wait_for(1);
  at.open = true;
  exe.pace().delay_ops(0ms);
  exe.wait(step);
}

TEST_CASE("the end of a last step that took too long is told") {
  const auto net = make_mlp();
  gate at;
  auto options = options_for(net);
  options.kernels = at.kernels();
  executor exe{net.main, options};
  told_texts told;
  {
    const auto dog = watch(exe, told, 100ms);
    const auto step = exe.submit(net.batch(0, 6));
    told.wait_for(1);
    at.open = true;
    exe.wait(step);
  }
  REQUIRE(told.count() == 2);
  CHECK(contains(told.wait_for(2)[1], "step 0 has ended after "));
}

TEST_CASE("a step that took too long and failed has not just ended") {
  const auto net = make_mlp();
  gate at;
  at.fails = true;
  auto options = options_for(net);
  options.kernels = at.kernels();
  executor exe{net.main, options};
  told_texts told;
  const auto dog = watch(exe, told, 100ms);
  const auto step = exe.submit(net.batch(0, 6));
  told.wait_for(1);
  at.open = true;
  CHECK_THROWS_AS(exe.wait(step), error);
  CHECK(contains(told.wait_for(2)[1], "step 0 has failed after "));
}

TEST_CASE("a feed that does not come is named, and when it has come") {
  const auto net = make_mlp();
  executor exe{net.main, options_for(net)};
  told_texts told;
  data_wait waits;
  const step_watchdog dog{exe,
                          100ms,
                          [&](const std::string& text) { told.add(text); },
                          {.data = &waits}};
  exe.run(net.batch(0, 6));
  waits.begin(1);
  const auto first = told.wait_for(1)[0];
  CAPTURE(first);
  CHECK(contains(first, "slow feed: step 1 waits for feed for "));
  waits.end();
  CHECK(contains(told.wait_for(2)[1], "step 1 has its feed after "));
  waits.begin(2);
  CHECK(contains(told.wait_for(3)[2], "slow feed: step 2 waits for feed"));
}

TEST_CASE("a worker that does not come is named") {
  const auto net = make_mlp();
  caf::actor_system_config config;
  std::atomic<bool> open{false};
  std::atomic<int> inside{0};
  told_texts told;
  const auto owned = make_actor_system(config, 1);
  auto& system = *owned;
  auto options = options_for(net);
  options.system = &system;
  executor exe{net.main, options};
  const auto hog = [&](caf::event_based_actor*) {
    ++inside;
    while (!open)
      std::this_thread::sleep_for(1ms);
  };
  system.spawn(hog); // the worker and the stand-in, in whatever order
  system.spawn(hog);
  while (inside < 2)
    std::this_thread::sleep_for(1ms);
  const auto dog = watch(exe, told, 100ms);
  const auto step = exe.submit(net.batch(0, 6));
  const auto first = told.wait_for(1)[0];
  CAPTURE(first);
  open = true;
  exe.wait(step);
  CHECK(contains(first, "stuck worker: no worker has come to stream "));
  CHECK(contains(first, ", is ready"));
}

TEST_CASE("a collective names its tensor and the rank that is missing") {
  const auto net = make_mlp();
  int until_told[2];
  REQUIRE(::pipe(until_told) == 0);
  process_group run{
    2, [&](node_options node) -> std::string {
      auto options = options_over(2, graph::merge_strategy::all_reduce);
      options.parameters = net.parameters();
      options.nodes = node;
      executor exe{net.main, options};
      exe.run(exe.own_share(net.batch(0, 6)));
      if (node.process == 1) { // makes no further step until the test is over
        ::close(until_told[1]);
        char byte = 0;
        (void)!::read(until_told[0], &byte, 1);
        return "";
      }
      told_texts told;
      const step_watchdog dog{exe,
                              100ms,
                              [&](const std::string& text) { told.add(text); },
                              {.rank = 0}};
      exe.submit(exe.own_share(net.batch(0, 6)));
      return told.wait_for(1)[0];
    }};
  const auto text = run.wait(0).last_word;
  ::close(until_told[0]);
  ::close(until_told[1]);
  run.wait(1);
  CAPTURE(text);
  // The first collective of a step adds up the ranks' samples.
  CHECK(contains(text, "lost message: "));
  CHECK(contains(text, "@cpu:0 (all_reduce of samples) waits for rank 1; "
                       "rank 0 has arrived"));
}

TEST_CASE("a rank that waits for one that is paused says so, and has not "
          "stalled") {
  const auto net = make_mlp();
  int until_told[2];
  REQUIRE(::pipe(until_told) == 0);
  process_group run{
    2, [&](node_options node) -> std::string {
      auto options = options_over(2, graph::merge_strategy::all_reduce);
      options.parameters = net.parameters();
      options.nodes = node;
      executor exe{net.main, options};
      if (node.process == 1) {
        exe.pace().pause();
        ::close(until_told[1]);
        char byte = 0;
        (void)!::read(until_told[0], &byte, 1);
        return "";
      }
      exe.submit(exe.own_share(net.batch(0, 6)));
      while (exe.why().paused.empty())
        std::this_thread::sleep_for(1ms);
      told_texts told, stalls;
      const step_watchdog dog{exe,
                              20ms,
                              [&](const std::string& text) { told.add(text); },
                              {.rank = 0, .stalled = [&] { stalls.add(""); }}};
      return told.wait_for(1)[0] + std::to_string(stalls.count());
    }};
  const auto text = run.wait(0).last_word;
  ::close(until_told[0]);
  ::close(until_told[1]);
  run.wait(1);
  CAPTURE(text);
  CHECK(contains(text, "paused: "));
  CHECK(
    contains(text, " waits for rank 1, which is paused; rank 0 has arrived"));
  CHECK(text.ends_with(")0"));
}

TEST_CASE("steps that end accuse nobody, and neither does an idle executor") {
  const auto net = make_mlp();
  executor exe{net.main, options_for(net)};
  told_texts told;
  {
    const auto dog = watch(exe, told, 300ms);
    for (const auto until = std::chrono::steady_clock::now() + 1s;
         std::chrono::steady_clock::now() < until;)
      exe.run(net.batch(0, 6));
    std::this_thread::sleep_for(1s); // nothing to do
    for (int i = 0; i < 5; ++i)
      exe.run(net.batch(0, 6));
  }
  CHECK(told.count() == 0);
}

TEST_CASE("a watchdog ends while it watches a stuck step") {
  const auto net = make_mlp();
  gate at;
  auto options = options_for(net);
  options.kernels = at.kernels();
  executor exe{net.main, options};
  told_texts told;
  std::optional<step_id> step;
  {
    const auto dog = watch(exe, told, 1h);
    step = exe.submit(net.batch(0, 6));
  }
  at.open = true;
  exe.wait(*step);
  CHECK(told.count() == 0);
}

} // TEST_SUITE("actors.tracing.step_watchdog")
