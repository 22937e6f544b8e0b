// SPDX-License-Identifier: Apache-2.0

// Filters stay in the layout of convolutions between steps. Training gives the
// same bits, and requested values are in plain layout.

#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <actors/small_nets.hpp>
#include <support/machine.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;

TEST_SUITE("actors.filters_in_blocks") {

namespace {

// Some shards have different sizes; with one sample, only one device has any.
const std::vector<std::int64_t> batches{13, 4, 1, 13};

executor_options
in_blocks(bool yes, const char* devices = "cpu:1",
          merge_strategy strategy = merge_strategy::all_reduce) {
  executor_options o;
  o.devices = parse_devices(devices);
  o.strategy = strategy;
  o.lowering.kernel_layouts = yes;
  return o;
}

/// A convolution from 2 to 16 channels, followed by two from 16 to 16.
small_net convolutions(void (*minimize)(const graph::variable_ref&)) {
  graph::network net;
  auto image = net.data("image", {-1, 2, 8, 8});
  auto label = net.data("label", {-1, 1}, dtype::int64);
  auto h = image;
  for (int i = 0; i < 3; ++i)
    h = layers::conv2d(
      h, {.filters = 16, .kernel = 3, .padding = 1, .act = "relu"});
  auto pooled = layers::pool2d(h, {.kernel = 4, .stride = 4, .average = true});
  auto loss = layers::mean(
    layers::softmax_with_cross_entropy(layers::fc(pooled, 2), label));
  minimize(loss);
  auto made = make_resnet(false); // for its batches
  made.main = net.main;
  made.startup = net.startup;
  made.loss = loss.name();
  return made;
}

/// The number of values of `with_momentum` that can be in blocks: two filters
/// and their velocities.
long in_all() {
  return uses_avx512() ? 4 : 0;
}

small_net with_momentum() {
  return convolutions([](const graph::variable_ref& loss) {
    optimizer::momentum({.learning_rate = 0.05f, .mu = 0.9f}).minimize(loss);
  });
}

small_net with_adam() {
  return convolutions([](const graph::variable_ref& loss) {
    optimizer::adam({.learning_rate = 0.01f}).minimize(loss);
  });
}

} // namespace

TEST_CASE("filters in blocked layout give bit-identical training") {
  for (const auto& net :
       {make_resnet(true), make_lenet(), with_momentum(), with_adam()})
    for (auto devices : {"cpu:1", "cpu:2", "cpu:3"})
      for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                            merge_strategy::replicate}) {
        CAPTURE(net.name);
        CAPTURE(devices);
        const auto blocks =
          train(net, in_blocks(true, devices, strategy), batches);
        const auto plain =
          train(net, in_blocks(false, devices, strategy), batches);
        CHECK(blocks.losses == plain.losses);
        CHECK(bit_equal(*blocks.parameters, *plain.parameters));
        CHECK_FALSE(bit_equal(*blocks.parameters, *net.parameters()));
      }
}

TEST_CASE("parameter copies, message edges and fusing do not change results") {
  const auto net = with_momentum();
  const auto strategy = merge_strategy::reduce;
  const auto expected =
    train(net, in_blocks(false, "cpu:2", strategy), batches);
  for (auto form : {edge_form::counter, edge_form::message})
    for (bool share : {true, false})
      for (std::size_t fused : {std::size_t{0}, std::size_t{1} << 20}) {
        auto options = in_blocks(true, "cpu:2", strategy);
        options.hooks.form = form;
        options.lowering.share_parameters = share;
        options.lowering.fuse_all_reduce_bytes = fused;
        const auto t = train(net, options, batches);
        CHECK(t.losses == expected.losses);
        CHECK(bit_equal(*t.parameters, *expected.parameters));
      }
}

TEST_CASE("filters and optimizer state stay blocked until synchronized") {
  const auto net = with_momentum();
  auto options = in_blocks(true);
  options.parameters = net.parameters();
  executor exe{net.main, options};
  exe.run(net.batch(0, 8));
  CHECK(count_laid_out(*options.parameters) == in_all());
  exe.synchronize_parameters();
  CHECK(count_laid_out(*options.parameters) == 0);
  const auto expected = train(net, in_blocks(false), {{8}});
  CHECK(bit_equal(*options.parameters, *expected.parameters));
}

TEST_CASE("filters and their copies stay blocked on several devices") {
  const auto net = with_momentum();
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                        merge_strategy::none})
    for (bool share : {true, false}) {
      auto options = in_blocks(true, "cpu:2", strategy);
      options.lowering.share_parameters = share;
      options.parameters = net.parameters();
      executor exe{net.main, options};
      exe.run(net.batch(0, 8));
      auto& copies = options.parameters->replica(1);
      const auto shared = share && strategy == merge_strategy::reduce;
      if (strategy == merge_strategy::reduce && !share) {
        // The state of an update is only on the device that runs it.
        CHECK(count_laid_out(*options.parameters) + count_laid_out(copies)
              == in_all() + in_all() / 2);
      } else {
        CHECK(count_laid_out(*options.parameters) == in_all());
        CHECK(count_laid_out(copies) == (shared ? 0 : in_all()));
      }
      exe.synchronize_parameters();
      CHECK(count_laid_out(*options.parameters) == 0);
      CHECK(count_laid_out(copies) == 0);
    }
}

TEST_CASE("any executor on the scope can restore filters to plain layout") {
  const auto net = make_resnet(true);
  auto options = in_blocks(true);
  options.parameters = net.parameters();
  executor{net.main, options}.run(net.batch(0, 8));
  CHECK((count_laid_out(*options.parameters) > 0) == uses_avx512());
  auto test_options = in_blocks(false);
  test_options.parameters = options.parameters;
  test_options.loss = net.loss;
  executor{net.evaluation, test_options}.synchronize_parameters();
  CHECK(count_laid_out(*options.parameters) == 0);
}

TEST_CASE("synchronizing parameters does not change further training") {
  const auto net = with_momentum();
  const auto losses = [&](bool ask) {
    auto options = in_blocks(true, "cpu:2", merge_strategy::reduce);
    options.parameters = net.parameters();
    executor exe{net.main, options};
    std::vector<double> all;
    for (std::uint64_t i = 0; i < 4; ++i) {
      all.push_back(exe.run(net.batch(i, 8)).loss);
      if (ask)
        exe.synchronize_parameters();
    }
    return all;
  };
  CHECK(losses(true) == losses(false));
}

TEST_CASE("filters and their gradients are fetched in plain layout") {
  const auto net = with_momentum();
  const std::vector<std::string> names{"conv2d_1.w_0", "conv2d_1.w_0@GRAD"};
  const auto fetched = [&](bool blocks) {
    auto options = in_blocks(blocks);
    options.parameters = net.parameters();
    options.fetches = names;
    executor exe{net.main, options};
    exe.run(net.batch(0, 8));
    return exe.run(net.batch(1, 8), names).fetched;
  };
  const auto blocks = fetched(true), plain = fetched(false);
  for (auto& name : names) {
    const auto& a = blocks.at(name).front();
    const auto& b = plain.at(name).front();
    REQUIRE(a.is_plain());
    CHECK(std::ranges::equal(a.values<float>(), b.values<float>()));
  }
}

TEST_CASE("other executors can read filters in blocked layout") {
  const auto net = make_resnet(true);
  const auto run = [&](bool blocks) {
    auto options = in_blocks(blocks);
    options.parameters = net.parameters();
    auto test_options = in_blocks(false);
    test_options.parameters = options.parameters;
    test_options.loss = net.loss;
    executor exe{net.main, options};
    executor before{net.evaluation, test_options};
    exe.run(net.batch(0, 8));
    std::vector<double> losses{before.run(net.batch(1, 8)).loss};
    CHECK((count_laid_out(*options.parameters) > 0)
          == (blocks && uses_avx512()));
    executor after{net.evaluation, test_options};
    losses.push_back(after.run(net.batch(1, 8)).loss);
    auto two = in_blocks(false, "cpu:2"); // copies values to a second device
    two.parameters = options.parameters;
    executor more{net.main, two};
    losses.push_back(more.run(net.batch(2, 8)).loss);
    return losses;
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("gradients in different layouts are merged") {
  // One of the two devices leaves its gradients in plain layout.
  const auto net = with_momentum();
  const auto trained = [&](bool blocks, int plain) {
    auto kernels = std::make_shared<kernel_table>(cpu_kernels());
    const auto usual = cpu_kernels();
    int made = 0;
    kernels->add("conv2d_grad", device_kind::cpu,
                 [&made, usual, plain](attribute_map attributes) {
                   if (made++ % 2 == plain)
                     attributes.set("filter_in_blocks", false);
                   return usual.make("conv2d_grad", device_kind::cpu,
                                     attributes);
                 });
    auto options = in_blocks(blocks, "cpu:2");
    options.kernels = kernels;
    return train(net, options, batches);
  };
  const auto expected = trained(false, 0);
  for (int plain : {0, 1}) {
    const auto mixed = trained(true, plain);
    CHECK(mixed.losses == expected.losses);
    CHECK(bit_equal(*mixed.parameters, *expected.parameters));
  }
}

} // TEST_SUITE("actors.filters_in_blocks")
