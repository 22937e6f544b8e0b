// SPDX-License-Identifier: Apache-2.0

// Values of which the backward pass reads only the shape are released before
// it. Nothing else changes.

#include <troupe/actors/executor.hpp>
#include <troupe/graph/passes/program_order.hpp>
#include <troupe/graph/passes/shape_inputs.hpp>

#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.shape_inputs") {

namespace {

const std::vector<std::int64_t> batches(4, 64);

executor_options separated(bool yes, const char* devices = "cpu:1") {
  executor_options o;
  o.devices = parse_devices(devices);
  o.lowering.separate_shape_inputs = yes;
  o.lowering.fuse_batch_norms = false; // sums remain ops of their own
  return o;
}

/// Input X of the first gradient op of a sum.
std::string summand(const small_net& net) {
  const auto& ops = net.main.main().ops;
  const auto gradient =
    std::ranges::find(ops, "elementwise_add_grad", &graph::op_desc::type);
  return gradient->only_input("X");
}

} // namespace

TEST_CASE("separate shape inputs give bit-identical training") {
  for (const auto& net : {make_mlp(), make_lenet(), make_resnet(true)})
    for (auto devices : {"cpu:1", "cpu:2"}) {
      CAPTURE(net.name);
      const auto whole = train(net, separated(false, devices), batches);
      const auto shapes = train(net, separated(true, devices), batches);
      CHECK(shapes.losses == whole.losses);
      CHECK(bit_equal(*shapes.parameters, *whole.parameters));
    }
}

TEST_CASE(
  "separate shape inputs free a residual sum's input in program order") {
  const auto peak = [](bool yes) {
    auto options = separated(yes);
    options.hooks.passes = {graph::run_in_program_order};
    options.steps_in_flight = 1;
    options.threads = 1; // with helpers, memory for parts depends on timing
    return train(make_resnet(true), options, batches).peak_bytes;
  };
  constexpr std::size_t summand_bytes = 64 * 16 * 8 * 8 * sizeof(float);
  CHECK(peak(true) + summand_bytes <= peak(false));
}

TEST_CASE("message edges with separate shape inputs give the same losses") {
  const auto net = make_resnet(true);
  auto options = separated(true);
  options.hooks.form = edge_form::message;
  const auto messages = train(net, options, batches);
  CHECK(messages.losses == train(net, separated(true), batches).losses);
}

TEST_CASE("a value of which only the shape is kept can be fetched") {
  const auto net = make_mlp();
  std::vector<float> fetched[2];
  for (const bool yes : {false, true}) {
    auto options = separated(yes);
    options.parameters = net.parameters();
    options.fetches = {summand(net)};
    executor exe{net.main, std::move(options)};
    fetched[yes] = fetch_once(exe, net, summand(net));
  }
  CHECK(fetched[0].size() > 8);
  CHECK(fetched[0] == fetched[1]);
}

TEST_CASE("check_nan accepts shape inputs without elements") {
  const auto net = make_mlp();
  auto options = separated(true);
  options.parameters = net.parameters();
  options.hooks.check_nan = true;
  executor exe{net.main, options};
  CHECK(std::ranges::any_of(exe.graph().ops, [](const graph::op_handle& op) {
    return op.desc->type == graph::shape_of_type;
  }));
  CHECK_NOTHROW(exe.run(net.batch(0, 64)));
}

TEST_CASE("without a shape_of kernel, training gives the same losses") {
  const auto net = make_mlp();
  auto options = separated(true);
  options.kernels = kernels_without(graph::shape_of_type);
  CHECK(train(net, options, batches).losses
        == train(net, separated(true), batches).losses);
}

} // TEST_SUITE("actors.shape_inputs")
