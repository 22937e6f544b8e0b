// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/graph/program_text.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::graph;

TEST_SUITE("graph.program_text") {

TEST_CASE("the programs of a linear model with sgd") {
  network net;
  auto x = net.data("x", {-1, 3});
  optimizer::sgd({.learning_rate = 0.5f})
    .minimize(layers::mean(layers::fc(x, 1)));
  CHECK(to_text(net.startup) == R"(block 0
  var fc_0.b_0: float32 [1], persistable, parameter
  var fc_0.w_0: float32 [3, 1], persistable, parameter
  var learning_rate_0: float32 [1], persistable, stop_gradient
  {Out: fc_0.w_0} = uniform_random {} dtype=5 max=1.22474 min=-1.22474 role=forward seed=0 shape=[3, 1]
  {Out: fc_0.b_0} = fill_constant {} dtype=5 role=forward shape=[1] value=0
  {Out: learning_rate_0} = fill_constant {} dtype=5 role=forward shape=[1] value=0.5
)");
  CHECK(to_text(net.main) == R"(block 0
  var fc_0.b_0: float32 [1], persistable, parameter
  var fc_0.b_0@GRAD: float32 [1]
  var fc_0.tmp_0: float32 [-1, 1]
  var fc_0.tmp_0@GRAD: float32 [-1, 1]
  var fc_0.tmp_1: float32 [-1, 1]
  var fc_0.tmp_1@GRAD: float32 [-1, 1]
  var fc_0.w_0: float32 [3, 1], persistable, parameter
  var fc_0.w_0@GRAD: float32 [3, 1]
  var learning_rate_0: float32 [1], persistable, stop_gradient
  var mean_0.tmp_0: float32 []
  var mean_0.tmp_0@GRAD: float32 []
  var x: float32 [-1, 3], stop_gradient, feed
  {Out: fc_0.tmp_0} = mul {X: x, Y: fc_0.w_0} role=forward x_num_col_dims=1 y_num_col_dims=1
  {Out: fc_0.tmp_1} = elementwise_add {X: fc_0.tmp_0, Y: fc_0.b_0} axis=1 role=forward
  {Out: mean_0.tmp_0} = mean {X: fc_0.tmp_1} role=forward|loss
  {Out: mean_0.tmp_0@GRAD} = fill_constant {} dtype=5 role=backward|loss shape=[] value=1
  {X@GRAD: fc_0.tmp_1@GRAD} = mean_grad {X: fc_0.tmp_1, Out@GRAD: mean_0.tmp_0@GRAD} role=backward
  {X@GRAD: fc_0.tmp_0@GRAD} = elementwise_add_grad {X: fc_0.tmp_0, Y: fc_0.b_0, Out@GRAD: fc_0.tmp_1@GRAD} axis=1 role=backward
  {Y@GRAD: fc_0.b_0@GRAD} = elementwise_add_grad {X: fc_0.tmp_0, Y: fc_0.b_0, Out@GRAD: fc_0.tmp_1@GRAD} axis=1 role=backward op_role_var=["fc_0.b_0", "fc_0.b_0@GRAD"]
  {Y@GRAD: fc_0.w_0@GRAD} = mul_grad {X: x, Y: fc_0.w_0, Out@GRAD: fc_0.tmp_0@GRAD} role=backward op_role_var=["fc_0.w_0", "fc_0.w_0@GRAD"] x_num_col_dims=1 y_num_col_dims=1
  {ParamOut: fc_0.w_0} = sgd {Param: fc_0.w_0, Grad: fc_0.w_0@GRAD, LearningRate: learning_rate_0} role=optimize op_role_var=["fc_0.w_0", "fc_0.w_0@GRAD"]
  {ParamOut: fc_0.b_0} = sgd {Param: fc_0.b_0, Grad: fc_0.b_0@GRAD, LearningRate: learning_rate_0} role=optimize op_role_var=["fc_0.b_0", "fc_0.b_0@GRAD"]
)");
}

TEST_CASE("attributes of every type have a text") {
  op_desc op;
  op.type = "f";
  op.set_input("X", {"a", "b"});
  op.attributes = {{"a", std::vector<float>{0.5f, 2}},
                   {"b", block_ref{3}},
                   {"c", std::vector<bool>{true, false}},
                   {"d", 0.25},
                   {"e", std::vector<std::int64_t>{1}},
                   {"op_callstack", std::vector<std::string>{"net.cpp:1"}}};
  CHECK(to_text(op)
        == "{} = f {X: [a, b]} a=[0.5, 2] b=block 3 c=[true, false] d=0.25 "
           "e=[1]");
}

TEST_CASE("roles are named by their bits") {
  CHECK(role_text(role_forward) == "forward");
  CHECK(role_text(role_backward | role_loss) == "backward|loss");
  CHECK(role_text(role_optimize | role_lr_sched) == "optimize|lr_sched");
}

} // TEST_SUITE("graph.program_text")
