// SPDX-License-Identifier: Apache-2.0
#include "graph/small_program.hpp"

#include <troupe/graph/passes/shape_inputs.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.passes.shape_inputs") {

namespace {

op_desc add_gradient(const std::string& x, const std::string& y,
                     const std::string& sum) {
  op_desc op;
  op.type = "elementwise_add_grad";
  op.set_input("X", {x});
  op.set_input("Y", {y});
  op.set_input("Out@GRAD", {sum + "@GRAD"});
  op.set_output("X@GRAD", {x + "@GRAD"});
  op.set_output("Y@GRAD", {y + "@GRAD"});
  op.attributes.set("op_role", std::int32_t{role_backward});
  op.attributes.set("op_role_var", names{"b", "b@GRAD"});
  return op;
}

/// loss = mean(h + b), h = x * w: the gradient reads the shape of h.
small_program biased() {
  small_program p;
  p.persistable("w").persistable("b");
  for (auto name : {"x", "h", "sum", "sum@GRAD", "h@GRAD", "b@GRAD", "w@GRAD"})
    p.temporary(name);
  p.op("mul", {"x", "w"}, {"h"});
  p.op("elementwise_add", {"h", "b"}, {"sum"});
  p.op("mean", {"sum"}, {"loss"}, role_forward | role_loss);
  p.loss_gradient("loss").op("mean_grad", {"loss@GRAD"}, {"sum@GRAD"},
                             role_backward);
  p.desc.main().ops.push_back(add_gradient("h", "b", "sum"));
  p.op("mul_grad", {"x", "h@GRAD"}, {"w@GRAD"}, role_backward, {"w", "w@GRAD"});
  p.op("sgd", {"w", "w@GRAD"}, {"w"}, role_optimize, {"w", "w@GRAD"});
  p.op("sgd", {"b", "b@GRAD"}, {"b"}, role_optimize, {"b", "b@GRAD"});
  return p;
}

const op_desc& gradient_of(const program& p) {
  return *std::ranges::find(p.main().ops, "elementwise_add_grad",
                            &op_desc::type);
}

long shapes_in(const program& p) {
  return std::ranges::count(p.main().ops, shape_of_type, &op_desc::type);
}

} // namespace

TEST_CASE("a shape is taken behind the writer and read by the gradient") {
  const auto p = separate_shape_inputs(biased().desc);
  CHECK(p.main().ops[0].type == "mul");
  const auto& made = p.main().ops[1];
  CHECK(made.type == shape_of_type);
  CHECK(made.only_input("X") == "h");
  CHECK(made.only_output("Out") == "h@SHAPE");
  CHECK(made.role() == role_forward);
  CHECK(gradient_of(p).input("X") == names{"h@SHAPE"});
  CHECK(gradient_of(p).output("X@GRAD") == names{"h@GRAD"});
  REQUIRE(p.main().find_var("h@SHAPE"));
  CHECK(p.main().var("h@SHAPE").dims == p.main().var("h").dims);
  CHECK(p.main().ops.size() == biased().desc.main().ops.size() + 1);
}

TEST_CASE("a parameter is there anyway and read as before") {
  const auto p = separate_shape_inputs(biased().desc);
  CHECK(gradient_of(p).input("Y") == names{"b"});
}

TEST_CASE("a value that somebody reads later is kept as a whole") {
  auto later = biased();
  later.op("relu_grad", {"h", "h@GRAD"}, {"other"}, role_backward);
  CHECK(shapes_in(separate_shape_inputs(later.desc)) == 0);
  auto earlier = biased();
  earlier.op("relu", {"h"}, {"other"});
  auto& ops = earlier.desc.main().ops;
  std::rotate(ops.begin() + 2, ops.end() - 1, ops.end());
  CHECK(shapes_in(separate_shape_inputs(earlier.desc)) == 1);
}

TEST_CASE("a value that the gradient itself reads is kept as a whole") {
  auto p = biased();
  for (auto& op : p.desc.main().ops)
    if (op.type == "elementwise_add_grad")
      op.set_input("Out@GRAD", {"h"});
  CHECK(shapes_in(separate_shape_inputs(p.desc)) == 0);
}

TEST_CASE("a variable that is fed or written twice is left alone") {
  auto fed = biased();
  fed.desc.main().ops.erase(fed.desc.main().ops.begin());
  CHECK(shapes_in(separate_shape_inputs(fed.desc)) == 0);
  auto twice = biased();
  auto& ops = twice.desc.main().ops;
  twice.op("relu", {"h"}, {"h"});
  std::rotate(ops.begin() + 1, ops.end() - 1, ops.end());
  CHECK(shapes_in(separate_shape_inputs(twice.desc)) == 0);
}

TEST_CASE("a sum of a value with itself takes one shape for both") {
  auto p = biased();
  auto& ops = p.desc.main().ops;
  auto gradient =
    std::ranges::find(ops, "elementwise_add_grad", &op_desc::type);
  gradient->set_input("Y", {"h"});
  const auto separated = separate_shape_inputs(p.desc);
  CHECK(shapes_in(separated) == 1);
  CHECK(gradient_of(separated).input("X") == names{"h@SHAPE"});
  CHECK(gradient_of(separated).input("Y") == names{"h@SHAPE"});
}

TEST_CASE("the graph reads the value for the last time in the forward pass") {
  for (const std::size_t devices : {1, 2}) {
    auto options = on_cpus(devices);
    options.lowering.separate_shape_inputs = true;
    const auto g = build(biased(), options);
    CHECK_NOTHROW(check_hazards(g, 2));
    const auto h = find_var(g, "h", 1);
    std::multiset<std::string> readers;
    for (auto& op : g.ops)
      if (std::ranges::find(op.inputs, h) != op.inputs.end())
        readers.insert(op.desc->type);
    CHECK(readers
          == std::multiset<std::string>{"elementwise_add",
                                        std::string{shape_of_type}});
  }
}

TEST_CASE("programs without such gradients are told apart") {
  CHECK(has_shape_inputs(biased().desc));
  CHECK_FALSE(has_shape_inputs(linear_with_sgd().desc));
}

} // TEST_SUITE("graph.passes.shape_inputs")
