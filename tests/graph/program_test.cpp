// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>

#include <troupe/graph/program.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::graph;
using test::caught;
using test::says;

TEST_SUITE("graph.program") {

namespace {

using strings = std::vector<std::string>;

op_desc make_op(std::string type, strings in, strings out,
                std::int32_t role = role_forward) {
  op_desc op;
  op.type = std::move(type);
  op.set_input("X", std::move(in));
  op.set_output("Out", std::move(out));
  op.attributes.set("op_role", role);
  return op;
}

void declare(program& p, const strings& variables, bool persistable = false) {
  for (const auto& name : variables) {
    var_desc var;
    var.name = name;
    var.persistable = persistable;
    p.main().add_var(std::move(var));
  }
}

/// y = f(x, w); loss = mean(y); gradients; sgd.
program small_training() {
  program p;
  declare(p, {"x", "y", "loss", "loss@GRAD", "w@GRAD", "mask"});
  declare(p, {"w", "velocity"}, true);
  auto& ops = p.main().ops;
  ops.push_back(make_op("dropout", {"x", "w"}, {"y", "mask"}));
  ops.push_back(make_op("mean", {"y"}, {"loss"}, role_forward | role_loss));
  ops.push_back(
    make_op("fill_constant", {}, {"loss@GRAD"}, role_backward | role_loss));
  ops.push_back(
    make_op("f_grad", {"loss@GRAD", "w"}, {"w@GRAD"}, role_backward));
  ops.push_back(
    make_op("sgd", {"w", "w@GRAD", "velocity"}, {"w"}, role_optimize));
  return p;
}

} // namespace

TEST_CASE("a slot that an op has not is empty") {
  op_desc op;
  op.set_input("X", {"a", "b"});
  CHECK(op.input("X") == strings{"a", "b"});
  CHECK(op.input("Y").empty());
  CHECK(op.output("X").empty());
}

TEST_CASE("setting a slot again replaces its arguments and keeps its place") {
  op_desc op;
  op.set_output("A", {"a"});
  op.set_output("B", {"b"});
  op.set_output("A", {"c", "c"});
  CHECK(op.output_names() == strings{"c", "c", "b"});
}

TEST_CASE("asking for the only argument of a slot with two names op and slot") {
  auto op = make_op("concat", {"a", "b"}, {"c"});
  CHECK(op.only_output("Out") == "c");
  auto e = caught([&] { op.only_input("X"); });
  CHECK(e.code() == errc::graph_invalid);
  CHECK(says(e, "concat"));
  CHECK(says(e, "slot X"));
  CHECK(says(e, "2"));
  CHECK(caught([&] { op.only_output("Y"); }).code() == errc::graph_invalid);
}

TEST_CASE("role variables are pairs of parameter and gradient") {
  auto op = make_op("f_grad", {}, {});
  CHECK(op.role_vars().empty());
  op.attributes.set("op_role_var", strings{"w", "w@GRAD", "b", "b@GRAD"});
  REQUIRE(op.role_vars().size() == 2);
  CHECK(op.role_vars()[1]
        == std::pair<std::string, std::string>{"b", "b@GRAD"});
  op.attributes.set("op_role_var", strings{"w"});
  CHECK(caught([&] { op.role_vars(); }).code() == errc::graph_invalid);
}

TEST_CASE("an op without role is a forward op") {
  CHECK(op_desc{}.role() == role_forward);
  CHECK(make_op("f", {}, {}, role_optimize).role() == role_optimize);
}

TEST_CASE("an undeclared variable is named") {
  program p;
  CHECK(p.main().find_var("x") == nullptr);
  auto e = caught([&] { p.main().var("x"); });
  CHECK(e.code() == errc::not_found);
  CHECK(e.where().variable == "x");
}

TEST_CASE("the loss is the output of the op with role Forward|Loss") {
  CHECK(find_loss(small_training()) == "loss");
}

TEST_CASE("of several outputs of the loss op the one in slot Loss counts") {
  auto p = small_training();
  auto& op = p.main().ops[1];
  op.outputs = {{"Softmax", {"s"}}, {"Loss", {"l"}}};
  CHECK(find_loss(p) == "l");
}

TEST_CASE("without a loss op the first gradient tells the loss") {
  auto p = small_training();
  p.main().ops[1].attributes.set("op_role", std::int32_t{role_forward});
  CHECK(find_loss(p) == "loss");
}

TEST_CASE("a loss that is scaled for mixed precision counts unscaled") {
  auto p = small_training();
  auto& ops = p.main().ops;
  op_desc scaled;
  scaled.type = "elementwise_mul";
  scaled.set_input("X", {"loss"});
  scaled.set_input("Y", {"factor"});
  scaled.set_output("Out", {"scaled"});
  std::swap(scaled.attributes, ops[1].attributes);
  ops.insert(ops.begin() + 2, scaled);
  CHECK(find_loss(p) == "scaled");
  op_desc unscale;
  unscale.type = "check_finite_and_unscale";
  unscale.set_input("Scale", {"factor"});
  ops.push_back(unscale);
  CHECK(find_loss(p) == "loss");
}

TEST_CASE("a program without loss says so") {
  program p;
  p.main().ops.push_back(make_op("relu", {"x"}, {"y"}));
  CHECK(caught([&] { find_loss(p); }).code() == errc::not_found);
}

TEST_CASE("what is read before it is written and not persistable must be fed") {
  CHECK(feed_names(small_training()) == strings{"x"});
}

TEST_CASE("variables that a feed op writes must be fed") {
  program p;
  declare(p, {"feed", "x", "y"});
  p.main().find_var("feed")->kind = var_kind::feed_minibatch;
  p.main().ops.push_back(make_op("feed", {"feed"}, {"x"}));
  p.main().ops.push_back(make_op("relu", {"x"}, {"y"}));
  CHECK(feed_names(p) == strings{"x"});
}

TEST_CASE("the test program has neither gradients nor updates") {
  auto test = clone_for_test(small_training());
  REQUIRE(test.main().ops.size() == 2);
  CHECK(test.main().ops[1].type == "mean");
  CHECK(find_loss(test) == "loss");
}

TEST_CASE("the test program keeps the variables that its ops use and inputs") {
  auto p = small_training();
  declare(p, {"unused input"});
  p.main().find_var("unused input")->need_check_feed = true;
  auto test = clone_for_test(p);
  CHECK(test.main().find_var("w"));
  CHECK(test.main().find_var("unused input"));
  CHECK(test.main().find_var("velocity") == nullptr);
  CHECK(test.main().find_var("w@GRAD") == nullptr);
}

TEST_CASE("the test program evaluates: is_test is set where an op knows it") {
  auto p = small_training();
  p.main().ops[1].attributes.set("is_test", false);
  auto test = clone_for_test(p);
  CHECK(test.main().ops[0].attributes.get_bool("is_test", false));
  CHECK(test.main().ops[1].attributes.get_bool("is_test", false));
  p.main().ops[1].attributes.erase("is_test");
  CHECK_FALSE(clone_for_test(p).main().ops[1].attributes.has("is_test"));
}

} // TEST_SUITE("graph.program")
