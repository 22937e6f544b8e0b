// SPDX-License-Identifier: Apache-2.0
#include "graph/small_program.hpp"

#include <support/caught.hpp>

#include <troupe/graph/passes/fuse_batch_norm.hpp>
#include <troupe/graph/passes/sync_batch_norm.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.passes.sync_batch_norm") {

namespace {

op_desc batch_norm(std::string type = "batch_norm") {
  op_desc op;
  op.type = std::move(type);
  for (auto slot : {"X", "Scale", "Bias", "Mean", "Variance"})
    op.set_input(slot, {slot});
  op.set_output("Y", {"Y"});
  op.set_output("MeanOut", {"Mean"});
  op.set_output("VarianceOut", {"Variance"});
  op.set_output("SavedMean", {"SavedMean"});
  op.set_output("SavedVariance", {"SavedVariance"});
  op.attributes.set("epsilon", 0.5f);
  op.attributes.set("op_role", std::int32_t{role_forward});
  return op;
}

op_desc batch_norm_grad() {
  op_desc op;
  op.type = "batch_norm_grad";
  for (auto slot : {"X", "Scale", "Bias", "SavedMean", "SavedVariance"})
    op.set_input(slot, {slot});
  op.set_input("Y@GRAD", {"Y@GRAD"});
  for (auto slot : {"X@GRAD", "Scale@GRAD", "Bias@GRAD"})
    op.set_output(slot, {slot});
  op.attributes.set("op_role", std::int32_t{role_backward});
  op.attributes.set("op_role_var", names{"Scale", "Scale@GRAD"});
  return op;
}

/// y = batch norm of x, loss = mean(y), sgd on the scale.
small_program normalized() {
  small_program p;
  for (auto name : {"Scale", "Bias", "Mean", "Variance"})
    p.persistable(name, {3});
  for (auto name : {"X", "Y", "SavedMean", "SavedVariance", "X@GRAD",
                    "Scale@GRAD", "Bias@GRAD", "Y@GRAD"})
    p.temporary(name);
  p.desc.main().ops.push_back(batch_norm());
  p.op("mean", {"Y"}, {"loss"}, role_forward | role_loss);
  p.loss_gradient("loss").op("mean_grad", {"loss@GRAD"}, {"Y@GRAD"},
                             role_backward);
  p.desc.main().ops.push_back(batch_norm_grad());
  p.op("sgd", {"Scale", "Scale@GRAD"}, {"Scale"}, role_optimize,
       {"Scale", "Scale@GRAD"});
  return p;
}

/// The same with the op that fuse_batch_norms makes of the batch norm, a relu
/// behind it and, if it `adds`, a sum with Z between.
small_program fused(bool adds) {
  auto p = normalized();
  for (auto name : {"Z", "Z@GRAD"})
    p.temporary(name);
  for (auto& op : p.desc.main().ops) {
    if (op.type == "batch_norm") {
      op.type = fused_batch_norm_types[adds ? 2 : 0];
      if (adds)
        op.set_input("Z", {"Z"});
    } else if (op.type == "batch_norm_grad") {
      op.type = fused_batch_norm_types[adds ? 3 : 1];
      if (adds) {
        op.set_input("Y", {"Y"});
        op.set_output("Z@GRAD", {"Z@GRAD"});
      }
    } else {
      continue;
    }
    op.attributes.set("act_type", std::string{"relu"});
  }
  return p;
}

std::vector<std::string> types(const program& p) {
  std::vector<std::string> found;
  for (const auto& op : p.main().ops)
    found.push_back(op.type);
  return found;
}

const op_desc& find(const program& p, const std::string& type) {
  return *std::ranges::find(p.main().ops, type, &op_desc::type);
}

} // namespace

TEST_CASE("op and gradient become local ops with all-reduces between") {
  const auto p = split_batch_norms(normalized().desc, sync_batch_norm::all);
  CHECK(types(p)
        == names{"sync_batch_norm_moments", "all_reduce",
                 "sync_batch_norm_normalize", "sync_batch_norm_running", "mean",
                 "fill_constant", "mean_grad", "sync_batch_norm_grad_sums",
                 "all_reduce", "sync_batch_norm_grad_apply", "sgd"});
  CHECK(p.main().var("SavedMean@MOMENTS").dims == shape{-1, 7});
  CHECK(p.main().var("SavedMean@SUMS").dims == shape{6});
  CHECK(find(p, "sync_batch_norm_normalize").attributes.get_float("epsilon", 0)
        == 0.5f);
}

TEST_CASE("running statistics are updated on devices without samples too") {
  const auto p = split_batch_norms(normalized().desc, sync_batch_norm::all);
  CHECK(find(p, "sync_batch_norm_running").role() == role_optimize);
}

TEST_CASE("the gradient of the scale is that of one op, made locally") {
  const auto p = split_batch_norms(normalized().desc, sync_batch_norm::all);
  const auto& sums = find(p, "sync_batch_norm_grad_sums");
  CHECK(sums.role_vars().size() == 1);
  CHECK(sums.only_output("Scale@GRAD") == "Scale@GRAD");
  CHECK(find(p, "sync_batch_norm_grad_apply").role_vars().empty());
}

TEST_CASE("without gradient of the input nothing is summed for it") {
  auto p = normalized();
  for (auto& op : p.desc.main().ops)
    if (op.type == "batch_norm_grad")
      op.set_output("X@GRAD", {"@EMPTY@"});
  const auto split = split_batch_norms(p.desc, sync_batch_norm::all);
  CHECK(std::ranges::count(types(split), "all_reduce") == 1);
  CHECK(std::ranges::count(types(split), "sync_batch_norm_grad_apply") == 0);
}

TEST_CASE("only ops of type sync_batch_norm are split if not told otherwise") {
  auto p = normalized();
  CHECK_FALSE(has_batch_norms_to_split(p.desc, sync_batch_norm::as_written));
  CHECK(types(split_batch_norms(p.desc, sync_batch_norm::as_written))
        == types(p.desc));
  p.desc.main().ops.front() = batch_norm("sync_batch_norm");
  CHECK(has_batch_norms_to_split(p.desc, sync_batch_norm::as_written));
}

TEST_CASE("fixed statistics stay with one op") {
  for (auto attribute : {"is_test", "use_global_stats"}) {
    auto p = normalized();
    for (auto& op : p.desc.main().ops)
      op.attributes.set(attribute, true);
    CHECK_FALSE(has_batch_norms_to_split(p.desc, sync_batch_norm::all));
  }
}

TEST_CASE("a relu behind it is computed by the parts that touch images") {
  const auto p = split_batch_norms(fused(false).desc, sync_batch_norm::all);
  CHECK(types(p)
        == types(split_batch_norms(normalized().desc, sync_batch_norm::all)));
  for (auto type : {"sync_batch_norm_normalize", "sync_batch_norm_grad_sums",
                    "sync_batch_norm_grad_apply"}) {
    CHECK(find(p, type).attributes.get_string("act_type", "") == "relu");
    CHECK(find(p, type).only_input("Bias") == "Bias"); // for Y's sign
  }
  CHECK(find(p, "sync_batch_norm_grad_sums").input("Y").empty());
}

TEST_CASE("behind a sum its gradient is made once") {
  const auto p = split_batch_norms(fused(true).desc, sync_batch_norm::all);
  CHECK(find(p, "sync_batch_norm_normalize").only_input("Z") == "Z");
  const auto& sums = find(p, "sync_batch_norm_grad_sums");
  CHECK(sums.only_input("Y") == "Y");
  CHECK(sums.only_output("Z@GRAD") == "Z@GRAD");
  const auto& apply = find(p, "sync_batch_norm_grad_apply");
  CHECK(apply.only_input("Y@GRAD") == "Z@GRAD");
  CHECK(apply.attributes.get_string("act_type", "") == "");
}

TEST_CASE("a sum's gradient that nobody wants is a temporary") {
  auto unwanted = fused(true);
  for (auto& op : unwanted.desc.main().ops)
    op.set_output("Z@GRAD", {});
  const auto p = split_batch_norms(unwanted.desc, sync_batch_norm::all);
  const auto& name = find(p, "sync_batch_norm_grad_sums").only_output("Z@GRAD");
  CHECK(find(p, "sync_batch_norm_grad_apply").only_input("Y@GRAD") == name);
  CHECK_FALSE(p.main().var(name).persistable);
}

TEST_CASE("a fused op is split as its batch norm would have been") {
  auto p = fused(false);
  CHECK_FALSE(has_batch_norms_to_split(p.desc, sync_batch_norm::as_written));
  for (auto& op : p.desc.main().ops)
    op.attributes.set(std::string{synchronised_attribute}, true);
  CHECK(has_batch_norms_to_split(p.desc, sync_batch_norm::as_written));
  for (auto& op : p.desc.main().ops)
    op.attributes.set("use_global_stats", true);
  CHECK_FALSE(has_batch_norms_to_split(p.desc, sync_batch_norm::all));
}

TEST_CASE("an op without SavedMean is named") {
  auto p = normalized();
  p.desc.main().ops.front().set_output("SavedMean", {});
  const auto e =
    test::caught([&] { split_batch_norms(p.desc, sync_batch_norm::all); });
  CHECK(e.code() == errc::graph_invalid);
  CHECK(test::says(e, "SavedMean"));
}

TEST_CASE("the graph has a collective for each and no hazards") {
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
    auto options = on_cpus(2, strategy);
    options.lowering.sync_batch_norm = true;
    const auto g = build(normalized(), options);
    check_hazards(g, 2);
    const auto collectives = std::ranges::count_if(
      g.ops, [](const op_handle& o) { return o.collective_index >= 0; });
    CHECK(collectives == (strategy == merge_strategy::reduce ? 4 : 3));
  }
}

TEST_CASE("the graph of fused and split ops is proven") {
  for (const bool adds : {false, true}) {
    auto options = on_cpus(2);
    options.lowering.sync_batch_norm = true;
    CHECK_NOTHROW(check_hazards(build(fused(adds), options), 2));
  }
}

TEST_CASE("one device, and devices that train apart, keep the op") {
  auto options = on_cpus(1);
  options.lowering.sync_batch_norm = true;
  CHECK(find_op(build(normalized(), options), "batch_norm") != no_handle);
  options = on_cpus(2, merge_strategy::none);
  options.lowering.sync_batch_norm = true;
  CHECK(find_op(build(normalized(), options), "batch_norm") != no_handle);
}

TEST_CASE("an all_reduce of a program that is not in place is an error") {
  small_program p;
  p.op("all_reduce", {"x"}, {"y"});
  CHECK(test::caught([&] { build(p, on_cpus(2)); }).code()
        == errc::graph_invalid);
}
} // TEST_SUITE("graph.passes.sync_batch_norm")
