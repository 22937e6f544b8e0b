// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("actors.run_pace") {

namespace {

bool is_done(const std::future<step_result>& step) {
  return step.wait_for(0s) == std::future_status::ready;
}

} // namespace

TEST_CASE("a step waits while the run is paused, and single steps pass") {
  const auto net = make_mlp();
  executor_options o;
  o.parameters = net.parameters();
  executor exe(net.main, o);
  exe.pace().pause();
  CHECK(exe.pace().is_paused());
  auto first =
    std::async(std::launch::async, [&] { return exe.run(net.batch(1, 4)); });
  std::this_thread::sleep_for(20ms);
  CHECK_FALSE(is_done(first));
  exe.pace().admit_step();
  CHECK(first.get().step == 0);
  auto second =
    std::async(std::launch::async, [&] { return exe.run(net.batch(1, 4)); });
  std::this_thread::sleep_for(20ms);
  CHECK_FALSE(is_done(second)); // one step was let through, no more
  exe.pace().resume();
  CHECK(second.get().step == 1);
  CHECK(exe.run(net.batch(1, 4)).step == 2);
}

TEST_CASE("a paused run can be cancelled, and can go on afterwards") {
  const auto net = make_mlp();
  executor_options o;
  o.parameters = net.parameters();
  executor exe(net.main, o);
  exe.pace().pause();
  auto waiting = std::async(std::launch::async, [&] {
    return caught([&] { exe.run(net.batch(1, 4)); }).code();
  });
  while (waiting.wait_for(1ms) != std::future_status::ready)
    exe.cancel(); // the step may not have come to its wait yet
  CHECK(waiting.get() == errc::cancelled);
  exe.pace().resume();
  CHECK(exe.run(net.batch(1, 4)).losses.size() == 1);
}

TEST_CASE("delayed ops begin later, and compute the same") {
  const auto net = make_mlp();
  const auto train = [&](std::chrono::milliseconds delay) {
    executor_options o;
    o.parameters = net.parameters();
    o.hooks.trace = trace_level::ops;
    executor exe(net.main, o);
    exe.pace().delay_ops(delay);
    const auto begin = std::chrono::steady_clock::now();
    const auto loss = exe.run(net.batch(1, 4)).loss;
    return std::pair{loss, std::chrono::steady_clock::now() - begin};
  };
  const auto [fast_loss, fast] = train(0ms);
  const auto [slow_loss, slow] = train(2ms);
  CHECK(fast_loss == slow_loss);
  CHECK(slow >= 5 * 2ms); // the net has more ops, one after the other
}

TEST_CASE("an op that is delayed is known, with its step and worker") {
  const auto net = make_mlp();
  executor_options o;
  o.parameters = net.parameters();
  o.hooks.trace = trace_level::ops;
  executor exe(net.main, o);
  CHECK(exe.pace().delayed_ops().empty());
  exe.pace().delay_ops(1h);
  const auto step = exe.submit(net.batch(1, 4));
  std::vector<delayed_op> delayed;
  while (delayed.empty())
    delayed = exe.pace().delayed_ops();
  CHECK(delayed[0].step == step);
  const auto link = exe.why(delayed[0].handle).links.at(0);
  CHECK(link.how_far == actors::progress::runs); // the same words
  CHECK(link.worker == delayed[0].worker);
  exe.pace().delay_ops(0ms);
  while (exe.stats().steps <= step) {
    exe.pace().interrupt(); // an op may begin to wait after an interrupt
    std::this_thread::sleep_for(1ms);
  }
  exe.wait(step);
  CHECK(exe.pace().delayed_ops().empty());
}

} // TEST_SUITE("actors.run_pace")
