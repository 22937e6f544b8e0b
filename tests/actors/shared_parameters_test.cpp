// SPDX-License-Identifier: Apache-2.0

// Devices that share memory keep one copy of a parameter that one of them
// updates. Results are the same as with a copy per device.

#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;

TEST_SUITE("actors.shared_parameters") {

namespace {

executor_options shared(bool yes, int devices = 2,
                        merge_strategy strategy = merge_strategy::reduce) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.strategy = strategy;
  o.lowering.share_parameters = yes;
  return o;
}

// Shards have different sizes.
const std::vector<std::int64_t> batches(4, 13);

bool has_copy(scope& parameters, const std::string& name) {
  const auto* copy = parameters.replica(1).find(name);
  return copy && copy->has_value();
}

/// Names of the net's parameters.
std::vector<std::string> parameters_of(const small_net& net) {
  std::vector<std::string> names;
  for (auto& [name, declared] : net.main.main().vars)
    if (declared.is_parameter)
      names.push_back(name);
  return names;
}

bool same_values(const tensor& a, const tensor& b) {
  const auto x = a.values<float>(), y = b.values<float>();
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

} // namespace

TEST_CASE("shared parameters train bit-identically to copies") {
  for (auto& net : {make_mlp(), make_lenet(), make_word2vec()})
    for (auto strategy : {merge_strategy::reduce, merge_strategy::replicate})
      for (int devices : {2, 3}) {
        CAPTURE(net.name);
        CAPTURE(devices);
        const auto one = train(net, shared(true, devices, strategy), batches);
        const auto copies =
          train(net, shared(false, devices, strategy), batches);
        CHECK(one.losses == copies.losses);
        CHECK(bit_equal(*one.parameters, *copies.parameters));
        CHECK_FALSE(bit_equal(*one.parameters, *net.parameters()));
      }
}

TEST_CASE("message edges and steps in flight do not change shared parameters") {
  const auto net = make_lenet();
  const auto expected = train(net, shared(true), batches);
  for (auto form : {edge_form::message, edge_form::mixed})
    for (std::uint32_t in_flight : {1u, 4u}) {
      auto options = shared(true);
      options.hooks.form = form;
      options.steps_in_flight = in_flight;
      const auto t = train(net, options, batches);
      CHECK(t.losses == expected.losses);
      CHECK(bit_equal(*t.parameters, *expected.parameters));
    }
}

TEST_CASE("shared parameters and optimizer state have no copies") {
  const auto net = make_mlp();
  auto t = train(net, shared(true), batches);
  for (auto& name : t.parameters->names())
    CHECK_MESSAGE(!has_copy(*t.parameters, name), name);
  auto copies = train(net, shared(false), batches);
  for (auto& name : parameters_of(net))
    CHECK_MESSAGE(has_copy(*copies.parameters, name), name);
}

TEST_CASE("shared parameters take no memory on a second device") {
  const auto net = make_mlp();
  const auto taken = [&](bool share) {
    auto options = shared(share);
    options.parameters = net.parameters();
    return executor{net.main, options}.stats().peak_bytes.at(1);
  };
  CHECK(taken(true) == 0);
  CHECK(taken(false) > 0);
}

TEST_CASE("running statistics are not shared between devices") {
  const auto net = make_resnet(true);
  auto one = train(net, shared(true), batches);
  auto copies = train(net, shared(false), batches);
  CHECK(one.losses == copies.losses);
  CHECK(bit_equal(*one.parameters, *copies.parameters));
  std::size_t statistics = 0;
  for (auto& op : net.main.main().ops)
    if (op.type == "batch_norm") {
      const auto& mean = op.only_output("MeanOut");
      REQUIRE(has_copy(*one.parameters, mean));
      const auto own = one.parameters->replica(1).find(mean)->as_tensor();
      CHECK(same_values(own,
                        copies.parameters->replica(1).find(mean)->as_tensor()));
      CHECK_FALSE(same_values(own, one.parameters->find(mean)->as_tensor()));
      ++statistics;
    }
  CHECK(statistics > 0);
}

TEST_CASE("a shared parameter is fetched from every device") {
  const auto net = make_mlp();
  auto options = shared(true);
  options.parameters = net.parameters();
  options.fetches = {"fc_0.w_0"};
  executor exe{net.main, options};
  const auto fetched =
    exe.run(net.batch(0, 8), options.fetches).fetched.at("fc_0.w_0");
  REQUIRE(fetched.size() == 2);
  const auto now = options.parameters->find("fc_0.w_0")->as_tensor();
  CHECK(same_values(fetched[0], now));
  CHECK(same_values(fetched[1], now));
}

TEST_CASE("a test executor sees the updates of training on the same scope") {
  const auto net = make_lenet();
  for (auto testing : {merge_strategy::all_reduce, merge_strategy::reduce}) {
    auto options = shared(true);
    options.parameters = net.parameters();
    auto test_options = shared(true, 2, testing);
    test_options.parameters = options.parameters;
    test_options.loss = net.loss;
    executor before{net.evaluation, test_options};
    executor exe{net.main, options};
    executor after{net.evaluation, test_options};
    for (std::uint64_t i = 0; i < 3; ++i)
      exe.run(net.batch(i, 8));
    const auto feeds = net.batch(3, 8);
    const auto trained = exe.run(feeds).losses; // those before the update
    exe.synchronize_parameters();
    executor fresh{net.evaluation, test_options};
    const auto losses = fresh.run(feeds).losses;
    CHECK(before.run(feeds).losses == losses);
    CHECK(after.run(feeds).losses == losses);
    CHECK(losses != trained);
  }
}

TEST_CASE("a later executor continues with the trained parameters") {
  const auto net = make_mlp();
  const auto last_loss = [&](bool share) {
    const auto parameters = net.parameters();
    double loss = 0;
    for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                          merge_strategy::all_reduce}) {
      auto options = shared(share, 2, strategy);
      options.parameters = parameters;
      executor exe{net.main, options};
      loss = exe.run(net.batch(0, 8)).loss;
    }
    return loss;
  };
  CHECK(last_loss(true) == last_loss(false));
}

TEST_CASE("training continues when the number of devices changes") {
  const auto net = make_resnet(true); // each device has its own statistics
  const auto losses = [&](bool forget_between, bool share) {
    const auto parameters = net.parameters();
    std::vector<double> all;
    for (int devices : {3, 1, 2, 3}) {
      auto options = shared(share, devices, merge_strategy::all_reduce);
      options.parameters = parameters;
      executor exe{net.main, options};
      for (std::uint64_t i = 0; i < 3; ++i)
        all.push_back(exe.run(net.batch(i, 9)).loss);
      exe.synchronize_parameters();
      if (forget_between)
        parameters->drop_replicas();
    }
    return all;
  };
  CHECK(losses(false, true) == losses(true, true));
  CHECK(losses(false, false) == losses(true, false));
}

TEST_CASE("an executor fails if another one has dropped its copies") {
  const auto net = make_mlp();
  auto options = shared(true, 2, merge_strategy::all_reduce);
  options.parameters = net.parameters();
  executor two{net.main, options};
  two.run(net.batch(0, 8));
  options.devices.resize(1);
  executor one{net.main, options};
  one.run(net.batch(1, 8));
  const auto failure = caught([&] { two.run(net.batch(2, 8)); });
  CHECK(failure.code() == errc::invalid_argument);
  CHECK(says(failure, "an executor on other devices (cpu:0; this one: "
                      "cpu:0,cpu:1) updates the same scope"));
  CHECK(failure.where().variable == "fc_0.b_0");
  one.run(net.batch(2, 8));
}

TEST_CASE("feeding a shared persistable variable makes no copies") {
  const auto net = make_mlp();
  arena memory{make_host_memory_source()};
  auto rate = tensor::make(memory, {1}, dtype::float32);
  rate.data<float>()[0] = 0;
  auto feeds = net.batch(0, 8);
  feeds.emplace("learning_rate_0", rate);
  auto options = shared(true);
  options.parameters = net.parameters();
  executor exe{net.main, options};
  exe.run(feeds);
  CHECK_FALSE(has_copy(*options.parameters, "learning_rate_0"));
  for (auto& name : parameters_of(net))
    CHECK(same_values(options.parameters->find(name)->as_tensor(),
                      net.parameters()->find(name)->as_tensor()));
}

} // TEST_SUITE("actors.shared_parameters")
