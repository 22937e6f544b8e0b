// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>
#include <troupe/base/clock.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/skip_case.hpp>
#include <support/sleeping_threads.hpp>

#include <troupe/actors/plain_executor.hpp>
#include <troupe/actors/workers/sharing_choice.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/graph/layers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;

namespace {

std::vector<device_id> cpus(int count) {
  return parse_devices("cpu:" + std::to_string(count));
}

/// Losses of the plain executor on one device.
std::vector<double> oracle_losses(const small_net& net, int steps,
                                  std::int64_t samples) {
  plain_executor oracle{net.main, {.parameters = net.parameters()}};
  std::vector<double> losses;
  for (int s = 0; s < steps; ++s)
    losses.push_back(oracle.run(net.batch(0, samples)).loss);
  return losses;
}

executor_options options_for(const small_net& net, int devices) {
  executor_options o;
  o.devices = cpus(devices);
  o.parameters = net.parameters();
  return o;
}

bool equal(const tensor& a, const tensor& b) {
  const auto x = a.values<float>();
  const auto y = b.values<float>();
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

/// The error of a step if the first element of a parameter is NaN.
error failure_of_nan(const small_net& net, const char* parameter) {
  auto options = options_for(net, 1);
  options.hooks.check_nan = true;
  executor exe{net.main, options};
  exe.run(net.batch(0, 4));
  exe.parameters().find(parameter)->as_tensor().values<float>()[0] = NAN;
  return caught([&] { exe.run(net.batch(0, 4)); });
}

std::vector<small_net> nets_without_device_statistics() {
  return {make_mlp(), make_lenet(), make_resnet(false), make_word2vec()};
}

} // namespace

TEST_SUITE("actors.executor") {

TEST_CASE("losses on 1, 2 and 4 devices match the plain executor's") {
  for (auto& net : nets_without_device_statistics()) {
    CAPTURE(net.name);
    const auto expected = oracle_losses(net, 20, 24);
    REQUIRE(expected.back() < 0.9 * expected.front());
    for (int devices : {1, 2, 4})
      for (auto strategy :
           {graph::merge_strategy::all_reduce, graph::merge_strategy::reduce,
            graph::merge_strategy::replicate}) {
        CAPTURE(devices);
        CAPTURE(to_string(strategy));
        auto options = options_for(net, devices);
        options.strategy = strategy;
        executor exe{net.main, options};
        for (auto loss : expected)
          CHECK(exe.run(net.batch(0, 24)).loss
                == doctest::Approx(loss).epsilon(1e-5));
      }
  }
}

TEST_CASE("a persistable variable that is fed keeps its value on all devices") {
  const auto net = make_mlp();
  arena memory{make_host_memory_source()};
  auto rate = tensor::make(memory, {1}, dtype::float32);
  rate.data<float>()[0] = 0;
  auto feeds = net.batch(1, 6);
  feeds.emplace("learning_rate_0", rate);
  for (int devices : {1, 3}) {
    auto options = options_for(net, devices);
    options.fetches = {"fc_0.w_0"};
    executor exe{net.main, options};
    // The second step is submitted while one that reads the old rate runs.
    const auto first = exe.submit(net.batch(0, 6), options.fetches);
    const auto second = exe.submit(feeds, options.fetches);
    const auto moved = exe.wait(first).fetched.at("fc_0.w_0");
    const auto kept = exe.wait(second).fetched.at("fc_0.w_0");
    const auto still =
      exe.run(net.batch(2, 6), options.fetches).fetched.at("fc_0.w_0");
    CHECK_FALSE(equal(moved[0], net.parameters()->var("fc_0.w_0").as_tensor()));
    for (std::size_t d = 0; d < moved.size(); ++d) {
      CHECK(equal(moved[d], kept[d]));
      CHECK(equal(moved[d], still[d]));
    }
  }
}

TEST_CASE("a feed without a batch dimension is given whole to every device") {
  graph::network net;
  const auto x = net.data("x", {-1, 3});
  const auto scaled = layers::add(x, net.data("heat", {1}));
  arena memory{make_host_memory_source()};
  auto batch = tensor::make(memory, {4, 3}, dtype::float32);
  std::ranges::fill(batch.values<float>(), 2.0f);
  auto heat = tensor::make(memory, {1}, dtype::float32);
  heat.data<float>()[0] = 3;
  const feed_map feeds{{"x", batch}, {"heat", heat}};
  const std::vector<std::string> wanted{scaled.name()};
  executor exe{net.main, {.devices = cpus(2), .fetches = wanted}};
  plain_executor plain{net.main, {.devices = cpus(2)}};
  for (const auto& result :
       {exe.run(feeds, wanted), plain.run(feeds, wanted)}) {
    const auto merged = result.merged(scaled.name());
    CHECK(merged.dims() == shape{4, 3});
    CHECK(std::ranges::all_of(merged.values<float>(),
                              [](float v) { return v == 5; }));
  }
}

TEST_CASE("a fed persistable variable must have its declared shape") {
  const auto net = make_mlp();
  arena memory{make_host_memory_source()};
  executor exe{net.main, options_for(net, 2)};
  auto feeds = net.batch(0, 6);
  feeds.insert_or_assign("learning_rate_0",
                         tensor::make(memory, {2}, dtype::float32));
  const error e = caught([&] { exe.run(feeds); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "learning_rate_0"));
}

TEST_CASE("uneven batches on 4 devices weigh all samples equally") {
  for (auto& net : nets_without_device_statistics())
    for (std::int64_t samples : {1, 3, 7, 10}) {
      CAPTURE(net.name);
      CAPTURE(samples);
      plain_executor oracle{net.main, {.parameters = net.parameters()}};
      executor exe{net.main, options_for(net, 4)};
      for (int step = 0; step < 3; ++step) {
        const auto feeds = net.batch(static_cast<std::uint64_t>(step), samples);
        const auto expected = oracle.run(feeds);
        const auto got = exe.run(feeds);
        CHECK(got.loss == doctest::Approx(expected.loss).epsilon(1e-5));
        CHECK(got.samples.size() == 4);
      }
      CHECK(relative_difference(values_of(oracle.parameters()),
                                values_of(exe.parameters()))
            < 1e-3);
    }
}

TEST_CASE("a device without samples reports no loss") {
  auto net = make_mlp();
  executor exe{net.main, options_for(net, 4)};
  const auto result = exe.run(net.batch(0, 3));
  CHECK(result.samples == std::vector<std::int64_t>{1, 1, 1, 0});
  CHECK(std::isnan(result.losses[3]));
  CHECK(std::isfinite(result.loss));
}

TEST_CASE("edge form and number of steps in flight do not change results") {
  for (auto& net : {make_lenet(), make_resnet(true), make_word2vec()}) {
    CAPTURE(net.name);
    auto train = [&](edge_form form, std::uint32_t in_flight) {
      auto options = options_for(net, 3);
      options.hooks.form = form;
      options.steps_in_flight = in_flight;
      executor exe{net.main, options};
      std::vector<step_id> under_way;
      for (std::uint64_t s = 0; s < 6; ++s)
        under_way.push_back(exe.submit(net.batch(s, 10)));
      for (auto id : under_way)
        exe.wait(id);
      return options.parameters;
    };
    const auto first = train(edge_form::counter, 2);
    CHECK(bit_equal(*first, *train(edge_form::counter, 2)));
    CHECK(bit_equal(*first, *train(edge_form::message, 2)));
    CHECK(bit_equal(*first, *train(edge_form::mixed, 2)));
    CHECK(bit_equal(*first, *train(edge_form::counter, 1)));
    CHECK(bit_equal(*first, *train(edge_form::counter, 4)));
    CHECK_FALSE(bit_equal(*first, *net.parameters()));
  }
}

TEST_CASE("pending ops and message edges do not change results") {
  const auto net = make_resnet(true);
  const auto train = [&](std::size_t pending, std::size_t messages) {
    auto options = options_for(net, 2);
    options.hooks.pending_ops = pending;
    options.hooks.message_edges = messages;
    executor exe{net.main, options};
    const auto ops = static_cast<std::size_t>(std::ranges::count(
      exe.graph().ops, graph::op_kind::computation, &graph::op_handle::kind));
    const auto stats = exe.stats();
    CHECK(stats.pending_ops == std::min(pending, ops));
    CHECK(stats.message_edges <= stats.messages_per_step);
    if (messages < stats.messages_per_step / 2)
      CHECK(stats.message_edges == messages);
    for (std::uint64_t s = 0; s < 4; ++s)
      exe.run(net.batch(s, 10));
    return options.parameters;
  };
  const auto plain = train(0, 0);
  CHECK(bit_equal(*plain, *train(1, 1)));
  CHECK(bit_equal(*plain, *train(7, 0)));
  CHECK(bit_equal(*plain, *train(0, 9)));
  CHECK(bit_equal(*plain, *train(1'000'000, 1'000'000)));
}

TEST_CASE("replicas hold the same parameters after training") {
  for (auto strategy :
       {graph::merge_strategy::all_reduce, graph::merge_strategy::reduce}) {
    auto net = make_lenet();
    auto options = options_for(net, 2);
    options.strategy = strategy;
    options.lowering.share_parameters = false;
    executor exe{net.main, options};
    for (std::uint64_t s = 0; s < 3; ++s)
      exe.run(net.batch(s, 8));
    auto& first = exe.parameters();
    const auto initial = net.parameters();
    int compared = 0;
    for (auto& name : first.names()) {
      if (!net.main.main().var(name).is_parameter)
        continue;
      CAPTURE(name);
      const auto& trained = first.find(name)->as_tensor();
      CHECK(equal(trained, first.replica(1).find(name)->as_tensor()));
      CHECK_FALSE(equal(trained, initial->find(name)->as_tensor()));
      ++compared;
    }
    CHECK(compared == 8); // weights and biases of four layers
  }
}

TEST_CASE("synchronize_parameters collects state from all devices") {
  auto net = make_mlp();
  auto train = [&](graph::merge_strategy strategy) {
    auto options = options_for(net, 2);
    options.strategy = strategy;
    options.lowering.share_parameters = false;
    executor exe{net.main, options};
    for (std::uint64_t s = 0; s < 3; ++s)
      exe.run(net.batch(s, 8));
    exe.synchronize_parameters();
    return options.parameters;
  };
  CHECK(bit_equal(*train(graph::merge_strategy::all_reduce),
                  *train(graph::merge_strategy::reduce)));
}

TEST_CASE("without gradient merging, devices train independently") {
  auto net = make_mlp();
  auto options = options_for(net, 2);
  options.strategy = graph::merge_strategy::none;
  executor exe{net.main, options};
  exe.run(net.batch(0, 8));
  const auto& name = "fc_0.w_0";
  const auto a = exe.parameters().find(name)->as_tensor().values<float>();
  const auto b =
    exe.parameters().replica(1).find(name)->as_tensor().values<float>();
  CHECK_FALSE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

TEST_CASE("dropout draws the same numbers on any number of devices") {
  const auto net = make_dropout_net();
  const auto losses = [&](int devices, std::uint64_t seed) {
    auto options = options_for(net, devices);
    options.seed = seed;
    executor exe{net.main, options};
    std::vector<double> all;
    for (std::uint64_t s = 0; s < 5; ++s)
      all.push_back(exe.run(net.batch(s, 12)).loss);
    return all;
  };
  const auto on_one = losses(1, 7), of_another_seed = losses(1, 8);
  for (std::size_t s = 0; s < on_one.size(); ++s)
    CHECK(std::abs(of_another_seed[s] / on_one[s] - 1) > 1e-3);
  for (int devices : {2, 4}) {
    const auto on_several = losses(devices, 7);
    for (std::size_t s = 0; s < on_one.size(); ++s)
      CHECK(on_several[s] == doctest::Approx(on_one[s]).epsilon(1e-5));
  }
}

TEST_CASE("test and training executors share parameters") {
  auto net = make_lenet();
  auto options = options_for(net, 2);
  executor training{net.main, options};
  executor_options test_options;
  test_options.devices = cpus(2);
  test_options.parameters = options.parameters;
  test_options.loss = net.loss;
  executor evaluation{net.evaluation, test_options};
  const auto feeds = net.batch(3, 8);
  const auto before = evaluation.run(feeds).loss;
  const auto trained = training.run(feeds).loss;
  CHECK(before == doctest::Approx(trained).epsilon(1e-6));
  CHECK(evaluation.run(feeds).loss < before);
}

TEST_CASE("fetched tensors are returned per device and can be merged") {
  auto net = make_mlp();
  auto options = options_for(net, 2);
  options.fetches = {"image", "fc_0.w_0"};
  executor exe{net.main, options};
  const auto feeds = net.batch(0, 5);
  const std::vector<std::string> names{"image", "fc_0.w_0"};
  const auto before =
    clone(exe.parameters().find("fc_0.w_0")->as_tensor(),
          *std::make_unique<arena>(make_host_memory_source()));
  const auto result = exe.run(feeds, names);
  CHECK(result.fetched.at("image")[0].dims() == shape{3, 16});
  CHECK(result.fetched.at("image")[1].dims() == shape{2, 16});
  const auto joined = result.merged("image");
  const auto fed = feeds.at("image").values<float>();
  const auto got = joined.values<float>();
  CHECK(std::equal(fed.begin(), fed.end(), got.begin(), got.end()));
  // A persistable variable is fetched with its value at the end of the step.
  const auto weight = result.fetched.at("fc_0.w_0")[0].values<float>();
  const auto now =
    exe.parameters().find("fc_0.w_0")->as_tensor().values<float>();
  CHECK(std::equal(weight.begin(), weight.end(), now.begin(), now.end()));
  const auto old = before.values<float>();
  CHECK_FALSE(std::equal(weight.begin(), weight.end(), old.begin()));
  CHECK(exe.run(feeds).fetched.empty());
}

TEST_CASE("a dry run completes its steps without parameters") {
  auto net = make_lenet();
  for (int threads : {1, 2, 4}) {
    CAPTURE(threads);
    executor_options options;
    options.devices = cpus(2);
    options.threads = threads;
    options.hooks.dry_run = true;
    executor exe{net.main, options};
    // While a worker searches for jobs, its seat cannot be borrowed.
    wait_until_others_sleep();
    for (std::uint64_t s = 0; s < 10; ++s)
      exe.run(net.batch(s, 8));
    const auto stats = exe.stats();
    CHECK(stats.steps == 10);
    // The caller has a seat in each step: the owner of the seat that it gave
    // back last is still asleep.
    CHECK(stats.injected_jobs == 0);
    CHECK(stats.op_actors == exe.graph().ops.size());
    CHECK(stats.variable_actors == exe.graph().vars.size());
  }
}

TEST_CASE("steps of short ops run on one worker, if that is faster") {
  if (usable_cores() < 2)
    return skip_case("needs two cores");
  auto net = make_lenet();
  bool has_short_steps = false;
  for (auto strategy :
       {graph::merge_strategy::all_reduce, graph::merge_strategy::reduce})
    for (std::uint32_t in_flight : {1, 2}) {
      executor_options options;
      options.devices = cpus(2);
      options.threads = 2;
      options.strategy = strategy;
      options.steps_in_flight = in_flight;
      options.hooks.dry_run = true;
      executor exe{net.main, options};
      const auto feeds = net.batch(0, 8);
      constexpr std::uint64_t steps = 500;
      // A step that the caller measures as short is short for the executor too.
      std::uint32_t short_steps = 0, most_short_steps = 0;
      for (std::uint64_t s = 0; s < steps; s += in_flight) {
        const auto start = now_ns();
        std::vector<step_id> under_way;
        for (std::uint32_t i = 0; i < in_flight; ++i)
          under_way.push_back(exe.submit(feeds));
        for (auto id : under_way)
          exe.wait(id);
        const auto is_short =
          now_ns() - start < actors::short_op_ns * exe.graph().ops.size();
        short_steps = is_short ? short_steps + in_flight : 0;
        most_short_steps = std::max(most_short_steps, short_steps);
      }
      const auto stats = exe.stats();
      CHECK(stats.steps == steps);
      // Ops may be long with sanitizers or on a busy machine.
      if (most_short_steps
          > actors::sharing_choice::short_steps_before_trials + in_flight) {
        has_short_steps = true;
        CHECK(stats.single_worker_steps > 0);
      }
      CHECK(stats.single_worker_steps < steps);
      exe.run(feeds);
    }
  if (!has_short_steps)
    skip_case("needs a machine on which tiny ops are short");
}

} // TEST_SUITE("actors.executor")

TEST_SUITE("actors.executor.errors") {

TEST_CASE("a wrong feed is reported before the step starts") {
  auto net = make_mlp();
  executor exe{net.main, options_for(net, 2)};
  arena memory{make_host_memory_source()};
  auto with = [&](const char* name, tensor value) {
    auto feeds = net.batch(0, 4);
    feeds[name] = std::move(value);
    return caught([&] { exe.run(feeds); });
  };
  auto e = with("image", tensor::make(memory, {4, 17}, dtype::float32));
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "fed [4, 17], declared [-1, 16]"));
  CHECK(says(e, "variable image"));
  e = with("label", tensor::make(memory, {4, 1}, dtype::float32));
  CHECK(e.code() == errc::dtype_mismatch);
  CHECK(says(e, "fed float32, declared int64"));
  e = with("label", tensor::make(memory, {3, 1}, dtype::int64));
  CHECK(e.code() == errc::shape_mismatch);
  e = with("unheard_of", tensor::make(memory, {4, 1}, dtype::float32));
  CHECK(e.code() == errc::not_found);
  e = caught([&] { exe.run(); });
  CHECK(e.code() == errc::not_found);
  e = caught([&] { exe.run(net.batch(0, 0)); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(exe.stats().steps == 0);
}

TEST_CASE("undeclared and unknown variables cannot be fetched") {
  auto net = make_mlp();
  executor exe{net.main, options_for(net, 1)};
  const std::vector<std::string> names{"fc_0.w_0"};
  auto e = caught([&] { exe.run(net.batch(0, 4), names); });
  CHECK(e.code() == errc::not_found);
  auto options = options_for(net, 1);
  options.fetches = {"no_such_variable"};
  e = caught([&] { executor other(net.main, options); });
  CHECK(e.code() == errc::not_found);
  CHECK(says(e, "no_such_variable"));
}

TEST_CASE("an error about missing parameters mentions the startup program") {
  auto net = make_mlp();
  executor_options options;
  auto e = caught([&] { executor exe(net.main, options); });
  CHECK(e.code() == errc::not_found);
  CHECK(says(e, "run the startup program"));
}

TEST_CASE("one error lists all ops without a kernel") {
  auto net = make_mlp();
  for (auto& op : net.main.main().ops)
    if (op.type == "relu" || op.type == "tanh")
      op.type += "_of_another_world";
  auto e = caught([&] { executor exe(net.main, options_for(net, 2)); });
  CHECK(e.code() == errc::unsupported_op);
  CHECK(says(e, "relu_of_another_world (1)"));
  CHECK(says(e, "tanh_of_another_world (1)"));
}

TEST_CASE("the error of a failed step names its op, and the next step runs") {
  for (auto form : {edge_form::counter, edge_form::message}) {
    auto net = make_mlp();
    auto options = options_for(net, 2);
    options.hooks.form = form;
    executor exe{net.main, options};
    auto bad = net.batch(0, 4);
    bad["label"].values<std::int64_t>()[3] = 99;
    for (int round = 0; round < 20; ++round) {
      auto e = caught([&] { exe.run(bad); });
      CHECK(e.code() == errc::out_of_range);
      CHECK(e.where().op_type == "softmax_with_cross_entropy");
      CHECK(says(e, "@cpu:1"));
      CHECK(says(e, "99"));
      CHECK(e.where().step == exe.stats().steps - 1);
      CHECK(std::isfinite(exe.run(net.batch(0, 4)).loss));
    }
  }
}

TEST_CASE("a late message about a failed step does not fail the next one") {
  auto net = make_mlp();
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[0] = 99;
  auto options = options_for(net, 2);
  options.strategy = graph::merge_strategy::reduce;
  options.threads = 2;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    options.hooks.shuffle = delivery_shuffle{.seed = seed, .max_delay_us = 100};
    executor exe{net.main, options};
    CHECK(caught([&] { exe.run(bad); }).code() == errc::out_of_range);
    CHECK(std::isfinite(exe.run(net.batch(1, 4)).loss));
  }
}

TEST_CASE("steps submitted after a failing step are cancelled") {
  auto net = make_mlp();
  auto options = options_for(net, 2);
  options.steps_in_flight = 3;
  executor exe{net.main, options};
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[0] = -5;
  const auto first = exe.submit(bad);
  const auto second = exe.submit(net.batch(1, 4));
  CHECK(caught([&] { exe.wait(first); }).code() == errc::out_of_range);
  CHECK(caught([&] { exe.wait(second); }).code() == errc::cancelled);
  CHECK(std::isfinite(exe.run(net.batch(2, 4)).loss));
}

TEST_CASE("check_nan names the first op that outputs a NaN") {
  const auto e = failure_of_nan(make_mlp(), "fc_1.w_0");
  CHECK(e.code() == errc::not_finite);
  CHECK(e.where().op_type == "mul");
  CHECK(says(e, "mul#"));
}

TEST_CASE("check_nan finds a NaN in the output of a convolution") {
  const auto e = failure_of_nan(make_resnet(false), "conv2d_0.w_0");
  CHECK(e.code() == errc::not_finite);
  CHECK(e.where().op_type == "conv2d");
}

TEST_CASE("steps must be waited for in the order of submission") {
  auto net = make_mlp();
  executor exe{net.main, options_for(net, 1)};
  const auto a = exe.submit(net.batch(0, 4));
  const auto b = exe.submit(net.batch(1, 4));
  CHECK(caught([&] { exe.wait(b); }).code() == errc::invalid_argument);
  exe.wait(a);
  exe.wait(b);
}

TEST_CASE("an executor can be destroyed while steps are running") {
  auto net = make_lenet();
  for (int round = 0; round < 30; ++round) {
    executor exe{net.main, options_for(net, 2)};
    for (int s = 0; s <= round % 3; ++s)
      exe.submit(net.batch(0, 16));
  }
}

TEST_CASE("a cancelled step ends with an error and the next one runs") {
  auto net = make_lenet();
  executor exe{net.main, options_for(net, 2)};
  int cancelled = 0;
  for (int round = 0; round < 50; ++round) {
    const auto id = exe.submit(net.batch(0, 64));
    exe.cancel();
    try {
      exe.wait(id);
    } catch (const error& e) {
      CHECK(e.code() == errc::cancelled);
      ++cancelled;
    }
  }
  CHECK(cancelled > 0);
  CHECK(std::isfinite(exe.run(net.batch(0, 8)).loss));
}

} // TEST_SUITE("actors.executor.errors")
