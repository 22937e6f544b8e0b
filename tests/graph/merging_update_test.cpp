// SPDX-License-Identifier: Apache-2.0
#include "small_program.hpp"

#include <troupe/graph/merging/merge_plan.hpp>
#include <troupe/graph/merging/merging_update.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.merging_update") {

namespace {

/// y = x * w, loss = mean(y), momentum on w.
struct product_program : small_program {
  explicit product_program(const std::string& update = "momentum",
                           const shape& matrix = {4, 4}) {
    persistable("w", matrix).persistable("v", matrix).persistable("lr", {1});
    temporary("w@GRAD");
    op("mul", {"x", "w"}, {"y"});
    op("mean", {"y"}, {"loss"}, role_forward | role_loss);
    loss_gradient("loss");
    op("mul_grad", {}, {}, role_backward, {"w", "w@GRAD"});
    product().inputs = {
      {"X", {"x"}}, {"Y", {"w"}}, {"Out@GRAD", {"loss@GRAD"}}};
    product().outputs = {{"Y@GRAD", {"w@GRAD"}}};
    op(update, {}, {}, role_optimize, {"w", "w@GRAD"});
    auto& last = desc.main().ops.back();
    last.inputs = {{"Param", {"w"}},
                   {"Grad", {"w@GRAD"}},
                   {"Velocity", {"v"}},
                   {"LearningRate", {"lr"}}};
    last.outputs = {{"ParamOut", {"w"}}, {"VelocityOut", {"v"}}};
  }

  op_desc& product() { return desc.main().ops[3]; }

  /// Puts the op that was added last before the update.
  void move_before_update() {
    auto& ops = desc.main().ops;
    std::swap(ops.back(), ops[ops.size() - 2]);
  }

  var_desc& gradient() { return desc.main().vars.at("w@GRAD"); }
};

build_options merging(std::size_t devices,
                      merge_strategy strategy = merge_strategy::reduce,
                      const names& fetches = {}) {
  auto options = on_cpus(devices, strategy, fetches);
  options.lowering.share_parameters = true;
  options.lowering.merge_in_updates = true;
  return options;
}

build_options gathering(std::size_t devices,
                        merge_strategy strategy = merge_strategy::reduce) {
  auto options = merging(devices, strategy);
  options.lowering.gather_products = true;
  return options;
}

product_program large_product() {
  return product_program("momentum", {256, 256});
}

bool merges(const small_program& p, const build_options& options = merging(2)) {
  const auto plan = plan_merges(p.desc.main(), options);
  REQUIRE(plan.gradients.size() == 1);
  return plan.gradients[0].merged_by.has_value();
}

} // namespace

TEST_CASE("the update reads the gradient of every device") {
  const auto g = build(product_program{}, merging(2));
  CHECK(describe_ops(g)
        == "mul@0: x:0 w:0 -> y:1\n"
           "mul@1: x:0 w:0@0 -> y:1\n"
           "mean@0: y:1 -> loss:1\n"
           "mean@1: y:1 -> loss:1\n"
           "scale_loss_grad@0: -> loss@GRAD:1\n"
           "scale_loss_grad@1: -> loss@GRAD:1\n"
           "mul_grad@0: x:0 w:0 loss@GRAD:1 -> w@GRAD:1\n"
           "mul_grad@1: x:0 w:0@0 loss@GRAD:1 -> w@GRAD:1\n"
           "merging_momentum@0: w:0 w@GRAD:1 w@GRAD:1@1 v:0 lr:0 -> w:1 v:1\n");
}

TEST_CASE("without shared memory gradients are merged before") {
  auto apart = merging(2);
  apart.lowering.merge_in_updates = false;
  CHECK_FALSE(merges(product_program{}, apart));
  CHECK(find_op(build(product_program{}, apart), "reduce") != no_handle);
}

TEST_CASE("where every device updates, gradients are merged before") {
  CHECK_FALSE(
    merges(product_program{}, merging(2, merge_strategy::all_reduce)));
  CHECK(merges(product_program{}, merging(2, merge_strategy::replicate)));
}

TEST_CASE("updates that cannot merge get one gradient") {
  for (auto update : {"sgd", "momentum", "adam", "adamw"})
    CHECK(merges(product_program{update}));
  for (auto update : {"lamb", "merging_momentum", "dgc_momentum"})
    CHECK_FALSE(merges(product_program{update}));
}

TEST_CASE("a gradient that others read, change or fetch is merged before") {
  product_program clipped;
  clipped.op("clip", {"w@GRAD"}, {"w@GRAD"}, role_optimize, {"w", "w@GRAD"});
  clipped.move_before_update();
  CHECK_FALSE(merges(clipped));
  product_program read;
  read.op("norm", {"w@GRAD"}, {"norm"}, role_optimize, {"w", "w@GRAD"});
  CHECK_FALSE(merges(read));
  read.move_before_update();
  CHECK_FALSE(merges(read));
  product_program cleared;
  cleared.op("fill", {}, {"w@GRAD"}, role_optimize, {"w", "w@GRAD"});
  CHECK_FALSE(merges(cleared));
  CHECK_FALSE(
    merges(product_program{}, merging(2, merge_strategy::reduce, {"w@GRAD"})));
}

TEST_CASE("ops before the gradient is complete may read it") {
  product_program p;
  p.op("sum", {"w@GRAD", "w@GRAD"}, {"w@GRAD"}, role_backward, {"w", "w@GRAD"});
  p.move_before_update();
  CHECK(merges(p));
}

TEST_CASE("rows and other types are merged before") {
  product_program rows;
  rows.gradient().kind = var_kind::selected_rows;
  CHECK_FALSE(merges(rows));
  product_program types;
  types.gradient().type = dtype::float64;
  CHECK_FALSE(merges(types));
  product_program undeclared_rows;
  undeclared_rows.product().attributes.set("is_sparse", true);
  CHECK_FALSE(merges(undeclared_rows));
}

TEST_CASE("a gradient worth gathering is made by its update") {
  const auto g = build(large_product(), gathering(2));
  CHECK(describe_ops(g)
        == "mul@0: x:0 w:0 -> y:1\n"
           "mul@1: x:0 w:0@0 -> y:1\n"
           "mean@0: y:1 -> loss:1\n"
           "mean@1: y:1 -> loss:1\n"
           "scale_loss_grad@0: -> loss@GRAD:1\n"
           "scale_loss_grad@1: -> loss@GRAD:1\n"
           "gathered_momentum@0: w:0 v:0 lr:0 x:0 x:0@1 loss@GRAD:1 "
           "loss@GRAD:1@1 -> w:1 v:1\n");
}

TEST_CASE("its update knows how the parameter is a matrix") {
  product_program deep("momentum", {16, 16, 256});
  deep.product().attributes.set("y_num_col_dims", 2);
  const auto g = build(deep, gathering(2));
  const auto& op = g.op(find_op(g, "gathered_momentum"));
  CHECK(op.desc->attributes.get_int("y_num_col_dims", 1) == 2);
  CHECK(op.desc->role() == role_optimize);
}

TEST_CASE("where every device updates, one gathers before") {
  const auto g =
    build(large_product(), gathering(2, merge_strategy::all_reduce));
  CHECK(find_op(g, "gathered_mul_grad") != no_handle);
}

TEST_CASE("factors that change before the update are used before") {
  for (auto factor : {"x", "loss@GRAD"}) {
    CAPTURE(factor);
    auto p = large_product();
    p.op("fill", {}, {factor}, role_backward);
    CHECK(merges(p, gathering(2)));
    p.move_before_update();
    CHECK_FALSE(merges(p, gathering(2)));
    CHECK(find_op(build(p, gathering(2)), "gathered_mul_grad") != no_handle);
  }
}

TEST_CASE("every order of accesses is proven") {
  for (std::size_t devices : {2, 3, 5})
    for (auto strategy : {merge_strategy::reduce, merge_strategy::replicate})
      for (bool share : {false, true})
        for (bool gathers : {false, true}) {
          auto options = merging(devices, strategy, {"w"});
          options.lowering.share_parameters = share;
          options.lowering.gather_products = gathers;
          const auto g = build(large_product(), options);
          CHECK(find_op(g, gathers ? "gathered_momentum" : "merging_momentum")
                != no_handle);
          CHECK_NOTHROW(check_hazards(g, 4));
        }
}

} // TEST_SUITE("graph.merging_update")
