// SPDX-License-Identifier: Apache-2.0
#include "small_program.hpp"

#include <troupe/graph/merging/gathered_product.hpp>
#include <troupe/graph/merging/merge_plan.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.gathered_product") {

namespace {

/// out = x * w, loss = mean(out), sgd on w; who makes the gradient of x may
/// be one that somebody reads.
struct product_program : small_program {
  explicit product_program(const shape& matrix = {256, 256},
                           bool gradient_of_x = false) {
    persistable("w", matrix).persistable("lr", {1});
    temporary("x").temporary("out").temporary("out@GRAD");
    op("mul", {"x", "w"}, {"out"});
    op("mean", {"out"}, {"loss"}, role_forward | role_loss);
    loss_gradient("loss");
    op("mean_grad", {"out", "loss@GRAD"}, {"out@GRAD"}, role_backward);
    op("mul_grad", {}, {}, role_backward, {"w", "w@GRAD"});
    auto& gradient = product();
    gradient.inputs = {{"X", {"x"}}, {"Y", {"w"}}, {"Out@GRAD", {"out@GRAD"}}};
    gradient.outputs = {{"X@GRAD", {gradient_of_x ? "x@GRAD" : "@EMPTY@"}},
                        {"Y@GRAD", {"w@GRAD"}}};
    temporary("w@GRAD").temporary("x@GRAD");
    if (gradient_of_x)
      op("first_layers_grad", {"x@GRAD"}, {"rest"}, role_backward);
    op("sgd", {"w", "lr", "w@GRAD"}, {"w"}, role_optimize, {"w", "w@GRAD"});
  }

  op_desc& product() { return desc.main().ops[4]; }
};

build_options gathering(std::size_t devices,
                        merge_strategy strategy = merge_strategy::reduce,
                        const names& fetches = {}) {
  auto options = on_cpus(devices, strategy, fetches);
  options.lowering.share_parameters = true;
  options.lowering.gather_products = true;
  return options;
}

bool gathers(const small_program& p, const build_options& options) {
  const auto plan = plan_merges(p.desc.main(), options);
  REQUIRE(plan.gradients.size() == 1);
  return plan.gradients[0].gathered_on.has_value();
}

} // namespace

TEST_CASE("one device makes the gradient from the factors of all") {
  const auto g = build(product_program{}, gathering(2));
  CHECK(describe_ops(g)
        == "mul@0: x:0 w:0 -> out:1\n"
           "mul@1: x:0 w:0@0 -> out:1\n"
           "mean@0: out:1 -> loss:1\n"
           "mean@1: out:1 -> loss:1\n"
           "scale_loss_grad@0: -> loss@GRAD:1\n"
           "scale_loss_grad@1: -> loss@GRAD:1\n"
           "mean_grad@0: out:1 loss@GRAD:1 -> out@GRAD:1\n"
           "mean_grad@1: out:1 loss@GRAD:1 -> out@GRAD:1\n"
           "gathered_mul_grad@0: x:0 x:0@1 w:0 out@GRAD:1 out@GRAD:1@1 -> "
           "w@GRAD:1\n"
           "sgd@0: w:0 lr:0 w@GRAD:1 -> w:1\n");
}

TEST_CASE("where every device updates, each gets the gradient") {
  const auto g =
    build(product_program{}, gathering(2, merge_strategy::all_reduce));
  CHECK(describe_ops(g).find("gathered_mul_grad@0: x:0 x:0@1 w:0 out@GRAD:1 "
                             "out@GRAD:1@1 -> w@GRAD:1 w@GRAD:1@1\n"
                             "sgd@0: w:0 lr:0 w@GRAD:1 -> w:1\n"
                             "sgd@1: w:0 lr:0@0 w@GRAD:1 -> w:1\n")
        != std::string::npos);
}

TEST_CASE("the home gathers, else devices take turns") {
  const auto gatherers = [](merge_strategy strategy) {
    product_program p;
    p.persistable("v", {512, 512}).temporary("v@GRAD");
    auto again = p.product();
    again.set_input("Y", {"v"});
    again.set_output("Y@GRAD", {"v@GRAD"});
    again.attributes.set("op_role_var", names{"v", "v@GRAD"});
    auto& ops = p.desc.main().ops;
    ops.insert(ops.begin() + 5, again);
    p.op("sgd", {"v", "lr", "v@GRAD"}, {"v"}, role_optimize, {"v", "v@GRAD"});
    const auto plan = plan_merges(p.desc.main(), gathering(2, strategy));
    REQUIRE(plan.gradients.size() == 2);
    return std::vector{plan.gradients[0].gathered_on.value(),
                       plan.gradients[1].gathered_on.value()};
  };
  CHECK(gatherers(merge_strategy::all_reduce)
        == std::vector<std::size_t>{0, 1});
  CHECK(gatherers(merge_strategy::reduce) == std::vector<std::size_t>{0, 1});
  CHECK(gatherers(merge_strategy::replicate) == std::vector<std::size_t>{0, 0});
}

TEST_CASE("what is left of the op runs on every device") {
  const auto g = build(product_program{{256, 256}, true}, gathering(2));
  CHECK(describe_ops(g).find("mul_grad@0: x:0 w:0 out@GRAD:1 -> x@GRAD:1\n"
                             "mul_grad@1: x:0 w:0@0 out@GRAD:1 -> x@GRAD:1\n"
                             "gathered_mul_grad@0: ")
        != std::string::npos);
}

TEST_CASE("it stands for all samples, as updates do") {
  const auto g = build(product_program{}, gathering(2));
  const auto& op = g.op(find_op(g, "gathered_mul_grad"));
  CHECK(op.desc->role() == role_optimize);
  CHECK(op.collective_index == -1);
}

TEST_CASE("every order of accesses is proven") {
  for (std::size_t devices : {2, 3, 5})
    for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                          merge_strategy::replicate})
      for (bool share : {false, true}) {
        auto options = gathering(devices, strategy, {"w"});
        options.lowering.share_parameters = share;
        for (bool gradient_of_x : {false, true}) {
          const auto g =
            build(product_program{{256, 256}, gradient_of_x}, options);
          CHECK(find_op(g, "gathered_mul_grad") != no_handle);
          CHECK_NOTHROW(check_hazards(g, 4));
        }
      }
}

TEST_CASE("factors of the batch must be smaller than the gradient") {
  const auto gathered_with = [](const shape& matrix, std::int64_t batch = 0) {
    auto options = gathering(2);
    options.lowering.batch = batch;
    return gathers(product_program{matrix}, options);
  };
  CHECK(gathered_with({256, 256}));
  CHECK_FALSE(gathered_with({256, 255}));
  CHECK_FALSE(gathered_with({-1, 512}));
  CHECK(gathered_with({400, 400}, 200));
  CHECK_FALSE(gathered_with({400, 400}, 201));
  CHECK(gathered_with({128, 128}, 2));
  CHECK_FALSE(gathered_with({128, 127}, 2)); // too small for any
}

TEST_CASE("matrices of several columns of extents are taken as they are used") {
  product_program p{{16, 16, 256}};
  CHECK_FALSE(gathers(p, gathering(2))); // 16 x 4096
  p.product().attributes.set("y_num_col_dims", 2);
  CHECK(gathers(p, gathering(2))); // 256 x 256
}

TEST_CASE("a sample with several rows is not gathered") {
  product_program p;
  p.product().attributes.set("x_num_col_dims", 2);
  CHECK_FALSE(gathers(p, gathering(2)));
}

TEST_CASE("without shared memory gradients are merged") {
  auto apart = gathering(2);
  apart.lowering.gather_products = false;
  CHECK_FALSE(gathers(product_program{}, apart));
}

TEST_CASE("a gradient that is fetched is gathered for every device") {
  const auto g =
    build(product_program{}, gathering(2, merge_strategy::reduce, {"w@GRAD"}));
  CHECK(g.op(find_op(g, "gathered_mul_grad")).outputs.size() == 2);
}

TEST_CASE("an op that overwrites a factor is not split") {
  product_program p{{256, 256}, true};
  p.product().set_output("X@GRAD", {"out@GRAD"});
  CHECK_FALSE(gathers(p, gathering(2)));
}

TEST_CASE("gradients that are made in several pieces are merged") {
  product_program p;
  auto& ops = p.desc.main().ops;
  p.op("sum", {"w@GRAD", "w@GRAD"}, {"w@GRAD"}, role_backward);
  std::rotate(ops.begin() + 5, ops.end() - 1, ops.end());
  CHECK_FALSE(gathers(p, gathering(2)));
}

} // TEST_SUITE("graph.gathered_product")
