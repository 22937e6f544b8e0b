// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/plain_executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <troupe/graph/layers.hpp>
#include <troupe/graph/network.hpp>
#include <troupe/graph/optimizer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.plain_executor") {

namespace {

plain_executor_options options_for(const small_net& net, int devices) {
  plain_executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.parameters = net.parameters();
  return o;
}

/// True if both devices have the same value of a persistable variable.
bool equal_on_both(plain_executor& exe, const std::string& name) {
  const auto a = exe.parameters().find(name)->as_tensor().values<float>();
  const auto b =
    exe.parameters().replica(1).find(name)->as_tensor().values<float>();
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

struct hook_call {
  bool before;
  std::size_t op;
  std::size_t device;
  std::string type;
  friend bool operator==(const hook_call&, const hook_call&) = default;
};

} // namespace

TEST_CASE("hooks are called before and after each op on each device") {
  auto net = make_mlp();
  for (std::int64_t samples : {5, 2}) { // 2: the third device is idle
    auto options = options_for(net, 3);
    std::vector<hook_call> calls;
    auto hook = [&](bool before) {
      return [&calls, before](const graph::op_desc& op, std::size_t number,
                              std::size_t device) {
        calls.push_back({before, number, device, op.type});
      };
    };
    options.before_op = hook(true);
    options.after_op = hook(false);
    plain_executor exe{net.main, options};
    exe.run(net.batch(0, samples));
    std::vector<hook_call> expected;
    const auto& ops = net.main.main().ops;
    for (std::size_t i = 0; i < ops.size(); ++i)
      for (std::size_t d = 0; d < 3; ++d)
        for (bool before : {true, false})
          expected.push_back({before, i, d, ops[i].type});
    CHECK(calls == expected);
  }
}

TEST_CASE("merging float64 gradients is an error that names the variable") {
  graph::program p;
  p.main().add_var({.name = "w",
                    .type = dtype::float64,
                    .dims = {2},
                    .persistable = true,
                    .is_parameter = true});
  p.main().add_var({.name = "w@GRAD", .type = dtype::float64, .dims = {2}});
  graph::op_desc op;
  op.type = "fill_constant";
  op.set_output("Out", {"w@GRAD"});
  op.attributes = {{"shape", std::vector<std::int64_t>{2}},
                   {"dtype", std::int32_t{6}},
                   {"op_role", std::int32_t{graph::role_backward}},
                   {"op_role_var", std::vector<std::string>{"w", "w@GRAD"}}};
  p.main().ops.push_back(op);
  plain_executor_options options;
  options.devices = parse_devices("cpu:2");
  plain_executor exe{p, options};
  const auto e = caught([&] { exe.run({}); });
  CHECK(e.code() == errc::dtype_mismatch);
  CHECK(e.where().variable == "w@GRAD");
}

TEST_CASE("run throws a hook's exception, and the next run succeeds") {
  auto net = make_mlp();
  auto options = options_for(net, 1);
  auto stop = true;
  options.before_op = [&](const graph::op_desc&, std::size_t op, std::size_t) {
    if (stop && op == 3)
      throw std::logic_error("stop here");
  };
  plain_executor exe{net.main, options};
  CHECK_THROWS_AS(exe.run(net.batch(0, 4)), std::logic_error);
  stop = false;
  CHECK(std::isfinite(exe.run(net.batch(0, 4)).loss));
}

TEST_CASE("all gradients are merged unless parameter_names lists some") {
  auto net = make_mlp();
  plain_executor all{net.main, options_for(net, 2)};
  all.run(net.batch(0, 6));
  CHECK(equal_on_both(all, "fc_0.w_0"));
  CHECK(equal_on_both(all, "fc_1.w_0"));
  auto options = options_for(net, 2);
  options.parameter_names = {"fc_1.w_0"};
  plain_executor some{net.main, options};
  some.run(net.batch(0, 6));
  CHECK_FALSE(equal_on_both(some, "fc_0.w_0"));
  CHECK(equal_on_both(some, "fc_1.w_0"));
}

TEST_CASE("losses on several devices match those on one device") {
  for (auto& net : {make_mlp(), make_word2vec()}) {
    plain_executor one{net.main, options_for(net, 1)};
    plain_executor three{net.main, options_for(net, 3)};
    for (std::uint64_t s = 0; s < 5; ++s) {
      const auto feeds = net.batch(s, 7);
      CHECK(three.run(feeds).loss
            == doctest::Approx(one.run(feeds).loss).epsilon(1e-5));
    }
  }
}

TEST_CASE("any dense variable can be fetched, from each device its own") {
  auto net = make_mlp();
  const auto shape_on = [&](const std::string& name, std::int64_t samples) {
    auto dims = net.main.main().var(name).dims;
    if (dims.rank() > 0 && dims[0] < 0)
      dims[0] = samples;
    return dims;
  };
  plain_executor exe{net.main, options_for(net, 2)};
  for (auto& op : net.main.main().ops)
    for (auto& name : op.output_names()) {
      const std::vector<std::string> fetches{name};
      const auto result = exe.run(net.batch(0, 3), fetches);
      CAPTURE(name);
      REQUIRE(result.fetched.count(name) == 1);
      const auto& fetched = result.fetched.at(name);
      REQUIRE(fetched.size() == 2);
      CHECK(fetched[0].dims() == shape_on(name, 2));
      CHECK(fetched[1].dims() == shape_on(name, 1));
    }
}

TEST_CASE("an unknown fetch is reported before any op runs") {
  auto net = make_mlp();
  auto options = options_for(net, 1);
  int ops = 0;
  options.before_op = [&](const auto&...) { ++ops; };
  plain_executor exe{net.main, options};
  const std::vector<std::string> fetches{"no_such"};
  const auto e = caught([&] { exe.run(net.batch(0, 4), fetches); });
  CHECK(e.code() == errc::not_found);
  CHECK(e.where().variable == "no_such");
  CHECK(ops == 0);
}

TEST_CASE("an error contains op, device, step and the op's call stack") {
  auto net = make_mlp();
  for (auto& op : net.main.main().ops)
    if (op.type == "softmax_with_cross_entropy")
      op.attributes.set("op_callstack",
                        std::vector<std::string>{"train.py", "line 7"});
  plain_executor exe{net.main, options_for(net, 2)};
  exe.run(net.batch(0, 4));
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[3] = 99; // of the second device
  const auto e = caught([&] { exe.run(bad); });
  CHECK(e.code() == errc::out_of_range);
  CHECK(e.where().op_type == "softmax_with_cross_entropy");
  CHECK(e.where().op.rfind("softmax_with_cross_entropy#", 0) == 0);
  CHECK(e.where().device == "cpu:1");
  CHECK(e.where().step == 1);
  CHECK(e.where().call_stack == std::vector<std::string>{"train.py", "line 7"});
  CHECK(std::isfinite(exe.run(net.batch(0, 4)).loss));
}

TEST_CASE("an executor with actors reports the same error") {
  auto net = make_mlp();
  for (auto& op : net.main.main().ops)
    if (op.type == "softmax_with_cross_entropy")
      op.attributes.set("op_callstack", std::vector<std::string>{"train.py"});
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.parameters = net.parameters();
  executor exe{net.main, options};
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[3] = 99;
  const auto e = caught([&] { exe.run(bad); });
  CHECK(e.where().op_type == "softmax_with_cross_entropy");
  CHECK(e.where().device == "cpu:1");
  CHECK(e.where().step == 0);
  CHECK(e.where().call_stack == std::vector<std::string>{"train.py"});
}

TEST_CASE("a foreign exception of a kernel becomes an error") {
  auto net = make_mlp();
  auto kernels = std::make_shared<kernel_table>(cpu_kernels());
  kernels->add("tanh", device_kind::cpu, [](kernel_context&) {
    throw std::runtime_error("of another library");
  });
  auto options = options_for(net, 1);
  options.kernels = kernels;
  plain_executor exe{net.main, options};
  const auto e = caught([&] { exe.run(net.batch(0, 4)); });
  CHECK(e.code() == errc::kernel_failure);
  CHECK(e.where().op_type == "tanh");
  CHECK(says(e, "of another library"));
}

TEST_CASE("a cost, an optimizer's minimize, an executor over devices: the "
          "form of ParallelExecutor's design") {
  graph::network net;
  const auto neural_network = [](graph::network& in) {
    const auto x = in.data("x", {-1, 4});
    const auto label = in.data("label", {-1, 1}, dtype::int64);
    const auto scores = layers::fc(layers::fc(x, 8, {.act = "tanh"}), 3);
    return layers::mean(layers::softmax_with_cross_entropy(scores, label));
  };
  auto cost = neural_network(net);
  optimizer::sgd opt;
  opt.minimize(cost);

  arena memory{make_host_memory_source()};
  auto x = tensor::make(memory, {6, 4}, dtype::float32);
  auto label = tensor::make(memory, {6, 1}, dtype::int64);
  for (std::int64_t i = 0; i < 24; ++i)
    x.data<float>()[i] = static_cast<float>(i % 5) - 2;
  for (std::int64_t i = 0; i < 6; ++i)
    label.data<std::int64_t>()[i] = i % 3;

  const auto losses = [&](const char* devices) {
    const auto parameters = std::make_shared<scope>();
    run_startup(net.startup, *parameters, 1);
    executor exe{net.main,
                 {.devices = parse_devices(devices), .parameters = parameters}};
    std::vector<double> seen;
    for (int iter = 0; iter < 10; ++iter)
      seen.push_back(exe.run({{"x", x}, {"label", label}}).loss);
    return seen;
  };
  const auto one = losses("cpu:1"), two = losses("cpu:2");
  CHECK(one.back() < one.front());
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(two[i] == doctest::Approx(one[i]).epsilon(1e-5));
}

} // TEST_SUITE("actors.plain_executor")
