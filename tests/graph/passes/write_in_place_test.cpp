// SPDX-License-Identifier: Apache-2.0
#include "graph/small_program.hpp"

#include <troupe/graph/passes/write_in_place.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.passes.write_in_place") {

namespace {

/// y = act(x w), loss = mean(y), sgd on w; the activation's gradient in
/// Paddle's slots.
struct activated {
  explicit activated(const std::string& gradient = "tanh_grad") {
    p.persistable("w");
    p.op("mul", {"x", "w"}, {"xw"})
      .op("act", {"xw"}, {"y"})
      .op("mean", {"y"}, {"loss"}, role_forward | role_loss)
      .loss_gradient("loss")
      .op("mean_grad", {"loss@GRAD"}, {"y@GRAD"}, role_backward)
      .op(gradient, {}, {"xw@GRAD"}, role_backward)
      .op("mul_grad", {"x", "xw@GRAD"}, {"w@GRAD"}, role_backward,
          {"w", "w@GRAD"})
      .op("sgd", {"w", "w@GRAD"}, {"w"}, role_optimize, {"w", "w@GRAD"});
    auto& op = at(gradient);
    op.inputs = {{"Out", {"y"}}, {"Out@GRAD", {"y@GRAD"}}};
    op.outputs = {{"X@GRAD", {"xw@GRAD"}}};
  }

  op_desc& at(const std::string& type) {
    return *std::ranges::find(p.desc.main().ops, type, &op_desc::type);
  }

  small_program p;
};

bool is_in_place(const activated& a, const std::set<std::string>& kept = {}) {
  const auto& before = a.p.desc.main().ops;
  const auto after = write_in_place(a.p.desc, kept);
  const auto& op = after.main().ops[5];
  const auto in_place =
    op.input("Out@GRAD") == op.output("X@GRAD") && op.type == before[5].type;
  const auto same = op.outputs == before[5].outputs;
  CHECK(same != in_place);
  return in_place;
}

} // namespace

TEST_CASE("a gradient that is read once is overwritten, readers are told") {
  activated a;
  const auto after = write_in_place(a.p.desc, {});
  const auto& ops = after.main().ops;
  CHECK(ops[5].input("Out@GRAD") == names{"y@GRAD"});
  CHECK(ops[5].output("X@GRAD") == names{"y@GRAD"});
  CHECK(ops[6].input("X") == names{"x", "y@GRAD"});
  CHECK(ops[6].output("Out") == names{"w@GRAD"});
}

TEST_CASE("activations one behind the other write the same variable") {
  activated a;
  auto& ops = a.p.desc.main().ops;
  auto second = a.at("tanh_grad");
  second.set_input("Out@GRAD", {"xw@GRAD"});
  second.set_output("X@GRAD", {"z@GRAD"});
  a.p.temporary("z@GRAD");
  a.at("mul_grad").set_input("X", {"x", "z@GRAD"});
  ops.insert(ops.begin() + 6, second);
  const auto after = write_in_place(a.p.desc, {});
  CHECK(after.main().ops[6].output("X@GRAD") == names{"y@GRAD"});
  CHECK(after.main().ops[7].input("X") == names{"x", "y@GRAD"});
}

TEST_CASE("other ops write variables of their own") {
  CHECK(is_in_place(activated{"softmax_grad"}));
  CHECK_FALSE(is_in_place(activated{"mul_grad_of_x"}));
}

TEST_CASE("what is fetched keeps its value") {
  activated a;
  CHECK(is_in_place(a, {"loss"}));
  CHECK_FALSE(is_in_place(a, {"y@GRAD"}));
  CHECK_FALSE(is_in_place(a, {"xw@GRAD"}));
}

TEST_CASE("what others read keeps its value") {
  activated a;
  a.p.op("look", {"y@GRAD"}, {"seen"}, role_backward);
  CHECK_FALSE(is_in_place(a));
}

TEST_CASE("a variable that several ops write is left alone") {
  activated a;
  a.p.op("add", {"x"}, {"xw@GRAD"}, role_backward);
  CHECK_FALSE(is_in_place(a));
}

TEST_CASE("the gradient of a parameter is left alone") {
  activated a;
  a.at("mean_grad").attributes.set("op_role_var", names{"b", "y@GRAD"});
  CHECK_FALSE(is_in_place(a));
}

TEST_CASE("variables of other dtypes or shapes, and persistable ones") {
  const auto with = [](const std::string& name, auto change) {
    activated a;
    change(a.p.desc.main().vars.find(name)->second);
    return is_in_place(a);
  };
  CHECK(with("y@GRAD", [](var_desc&) {}));
  CHECK_FALSE(with("y@GRAD", [](var_desc& v) { v.type = dtype::float64; }));
  CHECK_FALSE(with("y@GRAD", [](var_desc& v) { v.dims = {2}; }));
  CHECK_FALSE(with("y@GRAD", [](var_desc& v) { v.persistable = true; }));
  CHECK_FALSE(
    with("xw@GRAD", [](var_desc& v) { v.kind = var_kind::selected_rows; }));
}

TEST_CASE("programs of several blocks are left alone") {
  activated a;
  a.p.desc.blocks.emplace_back();
  CHECK_FALSE(is_in_place(a));
}

TEST_CASE("programs without such ops are told apart") {
  CHECK(has_ops_to_write_in_place(activated{}.p.desc));
  CHECK_FALSE(has_ops_to_write_in_place(linear_with_sgd().desc));
}

TEST_CASE("the graph is proven") {
  auto options = on_cpus(2);
  options.lowering.write_in_place = true;
  const auto g = build(activated{}.p, options);
  CHECK(find_var(g, "y@GRAD", 2, 1) != no_handle);
  CHECK(find_var(g, "xw@GRAD", 1) == no_handle);
  CHECK_NOTHROW(check_hazards(g, 3));
}

} // TEST_SUITE("graph.passes.write_in_place")
