// SPDX-License-Identifier: Apache-2.0
#include "graph/small_program.hpp"

#include <troupe/graph/passes/recompute_activations.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.passes.recompute_activations") {

namespace {

const char* const whole_norm = "fused_batch_norm_act";
const char* const split_norm = "sync_batch_norm_normalize";

/// loss = mean(y * w), y = relu(norm(x)), x = side(input). The gradients of w
/// and of y read y.
struct activated {
  explicit activated(const char* type = whole_norm) {
    p.persistable("w");
    for (auto name : {"scale", "bias"})
      p.persistable(name, {3});
    p.op("side", {"input"}, {"x"});
    p.op(type, {}, {});
    norm().set_input("X", {"x"});
    norm().set_input("Scale", {"scale"});
    norm().set_input("Bias", {"bias"});
    norm().attributes.set("act_type", std::string{"relu"});
    norm().attributes.set("data_layout", std::string{"NHWC"});
    for (auto [slot, name] : {std::pair{"Y", "y"},
                              {"SavedMean", "saved_mean"},
                              {"SavedVariance", "saved_inverse"}}) {
      p.temporary(name);
      norm().set_output(slot, {name});
    }
    p.desc.main().find_var("y")->dims = {5, 3};
    p.op("mul", {"y", "w"}, {"product"});
    p.op("mean", {"product"}, {"loss"}, role_forward | role_loss);
    p.loss_gradient("loss");
    p.op("mean_grad", {"product", "loss@GRAD"}, {"product@GRAD"},
         role_backward);
    p.op("weight_grad", {"y", "product@GRAD"}, {"w@GRAD"}, role_backward,
         {"w", "w@GRAD"});
    p.op("input_grad", {"y", "w", "product@GRAD"}, {"y@GRAD"}, role_backward);
    p.op("norm_grad", {"x", "y@GRAD"}, {"x@GRAD"}, role_backward);
    p.op("sgd", {"w", "w@GRAD"}, {"w"}, role_optimize, {"w", "w@GRAD"});
  }

  std::vector<op_desc>& ops() { return p.desc.main().ops; }
  op_desc& norm() { return ops()[1]; }

  op_desc& op(const std::string& type) {
    return *std::ranges::find(ops(), type, &op_desc::type);
  }

  /// Adds an op in front of the first op of type `type`.
  void add_before(const std::string& type, const names& inputs,
                  const names& outputs, int role) {
    p.op("other", inputs, outputs, role);
    std::rotate(std::ranges::find(ops(), type, &op_desc::type), ops().end() - 1,
                ops().end());
  }

  small_program p;
};

names types(const program& p) {
  names found;
  for (auto& op : p.main().ops)
    found.push_back(op.type);
  return found;
}

const op_desc& find(const program& p, std::string_view type) {
  return *std::ranges::find(p.main().ops, type, &op_desc::type);
}

bool is_recomputed(const activated& a, const std::set<std::string>& kept = {}) {
  const auto& p = a.p.desc;
  const auto made = recompute_activations(p, kept);
  const auto more = made.main().ops.size() - p.main().ops.size();
  CHECK(more <= 1);
  if (more == 0)
    CHECK(types(made) == types(p));
  return more == 1;
}

} // namespace

TEST_CASE(
  "an op in front of its first reader behind the loss computes it again") {
  for (auto type : {whole_norm, split_norm}) {
    const auto p = recompute_activations(activated{type}.p.desc, {});
    CHECK(types(p)
          == names{"side", type, "mul", "mean", "fill_constant", "mean_grad",
                   "recompute_batch_norm_act", "weight_grad", "input_grad",
                   "norm_grad", "sgd"});
    const auto& made = find(p, recompute_type);
    CHECK(made.only_input("X") == "x");
    CHECK(made.only_input("Scale") == "scale");
    CHECK(made.only_input("Bias") == "bias");
    CHECK(made.only_input("SavedMean") == "saved_mean");
    CHECK(made.only_input("SavedVariance") == "saved_inverse");
    CHECK(made.only_input("After") == "product@GRAD");
    CHECK(made.only_output("Y") == "y@AGAIN");
    CHECK(made.role() == role_backward);
    CHECK(made.attributes.get_string("act_type", "") == "relu");
    CHECK(made.attributes.get_string("data_layout", "") == "NHWC");
    CHECK(find(p, "mul").input("X") == names{"y", "w"});
    CHECK(find(p, "weight_grad").input("X")
          == names{"y@AGAIN", "product@GRAD"});
    CHECK(find(p, "input_grad").input("X")
          == names{"y@AGAIN", "w", "product@GRAD"});
    CHECK(p.main().var("y@AGAIN").dims == p.main().var("y").dims);
  }
}

TEST_CASE("a norm without a relu, or with a sum before it, is left alone") {
  activated plain{split_norm};
  plain.norm().attributes.erase("act_type");
  CHECK_FALSE(is_recomputed(plain));
  activated behind_sum{split_norm};
  behind_sum.norm().set_input("Z", {"input"});
  CHECK_FALSE(is_recomputed(behind_sum));
  CHECK_FALSE(is_recomputed(activated{"fused_bn_add_activation"}));
  CHECK_FALSE(is_recomputed(activated{"batch_norm"}));
}

TEST_CASE("a split norm is left alone unless it says relu") {
  activated nothing{split_norm};
  nothing.norm().attributes.set("act_type", std::string{});
  CHECK_FALSE(is_recomputed(nothing));
}

TEST_CASE("a norm of the backward pass is left alone") {
  activated copied; // by who computes parts of the forward pass again
  copied.norm().attributes.set("op_role", std::int32_t{role_backward});
  CHECK_FALSE(is_recomputed(copied));
}

TEST_CASE("a norm with given statistics is left alone") {
  for (auto attribute : {"is_test", "use_global_stats"}) {
    activated given;
    given.norm().attributes.set(attribute, true);
    CHECK_FALSE(is_recomputed(given));
  }
}

TEST_CASE("what is kept or outlives the step is left alone") {
  CHECK(is_recomputed(activated{}, {"product"}));
  CHECK_FALSE(is_recomputed(activated{}, {"y"}));
  activated persistable;
  persistable.p.desc.main().find_var("y")->persistable = true;
  CHECK_FALSE(is_recomputed(persistable));
}

TEST_CASE("a value that its second writer changes is left alone") {
  activated twice;
  twice.add_before("mul", {"y"}, {"y"}, role_forward);
  CHECK_FALSE(is_recomputed(twice));
}

TEST_CASE("a value without readers in the backward pass alone is left alone") {
  activated forward_only;
  for (auto type : {"weight_grad", "input_grad"})
    forward_only.op(type).set_input("X", {"product@GRAD"});
  CHECK_FALSE(is_recomputed(forward_only));
  activated later;
  later.p.op("other", {"y"}, {"result"}, role_forward);
  CHECK_FALSE(is_recomputed(later));
  activated optimizer;
  optimizer.p.op("other", {"y"}, {"result"}, role_optimize);
  CHECK_FALSE(is_recomputed(optimizer));
}

TEST_CASE("what it is computed from must be there as it was") {
  for (auto name : {"x", "scale", "bias", "saved_mean", "saved_inverse"}) {
    CAPTURE(name);
    activated changed;
    changed.add_before("mean_grad", {"input"}, {name}, role_backward);
    CHECK_FALSE(is_recomputed(changed));
    activated later;
    later.p.op("other", {"input"}, {name}, role_optimize);
    CHECK(is_recomputed(later));
  }
}

TEST_CASE(
  "nothing is won where what it is computed from would be kept for it") {
  activated frozen;
  frozen.op("norm_grad").set_input("X", {"y@GRAD"});
  CHECK_FALSE(is_recomputed(frozen));
  frozen.p.desc.main().find_var("x")->persistable = true;
  CHECK(is_recomputed(frozen));
}

TEST_CASE("of two norms in a row the second result is computed again") {
  activated twice;
  twice.p.desc.main().add_var([&] {
    auto z = twice.p.desc.main().var("y");
    z.name = "z";
    return z;
  }());
  twice.p.temporary("second_mean").temporary("second_inverse");
  auto second = twice.norm();
  second.set_input("X", {"y"});
  second.set_output("Y", {"z"});
  second.set_output("SavedMean", {"second_mean"});
  second.set_output("SavedVariance", {"second_inverse"});
  twice.ops().insert(twice.ops().begin() + 2, second);
  for (auto type : {"mul", "weight_grad", "input_grad"})
    for (auto& slot : twice.op(type).inputs)
      std::ranges::replace(slot.arguments, std::string{"y"}, std::string{"z"});
  twice.add_before("norm_grad", {"y", "y@GRAD"}, {"y@GRAD"}, role_backward);
  CHECK(is_recomputed(twice));
  CHECK(recompute_activations(twice.p.desc, {}).main().find_var("z@AGAIN"));
}

TEST_CASE("a name that is taken stays what it is") {
  activated taken;
  taken.p.temporary("y@AGAIN");
  CHECK_FALSE(is_recomputed(taken));
}

TEST_CASE("who reads its shape alone needs no values") {
  activated shapes;
  shapes.op("weight_grad").set_input("X", {"product@GRAD"});
  auto& reader = shapes.op("input_grad");
  reader.type = "elementwise_add_grad";
  reader.set_input("X", {"y"});
  reader.set_input("Y", {"w"});
  reader.set_input("Out@GRAD", {"product@GRAD"});
  auto options = on_cpus(1);
  options.lowering.recompute_activations = true;
  CHECK(find_op(build(shapes.p, options), std::string{recompute_type})
        != no_handle);
  options.lowering.separate_shape_inputs = true;
  CHECK(find_op(build(shapes.p, options), std::string{recompute_type})
        == no_handle);
}

TEST_CASE("a reader that waits for no gradient keeps the value") {
  activated early;
  early.op("weight_grad").set_input("X", {"y"});
  CHECK_FALSE(is_recomputed(early));
}

TEST_CASE("a program of several blocks is left alone") {
  activated branching;
  branching.p.desc.blocks.push_back({});
  CHECK_FALSE(is_recomputed(branching));
}

TEST_CASE("it is computed again once the gradient is there") {
  for (const std::size_t devices : {1, 2}) {
    auto options = on_cpus(devices);
    options.lowering.recompute_activations = true;
    const auto g = build(activated{}.p, options);
    CHECK_NOTHROW(check_hazards(g, 2));
    for (std::size_t d = 0; d < devices; ++d) {
      const auto made = find_op(g, std::string{recompute_type}, d);
      REQUIRE(made != no_handle);
      CHECK(has_edge(g, find_var(g, "product@GRAD", 1, d), made,
                     edge_kind::data, 0));
      const auto y = find_var(g, "y", 1, d);
      for (auto& op : g.ops)
        if (std::ranges::find(op.inputs, y) != op.inputs.end())
          CHECK((op.desc->role() & role_backward) == 0);
    }
  }
}

TEST_CASE("programs without such norms are told apart") {
  CHECK(has_activations_to_recompute(activated{}.p.desc));
  CHECK_FALSE(has_activations_to_recompute(linear_with_sgd().desc));
}

} // TEST_SUITE("graph.passes.recompute_activations")
