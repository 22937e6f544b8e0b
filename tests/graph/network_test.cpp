// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>

#include <troupe/graph/layers.hpp>
#include <troupe/graph/network.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace troupe;
using namespace troupe::graph;
using test::caught;
using test::says;

TEST_SUITE("graph.network") {

namespace {

const op_desc& startup_op(const network& net, const std::string& variable) {
  for (const auto& op : net.startup.main().ops)
    if (op.only_output("Out") == variable)
      return op;
  FAIL("no op starts ", variable);
  return net.startup.main().ops.front();
}

} // namespace

TEST_CASE("layers and parameters have Paddle's names, counted per kind") {
  network net;
  auto h = layers::conv2d(net.data("image", {-1, 1, 8, 8}), {.filters = 2});
  h = layers::conv2d(h, {.filters = 2, .act = "relu"});
  CHECK(h.name() == "conv2d_1.tmp_2");
  h = layers::batch_norm(h);
  h = layers::fc(h, 3);
  for (auto name : {"conv2d_0.w_0", "conv2d_0.b_0", "conv2d_1.w_0",
                    "batch_norm_0.w_0", "batch_norm_0.b_0", "fc_0.w_0"})
    CHECK(net.main.main().var(name).is_parameter);
  // Running mean and variance.
  for (auto name : {"batch_norm_0.w_1", "batch_norm_0.w_2"}) {
    CHECK(net.main.main().var(name).persistable);
    CHECK_FALSE(net.main.main().var(name).is_parameter);
  }
}

TEST_CASE("names that are taken are skipped") {
  network net;
  net.data("fc_0", {1});
  CHECK(net.unique_name("fc") == "fc_1");
}

TEST_CASE("an input is fed, has no gradient and a name of its own") {
  network net;
  auto x = net.data("x", {-1, 3}, dtype::int64);
  CHECK(x.desc().need_check_feed);
  CHECK(x.desc().stop_gradient);
  CHECK(x.type() == dtype::int64);
  auto e = caught([&] { net.data("x", {1}); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "'x'"));
}

TEST_CASE("each op knows the line of the layer call, file name only") {
  network net;
  auto x = net.data("x", {-1, 3});
  auto line = std::to_string(__LINE__ + 1);
  layers::fc(x, 2, {.act = "relu"});
  REQUIRE(net.main.main().ops.size() == 3);
  for (const auto& op : net.main.main().ops)
    CHECK(op.call_stack()
          == std::vector<std::string>{"network_test.cpp:" + line});
  for (const auto& op : net.startup.main().ops)
    CHECK(op.call_stack().front() == "network_test.cpp:" + line);
}

TEST_CASE("persistable variables are declared in both programs") {
  network net;
  layers::fc(net.data("x", {-1, 3}), 2);
  CHECK(net.startup.main().var("fc_0.w_0").dims == shape{3, 2});
  CHECK(net.startup.main().var("fc_0.w_0").is_parameter);
  CHECK(net.startup.main().find_var("x") == nullptr);
  CHECK(net.startup.main().ops.size() == 2);
}

TEST_CASE("a named parameter is shared and starts once") {
  network net;
  auto x = net.data("x", {-1, 3});
  const layers::fc_options shared{.weight = {.name = "w"}};
  layers::fc(x, 2, shared);
  layers::fc(x, 2, shared);
  CHECK(net.startup.main().ops.size() == 3); // w and two biases
  auto e = caught([&] { layers::fc(x, 4, shared); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "[3, 2]"));
  CHECK(says(e, "[3, 4]"));
  e = caught([&] { layers::fc(x, 2, {.weight = {.name = "x"}}); });
  CHECK(e.code() == errc::invalid_argument);
}

TEST_CASE("a parameter that is not trained has no gradient") {
  network net;
  layers::fc(net.data("x", {-1, 3}), 2, {.weight = {.trainable = false}});
  CHECK(net.main.main().var("fc_0.w_0").stop_gradient);
  CHECK_FALSE(net.main.main().var("fc_0.b_0").stop_gradient);
}

TEST_CASE("xavier and msra scale with the fans of matrices and filters") {
  network net;
  auto image = net.data("image", {-1, 4, 8, 8});
  layers::conv2d(image, {.filters = 16, .kernel = 5});
  auto std_of = [&](const std::string& name) {
    return startup_op(net, name).attributes.get_float("std", 0);
  };
  // msra, the default: variance 2 / fan_in = 2 / (4 * 25).
  CHECK(std_of("conv2d_0.w_0") == doctest::Approx(std::sqrt(0.02)));
  net.parameter("x", {30, 20}, initializer::xavier{});
  const auto& uniform = startup_op(net, "x").attributes;
  CHECK(uniform.get_float("max", 0) == doctest::Approx(std::sqrt(6.0 / 50)));
  CHECK(uniform.get_float("min", 0) == -uniform.get_float("max", 0));
  net.parameter("filter", {16, 4, 5, 5},
                initializer::xavier{.as_uniform = false});
  CHECK(std_of("filter") == doctest::Approx(std::sqrt(2.0 / (20 * 25))));
  // PyTorch's default: uniform in +-1 / sqrt(fan_in).
  net.parameter(
    "torch", {16, 4, 5, 5},
    initializer::msra{.as_uniform = true, .negative_slope = std::sqrt(5.0f)});
  CHECK(startup_op(net, "torch").attributes.get_float("max", 0)
        == doctest::Approx(0.1));
}

TEST_CASE("plain initializers become ops with their numbers") {
  network net;
  net.state("c", {2}, initializer::constant{3});
  net.state("u", {2}, initializer::uniform{-2, 4, 9});
  net.state("n", {2}, initializer::normal{1, 5});
  net.state("t", {2}, initializer::truncated_normal{0, 6});
  CHECK(startup_op(net, "c").attributes.get_float("value", 0) == 3);
  CHECK(startup_op(net, "u").attributes.get_float("min", 0) == -2);
  CHECK(startup_op(net, "u").attributes.get_int("seed", 0) == 9);
  CHECK(startup_op(net, "n").type == "gaussian_random");
  CHECK(startup_op(net, "n").attributes.get_float("std", 0) == 5);
  CHECK(startup_op(net, "t").type == "truncated_gaussian_random");
}

TEST_CASE("a vector has no fan-in") {
  network net;
  auto e = caught([&] { net.parameter("b", {4}, initializer::xavier{}); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "'b' of shape [4]"));
  CHECK(net.main.main().find_var("b") == nullptr);
  CHECK(caught([&] { net.state("s", {-1}, initializer::constant{}); }).code()
        == errc::invalid_argument);
}

TEST_CASE("the test program of a network sets is_test and knows the loss") {
  network net;
  auto h = layers::batch_norm(layers::fc(net.data("x", {-1, 3}), 2));
  layers::mean(layers::dropout(h));
  auto test = net.test();
  int in_test = 0;
  for (const auto& op : test.main().ops)
    in_test += op.attributes.get_bool("is_test", false);
  CHECK(in_test == 2);
}

} // TEST_SUITE("graph.network")
