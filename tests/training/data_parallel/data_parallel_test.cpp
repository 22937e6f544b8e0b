// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/data_parallel.hpp>

#include <support/caught.hpp>
#include <training/actors/asking.hpp>
#include <training/data_parallel/module_nets.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/sim/sim_device.hpp>
#include <troupe/training/data_parallel/parallel_apply.hpp>

#include <algorithm>
#include <cmath>
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

TEST_CASE_FIXTURE(mlp, "outputs and all gradients are those that PyTorch "
                       "computes on the whole batch, on 1 to 4 devices, for "
                       "odd batches, in any order of devices") {
  for (auto on : {ids("cpu:1"), ids("cpu:2"), ids("cpu:3"), ids("cpu:4"),
                  std::vector{device_id{device_kind::cpu, 1}, device_id{}}}) {
    data_parallel model{net_module, on};
    for (auto [batch, chunk] : {std::pair{1, 1}, {2, 1}, {5, 2}, {7, 2}}) {
      CAPTURE(on.size());
      CAPTURE(batch);
      const auto at = "mlp" + std::to_string(batch) + ".";
      net_module->zero_gradients();
      const auto made = model.forward(torch[at + "x"]);
      REQUIRE(made.outputs.size() == 1);
      CHECK(distance(made.outputs[0], torch[at + "y"]) < 1e-6);
      const auto dx = made.backward({torch[at + "y.grad"]});
      CHECK(distance(dx.outputs.at(0), torch[at + "x.grad"]) < 1e-6);
      for (auto& [here, there] : names)
        CHECK(
          distance(gradient_of(*net_module, here), torch[at + there + ".grad"])
          < 1e-6);
      if (on.size() == 4)
        CHECK(model.replicas()
              == static_cast<std::size_t>((batch + chunk - 1) / chunk));
    }
  }
}

TEST_CASE_FIXTURE(mlp,
                  "devices whose work ends late and out of order give the "
                  "same, and an output lies on the device that was asked for") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const sim_times late{.max_delay_us = 200, .seed = seed};
    const auto on =
      std::make_shared<device_group>(std::vector<std::shared_ptr<device>>{
        make_sim_device({device_kind::sim, 0}, late),
        make_sim_device({device_kind::sim, 1}, late),
        make_sim_device({device_kind::sim, 2}, late)});
    data_parallel model{net_module, on, device_id{device_kind::sim, 1}};
    for (auto at : {"mlp5.", "mlp7.", "mlp1."}) {
      net_module->zero_gradients();
      const auto made = model.forward(torch[at + std::string{"x"}]);
      CHECK(on->at(1)->memory().owns(made.outputs[0].memory()));
      CHECK(distance(made.outputs[0], torch[at + std::string{"y"}]) < 1e-6);
      const auto dx = made.backward({torch[at + std::string{"y.grad"}]});
      CHECK(distance(dx.outputs[0], torch[at + std::string{"x.grad"}]) < 1e-6);
      for (auto& [here, there] : names)
        CHECK(
          distance(gradient_of(*net_module, here), torch[at + there + ".grad"])
          < 1e-6);
    }
  }
}

TEST_CASE_FIXTURE(mlp, "a batch without samples gives no outputs and gradients "
                       "of zero") {
  data_parallel model{net_module, ids("cpu:2")};
  const auto made = model.forward(counting({0, 4}));
  CHECK(made.outputs[0].dims() == shape{0, 3});
  CHECK(made.backward({counting({0, 3})}).outputs[0].dims() == shape{0, 4});
  CHECK(values_of(gradient_of(*net_module, "fc_1.b_0")) == floats{0, 0, 0});
}

TEST_CASE_FIXTURE(mlp, "the loss can be a module of its own, with PyTorch's "
                       "loss and gradient") {
  graph::network of_loss;
  auto guess = of_loss.data("guess", {-1, 3});
  auto target = of_loss.data("target", {-1, 3});
  auto far = layers::mean(layers::square(layers::sub(guess, target)));
  data_parallel model{net_module, ids("cpu:2")};
  data_parallel criterion{make_module(of_loss, {guess, target}, {far}),
                          ids("cpu")};
  const auto output = model.forward(torch["mlp5.x"]);
  const auto loss = criterion.forward(output.outputs[0], torch["mlp5.target"]);
  CHECK(
    loss.outputs[0].values<float>()[0]
    == doctest::Approx(torch["mlp5.loss"].values<float>()[0]).epsilon(1e-6));
  const auto dy = loss.backward({tensor_of({1}, {1})}).outputs[0];
  CHECK(distance(dy, torch["mlp5.y.grad"]) < 1e-6);
  output.backward({dy});
  CHECK(
    distance(gradient_of(*net_module, "fc_0.w_0"), torch["mlp5.0.weight.grad"])
    < 1e-6);
}

TEST_CASE_FIXTURE(mlp, "gradients are added up over passes, and a pass can go "
                       "backward again, with the parameters that it had") {
  data_parallel model{net_module, ids("cpu:2")};
  const auto made = model.forward(torch["mlp5.x"]);
  const auto other = model.forward(torch["mlp2.x"]);
  other.backward({torch["mlp2.y.grad"]});
  set(*net_module, "fc_1.w_0", counting({6, 3}));
  made.backward({torch["mlp5.y.grad"]});
  made.backward({torch["mlp5.y.grad"]});
  const auto sum = gradient_of(*net_module, "fc_0.w_0");
  const auto one = torch["mlp5.0.weight.grad"].values<float>();
  const auto two = torch["mlp2.0.weight.grad"].values<float>();
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(sum.values<float>()[i]
          == doctest::Approx(2 * one[i] + two[i]).epsilon(1e-5));
  net_module->zero_gradients();
  CHECK_FALSE(net_module->gradient("fc_0.w_0"));
}

TEST_CASE("an update between the passes does not change the backward pass") {
  for (auto on : {"cpu:1", "cpu:2"}) {
    graph::network net;
    auto x = net.data("x", {-1, 4});
    auto y = layers::fc(layers::fc(x, 4, {.act = "tanh"}), 2);
    layers::fc(x, 2); // leads nowhere, so it has no gradient
    optimizer::momentum({.learning_rate = 0.5f}).apply_gradients(net);
    const auto trained = make_module(net, {x}, {y});
    data_parallel model{trained, ids(on)};
    const auto made = model.forward(counting({3, 4}, -5));
    const auto dy = counting({3, 2}, 1);
    const auto first = made.backward({dy}).outputs[0];
    const auto before =
      values_of(trained->values().var("fc_0.w_0").as_tensor());
    model.update();
    CHECK(values_of(trained->values().var("fc_0.w_0").as_tensor()) != before);
    CHECK(distance(made.backward({dy}).outputs[0], first) == 0);
    CHECK(
      distance(model.forward(counting({3, 4}, -5)).outputs[0], made.outputs[0])
      > 0);
  }
}

TEST_CASE("a convolutional net gives on three devices what it gives on one") {
  graph::network net;
  auto x = net.data("x", {-1, 2, 6, 6});
  auto h = layers::conv2d(x, {.filters = 8, .padding = 1, .act = "relu"});
  auto y = layers::fc(layers::pool2d(h, {.average = true}), 3);
  const auto conv = make_module(net, {x}, {y});
  const auto images = [](std::int64_t count) {
    auto values = counting({count, 2, 6, 6});
    for (auto& v : values.values<float>())
      v = std::sin(v * v);
    return values;
  };
  data_parallel one{conv, ids("cpu")}, three{conv, ids("cpu:3")};
  for (std::int64_t batch : {1, 4, 7}) {
    const auto dy = counting({batch, 3}, -1);
    std::vector<tensors> found;
    for (auto* model : {&one, &three}) {
      conv->zero_gradients();
      const auto made = model->forward(images(batch));
      found.push_back(made.outputs);
      found.back().push_back(made.backward({dy}).outputs[0]);
      for (auto& name : conv->parameters())
        found.back().push_back(gradient_of(*conv, name));
    }
    REQUIRE(found[0].size() == 6);
    for (std::size_t i = 0; i < found[0].size(); ++i) {
      const auto most = std::ranges::max(values_of(found[0][i]));
      CHECK(distance(found[0][i], found[1][i])
            <= 1e-6 * std::max(1.0f, std::abs(most)));
    }
  }
}

TEST_CASE_FIXTURE(mlp,
                  "modules on different devices can be applied at the same "
                  "time") {
  host_application app;
  auto& system = *app.system;
  const auto on = ids("cpu:2");
  // A module has one user at a time.
  const auto other =
    std::make_shared<graph_module>(describe_module(net, {x}, {y}));
  for (auto& [here, there] : names)
    set(*other, here, torch["mlp." + there]);
  data_parallel first{net_module, std::vector{on[0]}};
  data_parallel second{other, std::vector{on[1]}};
  const auto applied = [](data_parallel& model) {
    return [&model](const tensor& in) { return model.evaluate(in)[0]; };
  };
  const std::vector functions{applied(first), applied(second)};
  const auto outputs = parallel::parallel_apply(
    system, functions, tensors{torch["mlp5.x"], torch["mlp7.x"]}, on);
  CHECK(distance(outputs[0], torch["mlp5.y"]) < 1e-6);
  CHECK(distance(outputs[1], torch["mlp7.y"]) < 1e-6);
}

TEST_CASE_FIXTURE(mlp, "a model can end before a thread that has used it") {
  auto model = std::make_unique<data_parallel>(net_module, ids("cpu:2"));
  std::latch is_used{1}, is_over{1};
  std::thread user{[&] {
    model->evaluate(torch["mlp5.x"]);
    is_used.count_down();
    is_over.wait();
  }};
  is_used.wait();
  model.reset();
  is_over.count_down();
  user.join();
  std::unique_ptr<data_parallel> made_elsewhere;
  std::latch is_made{1}, is_gone{1};
  std::thread maker{[&] {
    made_elsewhere = std::make_unique<data_parallel>(net_module, ids("cpu:2"));
    is_made.count_down();
    is_gone.wait();
  }};
  is_made.wait();
  made_elsewhere.reset();
  is_gone.count_down();
  maker.join();
}

TEST_CASE("batch norm: outputs and gradients are PyTorch's, and the statistics "
          "are those of replica 0") {
  const torch_values torch;
  graph::network net;
  auto x = net.data("x", {-1, 4});
  auto y = layers::batch_norm(layers::fc(x, 3, {.with_bias = false}));
  const auto norm = make_module(net, {x}, {y}, false);
  CHECK(norm->buffers().size() == 2);
  CHECK(norm->parameters()
        == std::vector<std::string>{"batch_norm_0.b_0", "batch_norm_0.w_0",
                                    "fc_0.w_0"});
  set(*norm, "fc_0.w_0", torch["norm.0.weight"]);
  set(*norm, "batch_norm_0.w_0", torch["norm.1.weight"]);
  set(*norm, "batch_norm_0.b_0", torch["norm.1.bias"]);
  data_parallel model{norm, ids("cpu:2")};
  const auto made = model.forward(torch["norm.x"]);
  CHECK(distance(made.outputs[0], torch["norm.y"]) < 1e-5);
  const auto buffer = [&](std::size_t i) {
    return norm->values().var(norm->buffers()[i]).as_tensor();
  };
  CHECK(distance(buffer(0), torch["norm.mean"]) < 1e-6);
  CHECK(distance(buffer(1), torch["norm.variance"]) < 1e-6);
  const auto dx = made.backward({torch["norm.y.grad"]});
  CHECK_FALSE(dx.outputs[0]); // it was not wanted
  CHECK(distance(gradient_of(*norm, "fc_0.w_0"), torch["norm.0.weight.grad"])
        < 1e-5);
  CHECK(distance(gradient_of(*norm, "batch_norm_0.w_0"),
                 torch["norm.1.weight.grad"])
        < 1e-5);
  // Evaluation uses the statistics, and leaves them.
  const auto before = values_of(buffer(0));
  const auto whole = model.evaluate(torch["norm.x"]);
  data_parallel alone{norm, ids("cpu")};
  CHECK(distance(whole[0], alone.evaluate(torch["norm.x"])[0]) < 1e-6);
  CHECK(values_of(buffer(0)) == before);
}

TEST_CASE("a recurrent net has PyTorch's parameters after a step of SGD") {
  const torch_values torch;
  graph::network net;
  auto x = net.data("x", {-1, 3, 3});
  variable_ref last = x;
  for (int t = 0; t < 3; ++t) {
    auto now = layers::reshape(
      layers::slice(x, {.axes = {1}, .starts = {t}, .ends = {t + 1}}), {-1, 3});
    auto h = layers::fc(now, 4,
                        {.weight = {.name = "in.w"}, .bias = {.name = "in.b"}});
    if (t > 0)
      h = layers::add(
        h, layers::fc(last, 4,
                      {.weight = {.name = "h.w"}, .bias = {.name = "h.b"}}));
    else // h is zero, but the bias counts
      h = layers::add(
        h, layers::fc(layers::scale(layers::fc(now, 4,
                                               {.with_bias = false,
                                                .weight = {.name = "in.w"}}),
                                    {.scale = 0}),
                      4, {.weight = {.name = "h.w"}, .bias = {.name = "h.b"}}));
    last = layers::tanh(h);
  }
  optimizer::sgd({.learning_rate = 0.1f}).apply_gradients(net);
  const auto rnn = make_module(net, {x}, {last}, false);
  const std::vector<std::pair<std::string, std::string>> names{
    {"in.w", "weight_ih_l0"},
    {"h.w", "weight_hh_l0"},
    {"in.b", "bias_ih_l0"},
    {"h.b", "bias_hh_l0"}};
  for (auto& [here, there] : names)
    set(*rnn, here, torch["rnn." + there]);
  data_parallel model{rnn, ids("cpu:2")};
  const auto made = model.forward(torch["rnn.x"]);
  CHECK(distance(made.outputs[0], torch["rnn.last"]) < 1e-6);
  auto dy = doubled(made.outputs[0]);
  CHECK(caught([&] { model.update(); }).code() == errc::not_found);
  made.backward({dy});
  model.update();
  for (auto& [here, there] : names)
    CHECK(
      distance(rnn->values().var(here).as_tensor(), torch["rnn.after." + there])
      < 1e-6);
}

TEST_CASE("a sparse embedding has sparse gradients, those of PyTorch") {
  const torch_values torch;
  graph::network net;
  auto id = net.data("ids", {-1, 1}, dtype::int64);
  auto y = layers::reshape(
    layers::embedding(id, {.rows = 6, .width = 2, .is_sparse = true}), {-1, 2});
  optimizer::sgd({.learning_rate = 1}).apply_gradients(net);
  const auto table = make_module(net, {id}, {y});
  set(*table, table->parameters().at(0), torch["table"]);
  data_parallel model{table, ids("cpu:3")};
  const auto made = model.forward(torch["ids"]);
  CHECK(distance(made.outputs[0], torch["table.y"]) < 1e-6);
  made.backward({torch["table.y.grad"]});
  const auto& rows = table->gradient(table->parameters().at(0))->as_rows();
  CHECK(rows.rows == std::vector<std::int64_t>{1, 3, 3, 0, 5});
  auto dense = tensor_of({6, 2}, floats(12, 0));
  for (std::size_t i = 0; i < rows.rows.size(); ++i)
    for (std::size_t k = 0; k < 2; ++k)
      dense.values<float>()[static_cast<std::size_t>(rows.rows[i]) * 2 + k] +=
        rows.values.values<float>()[i * 2 + k];
  CHECK(distance(dense, torch["table.grad"]) < 1e-6);
  // A second pass adds rows.
  made.backward({torch["table.y.grad"]});
  model.update();
  const auto& after =
    table->values().var(table->parameters().at(0)).as_tensor();
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(values_of(after)[i]
          == doctest::Approx(values_of(torch["table"])[i]
                             - 2 * values_of(torch["table.grad"])[i])
               .epsilon(1e-6));
}

TEST_CASE("several inputs, a number, and losses of replicas: as in PyTorch's "
          "test of multiple inputs, for both orders of devices") {
  // return float_val * (x * y).sum(), whose gradients are float_val * y and x
  graph::network net;
  auto x = net.data("x", {-1, 3}), y = net.data("y", {-1, 3});
  auto factor = net.data("factor", {1});
  auto loss = layers::mul(layers::reduce_sum(layers::mul(x, y)), factor);
  const auto product = make_module(net, {x, y, factor}, {loss});
  const auto a = counting({5, 3}, 1), b = counting({5, 3}, -4);
  for (auto on : {std::vector{device_id{}, device_id{device_kind::cpu, 1}},
                  std::vector{device_id{device_kind::cpu, 1}, device_id{}},
                  std::vector{device_id{}}}) {
    data_parallel model{product, on};
    const auto made = model.forward(a, b, 2);
    // a vector of one loss per replica
    REQUIRE(made.outputs[0].dims()
            == shape{static_cast<std::int64_t>(on.size())});
    float sum = 0, expected = 0;
    for (auto v : values_of(made.outputs[0]))
      sum += v;
    for (std::size_t i = 0; i < 15; ++i)
      expected += 2 * values_of(a)[i] * values_of(b)[i];
    CHECK(sum == expected);
    const auto d =
      made.backward({tensor_of(made.outputs[0].dims(), floats(on.size(), 1))});
    for (std::size_t i = 0; i < 15; ++i) {
      CHECK(values_of(d.outputs[0])[i] == 2 * values_of(b)[i]);
      CHECK(values_of(d.outputs[1])[i] == 2 * values_of(a)[i]);
    }
    // that of a number is the sum over replicas
    CHECK(values_of(d.outputs[2]) == floats{expected / 2});
  }
}

TEST_CASE("replicas draw different random numbers, and a pass goes backward "
          "with its own") {
  graph::network net;
  auto x = net.data("x", {-1, 64});
  const auto drop =
    make_module(net, {x}, {layers::dropout(x, {.probability = 0.5f})});
  data_parallel model{drop, ids("cpu:2")};
  const auto ones = tensor_of({2, 64}, floats(128, 1));
  const auto first = model.forward(ones), second = model.forward(ones);
  CHECK(values_of(first.outputs[0].rows(0, 1))
        != values_of(first.outputs[0].rows(1, 1)));
  CHECK(values_of(first.outputs[0]) != values_of(second.outputs[0]));
  CHECK(distance(first.backward({ones}).outputs[0], first.outputs[0]) == 0);
  CHECK(distance(second.backward({ones}).outputs[0], second.outputs[0]) == 0);
  CHECK(distance(model.evaluate(ones)[0], ones) < 1);
  CHECK(distance(model.evaluate(ones)[0], model.evaluate(ones)[0]) == 0);
}

TEST_CASE("an output without a gradient takes none, and one whose gradient is "
          "missing counts as zero") {
  graph::network net;
  auto x = net.data("x", {-1, 2});
  auto y = layers::scale(x, {.scale = 3});
  auto z = layers::add(y, layers::square(x)); // y has two uses
  auto rounded = layers::cast(y, dtype::int64);
  const auto three = make_module(net, {x}, {y, z, rounded});
  data_parallel model{three, ids("cpu:2")};
  const auto at = counting({2, 2}, 1);
  const auto made = model.forward(at);
  CHECK(made.outputs[2].values<std::int64_t>()[3] == 12);
  const auto ones = tensor_of({2, 2}, floats(4, 1));
  CHECK(values_of(made.backward({ones, {}, {}}).outputs[0])
        == floats{3, 3, 3, 3});
  CHECK(values_of(made.backward({ones, ones, {}}).outputs[0])
        == floats{8, 10, 12, 14});
  const auto e = caught([&] {
    made.backward({ones, {}, tensor_of<std::int64_t>({2, 2}, {1, 1, 1, 1})});
  });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(e.where().variable == rounded.name());
}

TEST_CASE("the optimizer of a whole training program updates the parameters "
          "that have gradients, as the loss in the program would") {
  graph::network net;
  auto x = net.data("x", {-1, 4}), target = net.data("target", {-1, 3});
  auto y = layers::fc(x, 3, {.with_bias = false});
  auto loss = layers::mean(layers::square(layers::sub(y, target)));
  layers::fc(x, 2); // leads nowhere
  optimizer::adam({.learning_rate = 0.1f}).minimize(loss);
  const auto at = counting({4, 4}), wanted = counting({4, 3});
  const auto trained = make_module(net, {x, target}, {loss});
  data_parallel model{trained, ids("cpu:2")};
  auto parameters = std::make_shared<scope>();
  run_startup(net.startup, *parameters);
  executor exe(net.main, {.parameters = parameters});
  for (int step = 0; step < 3; ++step) {
    trained->zero_gradients();
    const auto losses = model.forward(at, wanted);
    losses.backward({tensor_of({2}, {0.5f, 0.5f})}); // of their mean
    model.update();
    const auto expected = exe.run({{"x", at}, {"target", wanted}}).loss;
    CHECK((values_of(losses.outputs[0])[0] + values_of(losses.outputs[0])[1])
            / 2
          == doctest::Approx(expected).epsilon(1e-6));
  }
  CHECK(distance(trained->values().var("fc_0.w_0").as_tensor(),
                 parameters->var("fc_0.w_0").as_tensor())
        < 1e-5);
}

TEST_CASE("a module without parameters and wanted inputs has no gradient") {
  graph::network net;
  auto x = net.data("x", {-1, 2});
  data_parallel model{make_module(net, {x}, {layers::square(x)}, false),
                      ids("cpu:2")};
  CHECK_FALSE(model.forward(counting({2, 2})).backward);
}

} // TEST_SUITE("training.data_parallel")
