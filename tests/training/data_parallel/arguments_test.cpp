// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/data_parallel.hpp>

#include <support/caught.hpp>
#include <training/data_parallel/module_nets.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/sim/sim_device.hpp>

#include <algorithm>
#include <latch>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.data_parallel") {

namespace {

/// An op that refuses negative numbers. Its gradient does too.
struct picky_kernel final : kernel {
  void run(kernel_context& ctx) override {
    const bool is_gradient = ctx.has_input("Out@GRAD");
    const auto x = ctx.input(is_gradient ? "Out@GRAD" : "X");
    if (values_of(x)[0] < 0)
      throw error(errc::out_of_range, "wonderful");
    auto out = ctx.output(is_gradient ? "X@GRAD" : "Out", x.dims(), x.type());
    std::ranges::copy(x.values<float>(), out.values<float>().begin());
  }
};

/// Copies its input, once the test says so.
struct held_kernel final : kernel {
  held_kernel(std::latch& inside, std::latch& go_on)
    : inside_(inside), go_on_(go_on) {}
  void run(kernel_context& ctx) override {
    inside_.count_down();
    go_on_.wait();
    const auto x = ctx.input("X");
    auto out = ctx.output("Out", x.dims(), x.type());
    std::ranges::copy(x.values<float>(), out.values<float>().begin());
  }
  std::latch& inside_;
  std::latch& go_on_;
};

/// A batch norm, and then that op in place of relu.
struct picky {
  graph::network net;
  variable_ref x = net.data("x", {-1, 2});
  variable_ref y = layers::relu(
    layers::add(x, layers::scale(layers::batch_norm(x), {.scale = 0})));
  std::shared_ptr<graph_module> net_module = make_module(net, {x}, {y});
  data_parallel_options options;

  picky() {
    auto kernels = std::make_shared<kernel_table>(cpu_kernels());
    const auto make = [](const attribute_map&) -> std::unique_ptr<kernel> {
      return std::make_unique<picky_kernel>();
    };
    kernels->add("relu", device_kind::cpu, kernel_maker{make});
    kernels->add("relu_grad", device_kind::cpu, kernel_maker{make});
    options.kernels = kernels;
  }
};

} // namespace

TEST_CASE_FIXTURE(mlp, "inputs can be nested, by name, or whole") {
  graph::network net_of_two;
  auto a = net_of_two.data("a", {-1, 2}), b = net_of_two.data("b", {-1, 2});
  auto w = net_of_two.data("w", {2, 2});
  auto c = layers::add(a, layers::matmul(b, w));
  const auto two =
    make_module(net_of_two, {a, b, w}, {c, layers::scale(b, {.bias = 1})});
  data_parallel model{two, ids("cpu:3")};
  const auto x = counting({4, 2}), y = counting({4, 2}, 10);
  const auto eye = tensor_of({2, 2}, {1, 0, 0, 1});
  const std::vector<tensors> expected{
    model.forward(x, y, parallel::whole{eye}).outputs,
    model.forward(std::pair{x, y}, parallel::whole{eye}).outputs,
    model
      .forward(std::map<std::string, tensors>{{"only", {x, y}}},
               parallel::whole{eye})
      .outputs};
  for (auto& outputs : expected) {
    CHECK(values_of(outputs[0]) == floats{10, 12, 14, 16, 18, 20, 22, 24});
    CHECK(values_of(outputs[1]) == floats{11, 12, 13, 14, 15, 16, 17, 18});
  }
  CHECK(model.replicas() == 2);
  // Empty containers hold no arguments, and outputs can be nested too.
  const auto some =
    model.forward(std::tuple<>{}, x, tensors{}, y,
                  std::map<std::string, tensor>{}, parallel::whole{eye});
  const auto nested = parallel::with_tensors(
    std::pair<tensor, std::map<std::string, tensor>>{{}, {{"b", {}}}},
    some.outputs);
  CHECK(distance(nested.second.at("b"), expected[0][1]) == 0);
  // The gradient of what is whole is the sum over the replicas.
  const auto d =
    model.forward(x, y, parallel::whole{eye}).backward({counting({4, 2}), {}});
  CHECK(values_of(d.outputs[2]) == floats{176, 228, 188, 244});
  data_parallel by_name{net_module, ids("cpu:2")};
  CHECK(distance(by_name.forward(feed_map{{"x", torch["mlp5.x"]}}).outputs[0],
                 torch["mlp5.y"])
        < 1e-6);
  auto e = caught([&] { by_name.forward(feed_map{}); });
  CHECK(e.code() == errc::not_found);
  CHECK(e.where().variable == "x");
  e = caught([&] {
    by_name.forward(feed_map{{"x", torch["mlp5.x"]}, {"z", torch["mlp5.x"]}});
  });
  CHECK(e.where().variable == "z");
}

TEST_CASE_FIXTURE(picky,
                  "a failing replica is named with its device and the op, and "
                  "the module is unchanged and can go on") {
  data_parallel model{net_module, ids("cpu:3"), std::nullopt, options};
  const auto good = counting({3, 2}, 1);
  const auto bad = tensor_of({3, 2}, {1, 2, -3, 4, -5, 6});
  std::vector<floats> before;
  for (auto& name : net_module->buffers())
    before.push_back(values_of(net_module->values().var(name).as_tensor()));
  auto e = caught([&] { model.forward(bad); });
  CHECK(e.code() == errc::out_of_range);
  CHECK(says(e, "in replica 1 on cpu:1: wonderful; also failed: replica 2 on "
                "cpu:2"));
  CHECK(e.where().op_type == "relu");
  CHECK(e.where().device == "cpu:1");
  for (std::size_t i = 0; i < before.size(); ++i)
    CHECK(
      values_of(net_module->values().var(net_module->buffers()[i]).as_tensor())
      == before[i]);
  const auto made = model.forward(good);
  CHECK(distance(made.outputs[0], good) == 0);
  e = caught([&] { made.backward({bad}); });
  CHECK(says(e, "in replica 1 on cpu:1: wonderful"));
  CHECK(e.where().op_type == "relu_grad");
  CHECK_FALSE(net_module->gradient("batch_norm_0.b_0"));
  CHECK(distance(made.backward({good}).outputs[0], good) < 1e-6);
  CHECK(net_module->gradient("batch_norm_0.b_0"));
}

TEST_CASE_FIXTURE(picky, "a second thread in a model is refused, and the first "
                         "goes on") {
  std::latch is_inside{1}, is_refused{1};
  auto kernels = std::make_shared<kernel_table>(cpu_kernels());
  const auto make = [&](const attribute_map&) -> std::unique_ptr<kernel> {
    return std::make_unique<held_kernel>(is_inside, is_refused);
  };
  kernels->add("relu", device_kind::cpu, kernel_maker{make});
  options.kernels = kernels;
  data_parallel model{net_module, ids("cpu"), std::nullopt, options};
  const auto good = counting({3, 2}, 1);
  std::thread first{
    [&] { CHECK(distance(model.forward(good).outputs[0], good) == 0); }};
  is_inside.wait();
  for (auto& second : {caught([&] { model.forward(good); }),
                       caught([&] { model.evaluate(good); }),
                       caught([&] { model.update(); })}) {
    CHECK(second.code() == errc::invalid_argument);
    CHECK(says(second, "the model is in use"));
  }
  is_refused.count_down();
  first.join();
}

TEST_CASE_FIXTURE(mlp, "arguments and gradients that do not fit are refused, "
                       "naming the variable") {
  data_parallel model{net_module, ids("cpu:2")};
  auto e = caught([&] { model.forward(); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "0 arguments of the module, expected 1"));
  e = caught([&] { model.forward(counting({2, 5})); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "fed [2, 5], declared [-1, 4]"));
  CHECK(e.where().variable == "x");
  CHECK(caught([&] {
          model.forward(tensor_of<std::int64_t>({1, 1}, {1}));
        }).code()
        == errc::dtype_mismatch);
  const auto made = model.forward(torch["mlp5.x"]);
  CHECK(caught([&] { made.backward({}); }).code() == errc::invalid_argument);
  CHECK(says(caught([&] { made.backward({tensor{}}); }),
             "no output has a gradient"));
  e = caught([&] { made.backward({counting({5, 2})}); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "the gradient has shape [5, 2], the output [5, 3]"));
  CHECK(e.where().variable == y.name());
  CHECK(caught([&] {
          made.backward(
            {tensor_of<std::int64_t>({5, 3}, std::vector<std::int64_t>(15))});
        }).code()
        == errc::dtype_mismatch);
  CHECK_FALSE(net_module->gradient("fc_0.w_0"));
  e = caught([&] { model.update(); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "no optimizer"));
  CHECK(caught([&] { data_parallel({}, ids("cpu")); }).code()
        == errc::invalid_argument);
  CHECK(
    caught([&] {
      data_parallel(net_module, ids("cpu:2"), device_id{device_kind::cpu, 2});
    }).code()
    == errc::not_found);
}

TEST_CASE("inputs that give different numbers of chunks are refused with their "
          "names and shapes") {
  graph::network net;
  auto a = net.data("a", {-1, 1}), b = net.data("b", {-1, 1});
  const auto both =
    make_module(net, {a, b}, {layers::square(a), layers::square(b)});
  data_parallel model{both, ids("cpu:4")};
  const auto e = caught([&] {
    model.forward(counting({5, 1}), counting({4, 1}));
  });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "a of shape [5, 1] gives 3 chunks, b of shape [4, 1] gives 4"));
  // Other sizes with as many chunks are fine, as in PyTorch.
  CHECK(model.forward(counting({5, 1}), counting({6, 1})).outputs[1].dims()
        == shape{6, 1});
}

TEST_CASE_FIXTURE(mlp, "a parameter without a value is named") {
  data_parallel model{
    std::make_shared<graph_module>(describe_module(net, {x}, {y}),
                                   std::make_shared<scope>()),
    ids("cpu:2")};
  const auto e = caught([&] { model.forward(torch["mlp5.x"]); });
  CHECK(e.code() == errc::not_found);
  CHECK(e.where().variable == "fc_0.b_0");
}

TEST_CASE("samples can be on another axis") {
  graph::network net;
  auto x = net.data("x", {2, -1, 3});
  const auto doubles = make_module(net, {x}, {layers::scale(x, {.scale = 2})});
  data_parallel model{doubles, ids("cpu:2"), std::nullopt, {.axis = 1}};
  const auto in = counting({2, 5, 3});
  const auto made = model.forward(in);
  CHECK(model.replicas() == 2);
  CHECK(distance(made.outputs[0], doubled(in)) == 0);
  CHECK(distance(made.backward({in}).outputs[0], doubled(in)) == 0);
}

} // TEST_SUITE("training.data_parallel")
