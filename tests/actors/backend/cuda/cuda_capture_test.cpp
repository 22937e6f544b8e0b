// SPDX-License-Identifier: Apache-2.0
#include <actors/backend/cuda/cuda_feeds.hpp>
#include <actors/backend/cuda/cuda_options.hpp>
#include <actors/small_nets.hpp>
#include <kernels/cuda/cuda_rig.hpp>
#include <support/caught.hpp>
#include <support/long_run.hpp>

#include <troupe/actors/executor.hpp>
#include <troupe/actors/steps/captured_steps.hpp>
#include <troupe/base/event_reader.hpp>
#include <troupe/graph/models.hpp>
#include <troupe/graph/network.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

using test::caught;
using test::make_pretend_driver;
using test::make_test_driver;
using test::mishap;
using test::on_cuda;
using test::says;

TEST_SUITE("actors.backend.cuda_capture") {

namespace {

/// Steps that run by actors before one is recorded.
constexpr std::uint64_t steps_before = 2;

executor_options on_one(std::shared_ptr<cuda::driver> api, bool capture,
                        wait_mode waits_by = wait_mode::event) {
  auto made =
    on_cuda(std::move(api), 1, graph::merge_strategy::all_reduce, {waits_by});
  made.capture = capture;
  return made;
}

tensor rate_of_step(std::uint64_t step) {
  static arena memory{make_host_memory_source()};
  auto rate = tensor::make(memory, {1}, dtype::float32);
  rate.data<float>()[0] = 0.01f / static_cast<float>(1 + step / 5);
  return rate;
}

struct outcome {
  std::vector<double> losses;
  std::shared_ptr<scope> parameters;
  std::uint64_t captured = 0;
  std::string not_captured;
};

/// Trains with a learning rate that falls.
outcome train_with_schedule(const test::small_net& net,
                            executor_options options,
                            const std::vector<std::int64_t>& batches) {
  outcome found;
  found.parameters = options.parameters = net.parameters();
  executor exe{net.main, std::move(options)};
  std::uint64_t step = 0;
  for (auto samples : batches) {
    auto feeds = net.batch(step, samples);
    if (net.main.main().find_var("learning_rate_0"))
      feeds["learning_rate_0"] = rate_of_step(step);
    ++step;
    found.losses.push_back(exe.run(feeds).loss);
  }
  found.captured = exe.stats().captured_steps;
  found.not_captured = exe.stats().not_captured;
  exe.synchronize_parameters();
  return found;
}

/// Gives the device the parameters that it had at first.
void set_parameters(executor& exe, const test::small_net& net, device& on) {
  const auto initial = net.parameters();
  for (auto& name : initial->names())
    if (auto* held = exe.parameters().replica(0).find(name);
        held && held->has_value())
      held->set(on.to_device(initial->find(name)->as_tensor()));
}

std::vector<double> losses_of(executor& exe, const test::small_net& net,
                              std::uint64_t steps) {
  std::vector<double> found;
  for (std::uint64_t step = 0; step < steps; ++step)
    found.push_back(exe.run(net.batch(step, 7)).loss);
  return found;
}

} // namespace

TEST_CASE("captured steps have the bits of steps that are not captured") {
  std::uint64_t seed = 0;
  const auto compare = [&](const test::small_net& net, std::size_t steps,
                           wait_mode waits_by) {
    CAPTURE(net.name);
    const std::vector<std::int64_t> batches(steps, 6);
    const auto wanted = train_with_schedule(
      net, on_one(make_test_driver(), false, waits_by), batches);
    const auto found = train_with_schedule(
      net, on_one(make_test_driver(++seed), true, waits_by), batches);
    CHECK(wanted.captured == 0);
    CHECK(wanted.not_captured == "");
    CHECK(found.captured == steps - steps_before);
    CHECK(found.not_captured == "");
    CHECK(found.losses == wanted.losses);
    CHECK(test::bit_equal(*found.parameters, *wanted.parameters));
  };
  for (auto waits_by : {wait_mode::event, wait_mode::block})
    for (const auto& net : {test::make_mlp(), test::make_dropout_net()})
      compare(net, 50, waits_by);
  for (const auto& net :
       {test::make_lenet(), test::make_resnet(true), test::make_word2vec()})
    compare(net, test::is_long_run() ? 50 : 8, wait_mode::event);
}

TEST_CASE("captured steps of built-in nets have the bits of others") {
  std::vector<std::string> names{"digits", "word2vec"};
  if (test::is_long_run())
    names.insert(names.end(), {"gpt", "lenet", "resnet8"});
  for (const auto& name : names) {
    CAPTURE(name);
    const auto net = graph::build_model(name);
    const auto losses = [&](bool capture) {
      auto options = on_one(make_test_driver(), capture);
      options.parameters = std::make_shared<scope>();
      run_startup(net.startup, *options.parameters, 3);
      executor exe{net.main, std::move(options)};
      const auto feeds = test::feeds_of(net, 1);
      std::vector<double> found;
      for (int step = 0; step < 5; ++step)
        found.push_back(exe.run(feeds).loss);
      CHECK(exe.stats().captured_steps == (capture ? 3 : 0));
      CHECK(exe.stats().not_captured == "");
      return found;
    };
    CHECK(losses(true) == losses(false));
  }
}

TEST_CASE("a step with feeds of other shapes is recorded when it comes again") {
  const auto net = test::make_dropout_net();
  const std::vector<std::int64_t> batches{13, 13, 13, 13, 1,  13, 13, 5,
                                          5,  5,  5,  13, 13, 13, 13};
  const auto wanted =
    train_with_schedule(net, on_one(make_test_driver(), false), batches);
  const auto found =
    train_with_schedule(net, on_one(make_test_driver(), true), batches);
  CHECK(found.losses == wanted.losses);
  CHECK(test::bit_equal(*found.parameters, *wanted.parameters));
  CHECK(found.captured == 2 + 2 + 2 + 2);
}

TEST_CASE("captured steps overlap, and end without a thread that waits") {
  const auto net = test::make_dropout_net();
  const std::vector<std::int64_t> batches(20, 9);
  auto with = on_one(make_test_driver(), true);
  auto without = on_one(make_test_driver(), false);
  with.steps_in_flight = without.steps_in_flight = 3;
  const auto wanted = test::train(net, without, batches);
  const auto found = test::train(net, with, batches);
  CHECK(found.losses == wanted.losses);
  CHECK(test::bit_equal(*found.parameters, *wanted.parameters));

  with.parameters = net.parameters();
  executor exe{net.main, with};
  std::vector<std::future<step_result>> ends;
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < batches.size(); ++step)
    ends.push_back(exe.run_async(net.batch(step, 9)));
  for (auto& end : ends)
    losses.push_back(end.get().loss);
  CHECK(losses == wanted.losses);
  CHECK(exe.stats().captured_steps == batches.size() - steps_before);
}

TEST_CASE("what captured steps fetch is the value of each step") {
  const auto net = test::make_mlp();
  std::vector<std::string> names;
  for (auto& op : net.main.main().ops)
    if (op.type == "relu" || op.type == "elementwise_add")
      names.push_back(op.output("Out").front());
  REQUIRE(names.size() > 1);
  const auto values = [&](std::uint64_t seed, bool capture) {
    auto options = on_one(make_test_driver(seed), capture);
    options.parameters = net.parameters();
    options.fetches = names;
    executor exe{net.main, options};
    std::vector<std::vector<float>> found;
    std::vector<step_result> kept; // their values stay
    for (std::uint64_t step = 0; step < 6; ++step)
      kept.push_back(exe.run(net.batch(step, 13), names));
    for (auto& result : kept)
      for (auto& name : names) {
        const auto all = result.fetched.at(name)[0].values<float>();
        found.emplace_back(all.begin(), all.end());
      }
    // A step that fetches less is another one.
    exe.run(net.batch(0, 13));
    CHECK(exe.stats().captured_steps == (capture ? 4 : 0));
    return found;
  };
  const auto wanted = values(1, false);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    CHECK(values(seed, true) == wanted);
  }
}

TEST_CASE("captured steps see parameters that were replaced between them") {
  const auto net = test::make_dropout_net();
  const auto losses = [&](bool capture) {
    auto options = on_one(make_test_driver(), capture);
    options.parameters = net.parameters();
    executor exe{net.main, options};
    auto found = losses_of(exe, net, 5);
    const auto before = exe.stats().captured_steps;
    set_parameters(exe, net, *options.hooks.device_instances.front());
    for (auto loss : losses_of(exe, net, 3))
      found.push_back(loss);
    CHECK(exe.stats().captured_steps == (capture ? before + 3 : 0));
    return std::pair{found, test::values_of(exe.parameters())};
  };
  CHECK(losses(true) == losses(false));
}

// The view makes the op that adds 1 take new memory.
TEST_CASE("captured steps find a parameter that an op moves in each step") {
  graph::network net;
  auto& main = net.main.main();
  main.add_var({.name = "w", .dims = {4}, .persistable = true});
  net.temporary("view");
  main.ops.emplace_back().type = "reshape2";
  main.ops.back().set_input("X", {"w"});
  main.ops.back().set_output("Out", {"view"});
  main.ops.back().attributes = {{"shape", std::vector<std::int32_t>{2, 2}}};
  main.ops.emplace_back().type = "scale";
  main.ops.back().set_input("X", {"w"});
  main.ops.back().set_output("Out", {"w"});
  main.ops.back().attributes = {{"scale", 2.0f}, {"bias", 1.0f}};
  static arena memory{make_host_memory_source()};
  auto initial = tensor::make(memory, {4}, dtype::float32);
  std::ranges::fill(initial.values<float>(), 0.0f);
  auto options = on_one(make_test_driver(), true);
  options.fetches = {"w", "view"};
  options.parameters = std::make_shared<scope>();
  options.parameters->var("w").set(initial);
  executor exe{net.main, options};
  float wanted = 0;
  for (int step = 0; step < 7; ++step) {
    const auto result = exe.run({}, options.fetches);
    CHECK(result.fetched.at("view")[0].values<float>()[3] == wanted);
    wanted = 2 * wanted + 1;
    CHECK(result.fetched.at("w")[0].values<float>()[0] == wanted);
  }
  CHECK(exe.stats().not_captured == "");
  CHECK(exe.stats().captured_steps == 5);
  const auto& held = options.parameters->find("w")->as_tensor();
  CHECK(options.parameters->to_host(held, memory).values<float>()[1] == wanted);
}

TEST_CASE("executors that share parameters capture their steps in turn") {
  const auto net = test::make_mlp();
  const auto losses = [&](bool capture) {
    const auto api = make_test_driver();
    auto options = on_one(api, capture);
    options.parameters = net.parameters();
    executor trains{net.main, options}, also{net.main, options};
    auto evaluation = options;
    evaluation.loss = net.loss;
    executor evaluates{net.evaluation, evaluation};
    std::vector<double> found;
    for (std::uint64_t step = 0; step < 6; ++step)
      for (auto* exe : {&trains, &evaluates, &also})
        found.push_back(exe->run(net.batch(step, 7)).loss);
    for (auto* exe : {&trains, &evaluates, &also})
      CHECK(exe->stats().captured_steps == (capture ? 4 : 0));
    return found;
  };
  CHECK(losses(true) == losses(false));
}

TEST_CASE("an executor is destroyed while a captured step runs") {
  const auto net = test::make_mlp();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    auto options = on_one(make_test_driver(seed), true);
    options.parameters = net.parameters();
    executor exe{net.main, options};
    losses_of(exe, net, 4);
    exe.submit(net.batch(4, 7));
    exe.submit(net.batch(5, 7));
    CHECK(exe.stats().captured_steps == 4);
  }
}

TEST_CASE(
  "a captured step that is cancelled or fails ends, and others follow") {
  const auto net = test::make_mlp();
  auto options = on_one(make_test_driver(), true);
  options.parameters = net.parameters();
  executor exe{net.main, options};
  losses_of(exe, net, 4);
  auto bad = net.batch(0, 7);
  bad["label"].data<std::int64_t>()[3] = 4;
  CHECK(caught([&] { exe.run(bad); }).code() == errc::out_of_range);
  for (double loss : losses_of(exe, net, 4))
    CHECK(std::isfinite(loss));
  CHECK(exe.stats().captured_steps == 2 + 1 + 2);
  exe.submit(net.batch(1, 7));
  exe.cancel();
  exe.submit(net.batch(2, 7));
}

TEST_CASE("a captured step says what it waits for") {
  const auto net = test::make_mlp();
  auto options = on_one(make_test_driver(), true);
  options.parameters = net.parameters();
  executor exe{net.main, options};
  losses_of(exe, net, 3);
  for (std::uint64_t step = 3; step < 40; ++step) {
    const auto id = exe.submit(net.batch(step, 7));
    if (const auto chain = exe.why(); !chain.links.empty()) // not ended yet
      CHECK(actors::to_string(chain)
            == "captured step@cuda:0, step " + std::to_string(id)
                 + ": was launched on stream compute and is not complete\n");
    exe.wait(id);
  }
  CHECK(exe.why().links.empty());
}

TEST_CASE("steps run by actors while somebody records their ops") {
  const auto net = test::make_mlp();
  auto options = on_one(make_test_driver(), true);
  options.parameters = net.parameters();
  executor exe{net.main, options};
  losses_of(exe, net, 4);
  CHECK(exe.stats().captured_steps == 2);
  {
    const level_request wanted{exe.trace(), trace_level::ops};
    losses_of(exe, net, 3);
    CHECK(exe.stats().captured_steps == 2);
  }
  losses_of(exe, net, 3);
  CHECK(exe.stats().captured_steps == 5);
}

TEST_CASE(
  "an op that cannot be captured is named, and its steps run by actors") {
  graph::network net;
  auto& main = net.main.main();
  const auto add = [&](const char* type, const std::string& out) {
    net.temporary(out);
    main.find_var(out)->dims = {-1};
    main.ops.emplace_back().type = type;
    main.ops.back().set_output("Out", {out});
  };
  const auto add_number = [&](const std::string& name, float value) {
    add("fill_constant", name);
    main.ops.back().attributes = {{"shape", std::vector<std::int64_t>{1}},
                                  {"value", value}};
  };
  add_number("start", 0);
  add_number("end", 3);
  add_number("step", 1);
  add("range", "numbers");
  main.ops.back().set_input("Start", {"start"});
  main.ops.back().set_input("End", {"end"});
  main.ops.back().set_input("Step", {"step"});
  auto options = on_one(make_test_driver(), true);
  options.fetches = {"numbers"};
  executor exe{net.main, options};
  for (int step = 0; step < 6; ++step) {
    const auto result = exe.run({}, options.fetches);
    const auto values = result.fetched.at("numbers")[0].values<float>();
    CHECK(std::vector<float>(values.begin(), values.end())
          == std::vector<float>{0, 1, 2});
  }
  CHECK(exe.stats().captured_steps == 0);
  const auto why = exe.stats().not_captured;
  CAPTURE(why);
  CHECK(why.find("type range") != std::string::npos);
  CHECK(why.find("the host waits for a number") != std::string::npos);
  // No step has failed, and each has begun and ended once.
  const auto events =
    event_reader{exe.trace(), event_reader::start::oldest}.take();
  const auto count = [&](event_kind kind) {
    return std::ranges::count(events, kind, &trace_event::kind);
  };
  CHECK(count(event_kind::failure) == 0);
  CHECK(count(event_kind::step_begin) == 6);
  CHECK(count(event_kind::step_end) == 6);
}

TEST_CASE(
  "a call of the driver that fails ends a step with one error at most") {
  if (test::tests_use_gpu())
    return; // a GPU's driver fails no call on request
  const auto net = test::make_mlp();
  const auto untroubled = [&] {
    auto options = on_one(make_pretend_driver(), false);
    options.parameters = net.parameters();
    executor exe{net.main, options};
    return losses_of(exe, net, 4);
  }();
  // The call is one of the step that is recorded and launched, or of the next.
  for (std::uint64_t steps : {2u, 3u}) {
    CAPTURE(steps);
    std::uint64_t errors = 0, by_actors = 0;
    const std::uint64_t stride = test::is_long_run() ? 1 : 5;
    for (std::uint64_t k = 0;; k += stride) {
      CAPTURE(k);
      const auto api = make_pretend_driver({.seed = k + 1});
      auto options = on_one(api, true);
      options.parameters = net.parameters();
      executor exe{net.main, options};
      losses_of(exe, net, steps);
      api->set(mishap::call_fails, k);
      std::optional<double> loss;
      try {
        loss = exe.run(net.batch(steps, 7)).loss;
      } catch (const error& e) {
        CHECK(e.code() == errc::kernel_failure);
        ++errors;
      }
      const auto calls = api->calls();
      api->set(mishap::none, 0);
      if (loss)
        CHECK(*loss == untroubled[steps]);
      by_actors += !exe.stats().not_captured.empty();
      set_parameters(exe, net, *options.hooks.device_instances.front());
      CHECK(losses_of(exe, net, 4) == untroubled);
      if (calls <= k)
        break;
    }
    CHECK(errors > 0);
    CHECK((by_actors > 0) == (steps == 2));
  }
}

TEST_CASE("a wait that a recording lacks is found") {
  if (test::tests_use_gpu())
    return;
  const auto net = test::make_mlp();
  const auto losses = [&](std::uint64_t seed, std::uint64_t left_out) {
    const auto api = make_pretend_driver({.seed = seed});
    auto options = on_one(api, true);
    options.parameters = net.parameters();
    options.threads = 1; // so that runs differ little
    executor exe{net.main, options};
    auto found = losses_of(exe, net, 2);
    api->set(mishap::wait_forgotten, left_out);
    found.push_back(exe.run(net.batch(2, 7)).loss); // recorded
    const auto waits = api->calls();
    api->set(mishap::none, 0);
    found.push_back(exe.run(net.batch(3, 7)).loss);
    found.push_back(exe.run(net.batch(4, 7)).loss);
    return std::pair{found, waits};
  };
  const auto [wanted, waits] = losses(1, ~std::uint64_t{0});
  CHECK(waits > 6);
  std::uint64_t found = 0, tried = 0;
  const std::uint64_t stride = test::is_long_run() ? 1 : 4;
  for (std::uint64_t wait = 0; wait < waits; wait += stride, ++tried)
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      try {
        if (losses(seed, wait).first == wanted)
          continue;
      } catch (const error&) {
        // a label that has not arrived is no class
      }
      ++found;
      break;
    }
  // Others imply some. Most are found; how many depends on the order of
  // launches, which varies least on a slow host.
  CHECK(found * 4 >= tried);
}

TEST_CASE("what keeps steps from being captured is named") {
  const auto net = test::make_mlp();
  const auto reason = [&](executor_options options) {
    options.parameters = net.parameters();
    executor exe{net.main, std::move(options)};
    losses_of(exe, net, 4);
    CHECK(exe.stats().captured_steps == 0);
    return exe.stats().not_captured;
  };
  CHECK(reason(on_cuda(make_test_driver(), 2))
        == "only steps of one device are captured");
  executor_options on_cpu;
  CHECK(reason(on_cpu) == "");
  const graph::ssa_graph none;
  on_cpu.accumulate = 2;
  CHECK(actors::captured_steps::obstacle(on_cpu, none)
        == "gradients are added up over several steps");
}

} // TEST_SUITE("actors.backend.cuda_capture")

} // namespace troupe
