// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>

#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using test::caught;
using test::says;

TEST_SUITE("graph.optimizer") {

namespace {

variable_ref small_loss(network& net) {
  return layers::mean(layers::fc(net.data("x", {-1, 4}), 3));
}

std::vector<op_desc> updates(const network& net) {
  std::vector<op_desc> found;
  for (const auto& op : net.main.main().ops)
    if (op.role() & role_optimize)
      found.push_back(op);
  return found;
}

float start_value(const network& net, const std::string& variable) {
  for (const auto& op : net.startup.main().ops)
    if (op.only_output("Out") == variable)
      return op.attributes.get_float("value", -1);
  return -1;
}

} // namespace

TEST_CASE("each parameter gets one update in place, with role and pair") {
  network net;
  auto found =
    optimizer::sgd({.learning_rate = 0.25f}).minimize(small_loss(net));
  REQUIRE(updates(net).size() == 2);
  const auto op = updates(net).front();
  CHECK(op.type == "sgd");
  CHECK(op.only_input("Param") == "fc_0.w_0");
  CHECK(op.only_output("ParamOut") == "fc_0.w_0");
  CHECK(op.only_input("Grad") == "fc_0.w_0@GRAD");
  CHECK(op.only_input("LearningRate") == "learning_rate_0");
  CHECK(op.role_vars().front().second == "fc_0.w_0@GRAD");
  CHECK(start_value(net, "learning_rate_0") == 0.25f);
  CHECK(found.size() == 2);
}

TEST_CASE("updates alone take the gradients of all trained parameters as "
          "feeds, and are those of minimize") {
  const auto described = [](const network& net) {
    std::vector<std::string> texts;
    for (const auto& op : updates(net))
      texts.push_back(op.type + " " + op.only_input("Grad") + " "
                      + op.only_input("LearningRate") + " "
                      + std::to_string(op.inputs.size()) + " "
                      + std::to_string(op.attributes.get_float("mu", 0)));
    std::ranges::sort(texts);
    return texts;
  };
  const optimizer::momentum how{{.mu = 0.5f}};
  network whole, alone;
  how.minimize(small_loss(whole));
  small_loss(alone);
  const auto found = how.apply_gradients(alone);
  CHECK(described(alone) == described(whole));
  CHECK(found
        == std::vector<parameter_gradient>{{"fc_0.b_0", "fc_0.b_0@GRAD"},
                                           {"fc_0.w_0", "fc_0.w_0@GRAD"}});
  CHECK(feed_names(alone.main)
        == std::vector<std::string>{"fc_0.b_0@GRAD", "fc_0.w_0@GRAD", "x"});
  CHECK(alone.main.main().var("fc_0.w_0@GRAD").dims == shape{4, 3});
  auto e = caught([&] { how.apply_gradients(whole); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "gradients of 'fc_0.b_0' already"));
}

TEST_CASE("momentum keeps a velocity per parameter") {
  network net;
  optimizer::momentum({.mu = 0.5f, .nesterov = true, .l2_decay = 0.125f})
    .minimize(small_loss(net));
  const auto op = updates(net).front();
  CHECK(op.only_input("Velocity") == "fc_0.w_0_velocity_0");
  CHECK(op.only_output("VelocityOut") == "fc_0.w_0_velocity_0");
  CHECK(op.attributes.get_float("mu", 0) == 0.5f);
  CHECK(op.attributes.get_bool("use_nesterov", false));
  CHECK(op.attributes.get_string("regularization_method", "") == "l2_decay");
  CHECK(op.attributes.get_float("regularization_coeff", 0) == 0.125f);
  const auto& velocity = net.main.main().var("fc_0.w_0_velocity_0");
  CHECK(velocity.dims == shape{4, 3});
  CHECK(velocity.persistable);
  CHECK_FALSE(velocity.is_parameter);
  CHECK(start_value(net, "fc_0.w_0_velocity_0") == 0);
}

TEST_CASE("adam keeps two moments and the powers of its betas") {
  network net;
  optimizer::adam({.beta1 = 0.5f, .beta2 = 0.75f, .lazy = true})
    .minimize(small_loss(net));
  const auto op = updates(net).front();
  for (std::string slot : {"Moment1", "Moment2", "Beta1Pow", "Beta2Pow"})
    CHECK(op.only_input(slot) == op.only_output(slot + "Out"));
  CHECK(net.main.main().var("fc_0.w_0_moment2_0").dims == shape{4, 3});
  CHECK(net.main.main().var("fc_0.w_0_beta1_pow_acc_0").dims == shape{1});
  CHECK(start_value(net, "fc_0.w_0_beta1_pow_acc_0") == 0.5f);
  CHECK(start_value(net, "fc_0.w_0_beta2_pow_acc_0") == 0.75f);
  CHECK(op.attributes.get_bool("lazy_mode", false));
}

TEST_CASE("adamw takes a share of the parameter at each step") {
  network net;
  optimizer::adamw({.weight_decay = 0.25f}).minimize(small_loss(net));
  const auto op = updates(net).front();
  CHECK(op.type == "adamw");
  CHECK(op.only_input("Moment1") == op.only_output("Moment1Out"));
  CHECK(op.attributes.get_float("coeff", 0) == 0.25f);
  CHECK(op.attributes.get_bool("with_decay", false));
}

TEST_CASE("adagrad starts its sum of squares as asked") {
  network net;
  optimizer::adagrad({.epsilon = 0.5f, .initial_moment = 0.125f})
    .minimize(small_loss(net));
  const auto op = updates(net).front();
  CHECK(op.only_input("Moment") == "fc_0.w_0_moment_0");
  CHECK(op.only_output("MomentOut") == "fc_0.w_0_moment_0");
  CHECK(op.attributes.get_float("epsilon", 0) == 0.5f);
  CHECK(start_value(net, "fc_0.w_0_moment_0") == 0.125f);
}

TEST_CASE("rmsprop keeps its step and two means") {
  network net;
  optimizer::rmsprop({.rho = 0.5f, .momentum = 0.25f, .centered = true})
    .minimize(small_loss(net));
  const auto op = updates(net).front();
  for (std::string slot : {"Moment", "MeanSquare", "MeanGrad"})
    CHECK(op.only_input(slot) == op.only_output(slot + "Out"));
  CHECK(op.attributes.get_float("decay", 0) == 0.5f);
  CHECK(op.attributes.get_float("momentum", 0) == 0.25f);
  CHECK(op.attributes.get_bool("centered", false));
}

TEST_CASE("lamb has Adam's state and a weight decay") {
  network net;
  optimizer::lamb({.beta1 = 0.5f, .weight_decay = 0.25f, .always_adapt = true})
    .minimize(small_loss(net));
  const auto op = updates(net).front();
  CHECK(op.only_output("Moment2Out") == "fc_0.w_0_moment2_0");
  CHECK(start_value(net, "fc_0.w_0_beta1_pow_acc_0") == 0.5f);
  CHECK(op.attributes.get_float("weight_decay", 0) == 0.25f);
  CHECK(op.attributes.get_bool("always_adapt", false));
}

TEST_CASE("empty braces in place of options are the defaults") {
  const auto same = [](const auto& braces, const auto& defaults) {
    network a, b;
    braces.minimize(small_loss(a));
    defaults.minimize(small_loss(b));
    const auto x = updates(a).back();
    const auto y = updates(b).back();
    auto without_line = x.attributes;
    without_line.set("op_callstack", y.call_stack());
    return x.type == y.type && x.inputs == y.inputs && x.outputs == y.outputs
           && without_line == y.attributes
           && start_value(a, "learning_rate_0")
                == start_value(b, "learning_rate_0");
  };
  CHECK(same(optimizer::sgd({}), optimizer::sgd()));
  CHECK(same(optimizer::momentum({}), optimizer::momentum()));
  CHECK(same(optimizer::adam({}), optimizer::adam()));
  CHECK(same(optimizer::adamw({}), optimizer::adamw()));
  CHECK(same(optimizer::adagrad({}), optimizer::adagrad()));
  CHECK(same(optimizer::rmsprop({}), optimizer::rmsprop()));
  CHECK(same(optimizer::lamb({}), optimizer::lamb()));
}

TEST_CASE("an update rule is any of the optimizers, chosen when it runs") {
  for (auto& [rule, type] :
       std::vector<std::pair<optimizer::update_rule, std::string>>{
         {optimizer::sgd(), "sgd"}, {optimizer::lamb(), "lamb"}}) {
    network net;
    rule.minimize(small_loss(net));
    CHECK(updates(net).front().type == type);
  }
}

TEST_CASE("update ops know the line of minimize") {
  network net;
  auto loss = small_loss(net);
  auto line = std::to_string(__LINE__ + 1);
  optimizer::sgd().minimize(loss);
  CHECK(updates(net).front().call_stack().front()
        == "optimizer_test.cpp:" + line);
}

TEST_CASE("options outside their range are refused") {
  auto e = caught([] { optimizer::momentum({.mu = 1}); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "mu"));
  CHECK(says(e, "[0, 1)"));
  CHECK(says(caught([] { optimizer::sgd({.learning_rate = -1}); }),
             "learning_rate"));
  CHECK(says(caught([] { optimizer::adam({.beta2 = -0.5f}); }), "beta2"));
  CHECK(says(caught([] { optimizer::adam({.epsilon = 0}); }), "epsilon"));
  CHECK(
    says(caught([] { optimizer::momentum({.l2_decay = -1}); }), "l2_decay"));
  CHECK(says(caught([] { optimizer::adamw({.weight_decay = -1}); }),
             "weight_decay"));
  CHECK(says(caught([] { optimizer::adagrad({.initial_moment = -1}); }),
             "initial_moment"));
  CHECK(says(caught([] { optimizer::rmsprop({.rho = 1}); }), "rho"));
  CHECK(says(caught([] { optimizer::lamb({.epsilon = 0}); }), "epsilon"));
}

TEST_CASE("a loss without parameters leaves the network alone") {
  network net;
  auto loss = layers::mean(net.data("x", {-1, 4}));
  CHECK(caught([&] { optimizer::sgd().minimize(loss); }).code()
        == errc::invalid_argument);
  CHECK(net.main.main().ops.size() == 1);
  CHECK(net.startup.main().ops.empty());
}

} // TEST_SUITE("graph.optimizer")
