// SPDX-License-Identifier: Apache-2.0
#include "small_program.hpp"

#include <troupe/base/error.hpp>
#include <troupe/graph/ssa_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.ssa_builder") {

namespace {

std::vector<const op_handle*> collectives(const ssa_graph& g) {
  std::vector<const op_handle*> result;
  for (auto& op : g.ops)
    if (op.stream == stream_kind::collective)
      result.push_back(&op);
  return result;
}

// "w@GRAD:1@0 ..." of a collective's inputs.
std::string inputs_of(const ssa_graph& g, const op_handle& op) {
  std::string text;
  for (auto id : op.inputs)
    text += std::string{g.var(id).name} + "@" + std::to_string(g.var(id).device)
            + " ";
  return text;
}

std::size_t count_ops(const ssa_graph& g, const std::string& type) {
  return static_cast<std::size_t>(
    std::count_if(g.ops.begin(), g.ops.end(),
                  [&](const op_handle& op) { return op.desc->type == type; }));
}

error build_error(const small_program& p, const build_options& options = {}) {
  try {
    build(p, options);
  } catch (const error& e) {
    return e;
  }
  FAIL("the graph was built");
  return {errc::cancelled, ""};
}

// Three parameters of 4 floats, gradients completed in the order c, b, a.
small_program three_gradients(var_kind kind_of_b = var_kind::dense) {
  small_program p;
  p.temporary("b@GRAD", kind_of_b);
  p.op("forward", {"x"}, {"loss"}, role_forward | role_loss);
  p.loss_gradient("loss");
  for (std::string name : {"c", "b", "a"}) {
    auto gradient = gradient_name(name);
    p.persistable(name);
    p.op("backward_" + name, {"loss@GRAD", name}, {gradient}, role_backward,
         {name, gradient});
  }
  for (std::string name : {"a", "b", "c"}) {
    auto gradient = gradient_name(name);
    p.op("sgd_" + name, {name, gradient}, {name}, role_optimize,
         {name, gradient});
  }
  return p;
}

} // namespace

TEST_CASE("one device runs the program once, without collectives") {
  auto g = build(linear_with_sgd(),
                 on_cpus(1, merge_strategy::all_reduce, {"loss", "w"}));
  CHECK(describe_ops(g)
        == "mul@0: x:0 w:0 -> xw:1\n"
           "add@0: xw:1 b:0 -> y:1\n"
           "mean@0: y:1 -> loss:1\n"
           "scale_loss_grad@0: -> loss@GRAD:1\n"
           "mean_grad@0: y:1 loss@GRAD:1 -> y@GRAD:1\n"
           "add_grad@0: y@GRAD:1 -> xw@GRAD:1 b@GRAD:1\n"
           "mul_grad@0: x:0 xw@GRAD:1 -> w@GRAD:1\n"
           "sgd_b@0: b:0 lr:0 b@GRAD:1 -> b:1\n"
           "sgd_w@0: w:0 lr:0 w@GRAD:1 -> w:1\n"
           "fetch@0: loss:1 ->\n"
           "fetch@0: w:1 ->\n");
  CHECK(describe_hazards(g)
        == "mul@0 -> sgd_w@0 write_after_read +0\n"
           "add@0 -> sgd_b@0 write_after_read +0\n"
           "fetch@0 -> sgd_w@0 write_after_read +1\n"
           "b:1@0 -> b:0@0 data +1\n"
           "w:1@0 -> w:0@0 data +1\n");
}

TEST_CASE("every strategy gives the same graph on one device") {
  auto all_reduce = build(linear_with_sgd(), on_cpus(1));
  for (auto strategy : {merge_strategy::reduce, merge_strategy::replicate,
                        merge_strategy::none}) {
    auto g = build(linear_with_sgd(), on_cpus(1, strategy));
    CHECK(describe_ops(g) == describe_ops(all_reduce));
    CHECK(g.edges == all_reduce.edges);
  }
}

TEST_CASE("all_reduce merges gradients and updates on every device") {
  auto g = build(linear_with_sgd(), on_cpus(2));
  CHECK(describe_ops(g)
        == "mul@0: x:0 w:0 -> xw:1\n"
           "mul@1: x:0 w:0 -> xw:1\n"
           "add@0: xw:1 b:0 -> y:1\n"
           "add@1: xw:1 b:0 -> y:1\n"
           "mean@0: y:1 -> loss:1\n"
           "mean@1: y:1 -> loss:1\n"
           "scale_loss_grad@0: -> loss@GRAD:1\n"
           "scale_loss_grad@1: -> loss@GRAD:1\n"
           "mean_grad@0: y:1 loss@GRAD:1 -> y@GRAD:1\n"
           "mean_grad@1: y:1 loss@GRAD:1 -> y@GRAD:1\n"
           "add_grad@0: y@GRAD:1 -> xw@GRAD:1 b@GRAD:1\n"
           "add_grad@1: y@GRAD:1 -> xw@GRAD:1 b@GRAD:1\n"
           "mul_grad@0: x:0 xw@GRAD:1 -> w@GRAD:1\n"
           "mul_grad@1: x:0 xw@GRAD:1 -> w@GRAD:1\n"
           "all_reduce@0: b@GRAD:1 b@GRAD:1@1 w@GRAD:1 w@GRAD:1@1 ->"
           " b@GRAD:2 b@GRAD:2@1 w@GRAD:2 w@GRAD:2@1\n"
           "sgd_b@0: b:0 lr:0 b@GRAD:2 -> b:1\n"
           "sgd_b@1: b:0 lr:0 b@GRAD:2 -> b:1\n"
           "sgd_w@0: w:0 lr:0 w@GRAD:2 -> w:1\n"
           "sgd_w@1: w:0 lr:0 w@GRAD:2 -> w:1\n");
  CHECK(describe_hazards(g)
        == "mul@0 -> sgd_w@0 write_after_read +0\n"
           "mul@1 -> sgd_w@1 write_after_read +0\n"
           "add@0 -> sgd_b@0 write_after_read +0\n"
           "add@1 -> sgd_b@1 write_after_read +0\n"
           "b:1@0 -> b:0@0 data +1\n"
           "b:1@1 -> b:0@1 data +1\n"
           "w:1@0 -> w:0@0 data +1\n"
           "w:1@1 -> w:0@1 data +1\n");
}

TEST_CASE("reduce updates each parameter at home and broadcasts it") {
  auto g = build(linear_with_sgd(), on_cpus(2, merge_strategy::reduce, {"w"}));
  CHECK(describe_ops(g)
        == "mul@0: x:0 w:0 -> xw:1\n"
           "mul@1: x:0 w:0 -> xw:1\n"
           "add@0: xw:1 b:0 -> y:1\n"
           "add@1: xw:1 b:0 -> y:1\n"
           "mean@0: y:1 -> loss:1\n"
           "mean@1: y:1 -> loss:1\n"
           "scale_loss_grad@0: -> loss@GRAD:1\n"
           "scale_loss_grad@1: -> loss@GRAD:1\n"
           "mean_grad@0: y:1 loss@GRAD:1 -> y@GRAD:1\n"
           "mean_grad@1: y:1 loss@GRAD:1 -> y@GRAD:1\n"
           "add_grad@0: y@GRAD:1 -> xw@GRAD:1 b@GRAD:1\n"
           "add_grad@1: y@GRAD:1 -> xw@GRAD:1 b@GRAD:1\n"
           "reduce@0: b@GRAD:1 b@GRAD:1@1 -> b@GRAD:2\n"
           "mul_grad@0: x:0 xw@GRAD:1 -> w@GRAD:1\n"
           "mul_grad@1: x:0 xw@GRAD:1 -> w@GRAD:1\n"
           "reduce@0: w@GRAD:1 w@GRAD:1@1 -> w@GRAD:2@1\n"
           "sgd_b@0: b:0 lr:0 b@GRAD:2 -> b:1\n"
           "broadcast@0: b:1 -> b:2 b:1@1\n"
           "sgd_w@1: w:0 lr:0 w@GRAD:2 -> w:1\n"
           "broadcast@1: w:1 -> w:1@0 w:2\n"
           "fetch@0: w:1 ->\n"
           "fetch@1: w:2 ->\n");
  CHECK(describe_hazards(g)
        == "mul@0 -> broadcast@1 write_after_read +0\n"
           "mul@1 -> sgd_w@1 write_after_read +0\n"
           "add@0 -> sgd_b@0 write_after_read +0\n"
           "add@1 -> broadcast@0 write_after_read +0\n"
           "reduce@0 -> reduce@0 order +0\n"
           "reduce@0 -> broadcast@0 order +0\n"
           "broadcast@0 -> broadcast@1 order +0\n"
           "broadcast@1 -> reduce@0 order +1\n"
           "fetch@0 -> broadcast@1 write_after_read +1\n"
           "fetch@1 -> sgd_w@1 write_after_read +1\n"
           "b:2@0 -> b:0@0 data +1\n"
           "b:1@1 -> b:0@1 data +1\n"
           "w:1@0 -> w:0@0 data +1\n"
           "w:2@1 -> w:0@1 data +1\n");
}

TEST_CASE("replicate makes device 0 the home of all parameters") {
  auto g = build(linear_with_sgd(), on_cpus(2, merge_strategy::replicate));
  for (auto* op : collectives(g))
    CHECK(op->root == 0);
  CHECK(find_op(g, "sgd_w", 0) != no_handle);
  CHECK(find_op(g, "sgd_w", 1) == no_handle);
  CHECK(find_op(g, "sgd_b", 1) == no_handle);
  CHECK(count_ops(g, "reduce") == 2);
  CHECK(count_ops(g, "broadcast") == 2);
}

TEST_CASE("strategy none replicates without merging") {
  auto g = build(linear_with_sgd(), on_cpus(3, merge_strategy::none));
  CHECK(collectives(g).empty());
  CHECK(count_ops(g, "sgd_w") == 3);
  auto scale = find_op(g, "scale_loss_grad", 0);
  CHECK(g.op(scale).desc->attributes.get_string("gradient_scale", "") == "one");
}

TEST_CASE("the loss gradient is scaled as asked, or left to be fed") {
  auto options = on_cpus(2);
  auto attribute = [&] {
    auto g = build(linear_with_sgd(), options);
    auto& op = g.op(find_op(g, "scale_loss_grad", 1));
    CHECK(op.kind == op_kind::scale_loss_grad);
    CHECK(op.inputs.empty());
    return op.desc->attributes.get_string("gradient_scale", "");
  };
  CHECK(attribute() == "coeff");
  options.scale = gradient_scale::one;
  CHECK(attribute() == "one");
  options.scale = gradient_scale::custom;
  auto g = build(linear_with_sgd(), options);
  CHECK(count_ops(g, "scale_loss_grad") == 0);
  auto fed = find_var(g, "loss@GRAD", 0, 1);
  REQUIRE(fed != no_handle);
  CHECK(g.var(fed).feed);
  CHECK(has_edge(g, fed, find_op(g, "mean_grad", 1), edge_kind::data, 0));
}

TEST_CASE("what must be fed is listed once, whichever devices read it") {
  small_program p;
  p.persistable("w").temporary("list", var_kind::tensor_array);
  p.op("first", {"x", "w"}, {"y"});
  p.op("second", {"y", "early", "x", "list"}, {"z"});
  CHECK(feed_names(build(p, on_cpus(2))) == names{"early", "x"});
}

TEST_CASE("small dense gradients share an all-reduce up to the limit") {
  auto options = on_cpus(2);
  options.lowering.fuse_all_reduce_bytes = 32; // two gradients of 4 floats
  auto g = build(three_gradients(), options);
  auto merged = collectives(g);
  REQUIRE(merged.size() == 2);
  CHECK(inputs_of(g, *merged[0]) == "c@GRAD@0 c@GRAD@1 b@GRAD@0 b@GRAD@1 ");
  CHECK(inputs_of(g, *merged[1]) == "a@GRAD@0 a@GRAD@1 ");
  CHECK(merged[0]->desc->input("X")
        == names{"c@GRAD", "c@GRAD", "b@GRAD", "b@GRAD"});
  CHECK(merged[0]->desc->output("Out") == merged[0]->desc->input("X"));
}

TEST_CASE("a limit of 0 merges each gradient by itself") {
  auto options = on_cpus(2);
  options.lowering.fuse_all_reduce_bytes = 0;
  CHECK(collectives(build(three_gradients(), options)).size() == 3);
}

TEST_CASE("sparse gradients and other dtypes are not fused with dense ones") {
  auto g = build(three_gradients(var_kind::selected_rows), on_cpus(2));
  auto merged = collectives(g);
  REQUIRE(merged.size() == 3);
  CHECK(inputs_of(g, *merged[1]) == "b@GRAD@0 b@GRAD@1 ");
  auto half = three_gradients();
  half.temporary("a@GRAD", var_kind::dense, dtype::float16);
  CHECK(collectives(build(half, on_cpus(2))).size() == 2);
}

TEST_CASE("gradients are merged before anything reads them") {
  small_program p;
  p.persistable("a").persistable("b");
  p.op("forward", {"x"}, {"loss"}, role_forward | role_loss)
    .loss_gradient("loss")
    .op("grad_a", {"loss@GRAD"}, {"a@GRAD"}, role_backward, {"a", "a@GRAD"})
    .op("look", {"a@GRAD"}, {"seen"}, role_backward)
    .op("grad_b", {"loss@GRAD"}, {"b@GRAD"}, role_backward, {"b", "b@GRAD"});
  auto g = build(p, on_cpus(2));
  CHECK(collectives(g).size() == 2);
  CHECK(g.op(find_op(g, "look", 1)).inputs.front()
        == find_var(g, "a@GRAD", 2, 1));
}

TEST_CASE("collectives follow the order of the gradients' producers") {
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
    auto options = on_cpus(3, strategy);
    options.lowering.fuse_all_reduce_bytes = 0;
    auto g = build(three_gradients(), options);
    auto ordered = collectives(g);
    REQUIRE(ordered.size() >= 3);
    for (std::size_t i = 0; i < ordered.size(); ++i)
      CHECK(ordered[i]->collective_index == static_cast<int>(i));
    CHECK(inputs_of(g, *ordered[0]) == "c@GRAD@0 c@GRAD@1 c@GRAD@2 ");
    CHECK(inputs_of(g, *ordered[2]) == "a@GRAD@0 a@GRAD@1 a@GRAD@2 ");
    for (std::size_t i = 1; i < ordered.size(); ++i)
      CHECK(
        has_edge(g, ordered[i - 1]->id, ordered[i]->id, edge_kind::order, 0));
    CHECK(has_edge(g, ordered.back()->id, ordered.front()->id, edge_kind::order,
                   1));
  }
}

TEST_CASE("a gradient is merged once, after its last backward writer") {
  small_program p;
  p.persistable("w");
  p.op("forward", {"x"}, {"loss"}, role_forward | role_loss)
    .loss_gradient("loss")
    .op("first", {"loss@GRAD"}, {"w@GRAD"}, role_backward, {"w", "w@GRAD"})
    .op("input_grad", {"loss@GRAD"}, {"x@GRAD"}, role_backward, {"w", "w@GRAD"})
    .op("add_to", {"w@GRAD", "x@GRAD"}, {"w@GRAD"}, role_backward,
        {"w", "w@GRAD"});
  auto g = build(p, on_cpus(2));
  auto merged = collectives(g);
  REQUIRE(merged.size() == 1);
  CHECK(merged[0]->inputs.front() == find_var(g, "w@GRAD", 2, 0));
}

TEST_CASE("programs without backward ops need no loss and no collectives") {
  small_program p;
  p.persistable("w").op("mul", {"x", "w"}, {"y"});
  auto g = build(p, on_cpus(2, merge_strategy::all_reduce, {"y"}));
  CHECK(describe_ops(g)
        == "mul@0: x:0 w:0 -> y:1\n"
           "mul@1: x:0 w:0 -> y:1\n"
           "fetch@0: y:1 ->\n"
           "fetch@1: y:1 ->\n");
  CHECK(describe_hazards(g).empty());
  CHECK(g.var(find_var(g, "x", 0)).feed);
  CHECK_FALSE(g.var(find_var(g, "w", 0)).feed);
}

TEST_CASE("feed and fetch ops of inference programs are left to the executor") {
  small_program p;
  p.temporary("feed", var_kind::feed_minibatch);
  p.temporary("fetch", var_kind::fetch_list);
  p.op("feed", {"feed"}, {"x"})
    .op("relu", {"x"}, {"y"})
    .op("fetch", {"y"}, {"fetch"});
  auto g = build(p);
  CHECK(describe_ops(g) == "relu@0: x:0 -> y:1\n");
  CHECK(g.var(find_var(g, "x", 0)).feed);
}

TEST_CASE("absent arguments have no handle") {
  small_program p;
  p.op("split_grad", {"x", "@EMPTY@"}, {"", "y", "@EMPTY@"});
  auto g = build(p);
  CHECK(describe_ops(g) == "split_grad@0: x:0 -> y:1\n");
}

TEST_CASE("names stay unique and say version and device") {
  auto g = build(linear_with_sgd(), on_cpus(2));
  CHECK(handle_name(g, 1) == "mul#1@cpu:1");
  CHECK(handle_name(g, find_var(g, "w", 1, 1)) == "w:v1@cpu:1");
  CHECK(g.latest("w", 1) == find_var(g, "w", 1, 1));
  CHECK(g.latest("nobody", 0) == no_handle);
  CHECK(g.max_distance() == 1);
}

TEST_CASE("an op that reads what nobody provides is an error") {
  small_program p;
  p.temporary("rows", var_kind::selected_rows);
  p.op("relu", {"rows"}, {"y"});
  auto e = build_error(p);
  CHECK(e.code() == errc::graph_invalid);
  CHECK(e.where().op_type == "relu");
  CHECK(e.where().variable == "rows");
  CHECK(e.where().device == "cpu:0");

  small_program undeclared;
  undeclared.op("relu", {"x"}, {"y"});
  undeclared.desc.main().vars.erase("x");
  CHECK(build_error(undeclared).where().variable == "x");
}

TEST_CASE("unknown losses and fetches and bad devices are errors") {
  auto options = on_cpus(1);
  options.loss = "lost";
  CHECK(build_error(linear_with_sgd(), options).code() == errc::not_found);
  options = on_cpus(1, merge_strategy::all_reduce, {"lost"});
  auto e = build_error(linear_with_sgd(), options);
  CHECK(e.code() == errc::not_found);
  CHECK(e.where().variable == "lost");

  small_program no_loss;
  no_loss.op("backward", {"x"}, {"y"}, role_backward);
  CHECK(build_error(no_loss).code() == errc::not_found);

  CHECK(build_error(linear_with_sgd(), on_cpus(0)).code()
        == errc::invalid_argument);
  options = on_cpus(1);
  options.devices.push_back(options.devices.front());
  CHECK(build_error(linear_with_sgd(), options).code()
        == errc::invalid_argument);
  small_program empty;
  empty.desc.blocks.clear();
  CHECK(build_error(empty).code() == errc::graph_invalid);
}

TEST_CASE("strategies and scales are parsed by name") {
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                        merge_strategy::replicate, merge_strategy::none})
    CHECK(parse_merge_strategy(to_string(strategy)) == strategy);
  CHECK(parse_gradient_scale("custom") == gradient_scale::custom);
  CHECK_THROWS_WITH_AS(parse_merge_strategy("sum"),
                       doctest::Contains("all_reduce, reduce, replicate, none"),
                       error);
  CHECK_THROWS_AS(parse_gradient_scale(""), error);
}

} // TEST_SUITE("graph.ssa_builder")
