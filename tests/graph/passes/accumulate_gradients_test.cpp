// SPDX-License-Identifier: Apache-2.0
#include "graph/small_program.hpp"

#include <troupe/base/error.hpp>
#include <troupe/graph/graph_export.hpp>
#include <troupe/graph/passes/accumulate_gradients.hpp>
#include <troupe/graph/passes/rank_collectives.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.passes.accumulate_gradients") {

namespace {

build_options accumulating(std::size_t devices,
                           merge_strategy strategy = merge_strategy::all_reduce,
                           const names& fetches = {}) {
  auto options = on_cpus(devices, strategy, fetches);
  options.accumulate = 4;
  return options;
}

/// "type@device ..." of the ops that work only in updates.
std::string in_updates(const ssa_graph& g) {
  std::string text;
  for (auto& op : g.ops)
    if (op.only_in_updates)
      text += op.desc->type + "@" + std::to_string(op.device) + " ";
  return text;
}

std::string unit_in(const build_options& options) {
  const auto g = build(linear_with_sgd(), options);
  const auto op = std::ranges::find_if(
    g.ops, [](auto& o) { return o.desc->type == accumulate_type; });
  REQUIRE(op != g.ops.end());
  return op->desc->attributes.get_string("unit", "");
}

} // namespace

TEST_CASE("each device accumulates gradients before they are merged") {
  const auto g = build(linear_with_sgd(), accumulating(2));
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
           "accumulate@0: b@GRAD:1 -> b@GRAD:2\n"
           "accumulate@1: b@GRAD:1 -> b@GRAD:2\n"
           "mul_grad@0: x:0 xw@GRAD:1 -> w@GRAD:1\n"
           "mul_grad@1: x:0 xw@GRAD:1 -> w@GRAD:1\n"
           "accumulate@0: w@GRAD:1 -> w@GRAD:2\n"
           "accumulate@1: w@GRAD:1 -> w@GRAD:2\n"
           "all_reduce@0: b@GRAD:2 b@GRAD:2@1 w@GRAD:2 w@GRAD:2@1 -> b@GRAD:3 "
           "b@GRAD:3@1 w@GRAD:3 w@GRAD:3@1\n"
           "sgd_b@0: b:0 lr:0 b@GRAD:3 -> b:1\n"
           "sgd_b@1: b:0 lr:0 b@GRAD:3 -> b:1\n"
           "sgd_w@0: w:0 lr:0 w@GRAD:3 -> w:1\n"
           "sgd_w@1: w:0 lr:0 w@GRAD:3 -> w:1\n");
  CHECK(in_updates(g) == "all_reduce@0 sgd_b@0 sgd_b@1 sgd_w@0 sgd_w@1 ");
  check_hazards(g, 2);
}

TEST_CASE("under reduce, merging, updates and broadcasts belong to updates") {
  const auto g =
    build(linear_with_sgd(), accumulating(2, merge_strategy::reduce));
  CHECK(in_updates(g)
        == "reduce@0 reduce@0 sgd_b@0 broadcast@0 sgd_w@1 broadcast@1 ");
  check_hazards(g, 2);
}

TEST_CASE("one device accumulates, too") {
  const auto g = build(linear_with_sgd(), accumulating(1));
  CHECK(in_updates(g) == "sgd_b@0 sgd_w@0 ");
  CHECK(find_op(g, "all_reduce") == no_handle);
  CHECK(g.var(find_var(g, "w@GRAD", 2)).generator != no_handle);
}

TEST_CASE("ranks of a collective belong to updates as the collective does") {
  const auto g =
    make_rank_collectives(build(linear_with_sgd(), accumulating(2)));
  for (auto& op : g.ops)
    if (op.kind == op_kind::all_reduce)
      CHECK(op.only_in_updates);
}

TEST_CASE("an update per step needs no ops for it") {
  auto options = on_cpus(2);
  const auto without = build(linear_with_sgd(), options);
  options.accumulate = 1;
  const auto g = build(linear_with_sgd(), options);
  CHECK(describe_ops(g) == describe_ops(without));
  CHECK(in_updates(g).empty());
}

TEST_CASE("an exported graph says which ops belong to updates") {
  const auto text = to_json(build(linear_with_sgd(), accumulating(1)));
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (auto at = text.find(part); at != text.npos;
         at = text.find(part, at + 1))
      ++found;
    return found;
  };
  CHECK(count("\"only_in_updates\":true") == 2);
  CHECK(count("only_in_updates") == 2);
}

TEST_CASE("schedules belong to updates, collectives of programs do not") {
  small_program p;
  p.persistable("w").persistable("step").persistable("mean");
  p.op("increment", {"step"}, {"step"}, role_lr_sched);
  p.op("decay", {"step"}, {"rate"}, role_lr_sched);
  p.op("mul", {"x", "w"}, {"y"});
  p.op("all_reduce", {"y"}, {"y"}); // such as the statistics of a batch norm
  p.op("sync_batch_norm_running", {"mean", "y"}, {"mean"}, role_optimize);
  p.op("mean", {"y"}, {"loss"}, role_forward | role_loss);
  p.loss_gradient("loss");
  p.op("mul_grad", {"x", "loss@GRAD"}, {"w@GRAD"}, role_backward,
       {"w", "w@GRAD"});
  p.op("clip", {"w@GRAD"}, {"clipped"}, role_optimize);
  p.op("sgd", {"w", "clipped", "rate"}, {"w"}, role_optimize);
  const auto g = build(p, accumulating(2));
  CHECK(in_updates(g)
        == "increment@0 increment@1 decay@0 decay@1 all_reduce@0 clip@0 "
           "clip@1 sgd@0 sgd@1 ");
}

TEST_CASE("a gradient counts by the samples of the loss that it comes from") {
  CHECK(unit_in(accumulating(1)) == "batch_samples");
  CHECK(unit_in(accumulating(2, merge_strategy::reduce)) == "batch_samples");
  CHECK(unit_in(accumulating(2, merge_strategy::none)) == "shard_samples");
  for (auto scale : {gradient_scale::one, gradient_scale::custom}) {
    auto options = accumulating(2);
    options.scale = scale;
    CHECK(unit_in(options) == "steps");
  }
}

TEST_CASE("a sparse gradient is accumulated as such") {
  auto p = linear_with_sgd();
  for (auto& op : p.desc.main().ops)
    if (op.type == "mul_grad")
      op.attributes.set("is_sparse", true);
  const auto g = build(p, accumulating(1));
  for (auto& op : g.ops)
    if (op.desc->type == accumulate_type)
      CHECK(op.desc->attributes.get_bool("is_sparse", false)
            == (g.var(op.inputs.front()).name == "w@GRAD"));
}

TEST_CASE("a gradient can be fetched, other ops of each step may not read it") {
  auto p = linear_with_sgd();
  build(p, accumulating(1, merge_strategy::all_reduce, {"w@GRAD"}));
  p.op("scale", {"w@GRAD"}, {"scaled"}, role_optimize);
  p.op("show", {"scaled"}, {"shown"});
  const auto failure = test::caught([&] { build(p, accumulating(1)); });
  CHECK(failure.code() == errc::graph_invalid);
  CHECK(failure.where().variable == "scaled");
  CHECK(test::says(failure, "gradients cannot be accumulated"));
  build(p, on_cpus(1));
}

TEST_CASE("what cannot be accumulated is refused") {
  auto options = on_cpus(1);
  options.accumulate = 0;
  CHECK(test::caught([&] { build(linear_with_sgd(), options); }).code()
        == errc::invalid_argument);
  auto p = linear_with_sgd();
  p.desc.main().ops.front().attributes.set(std::string{merge_condition},
                                           std::string{"condition"});
  CHECK(test::says(test::caught([&] { build(p, accumulating(1)); }),
                   "the program accumulates gradients itself"));
}

} // TEST_SUITE("graph.passes.accumulate_gradients")
