// SPDX-License-Identifier: Apache-2.0
#include "graph/small_program.hpp"

#include <troupe/graph/passes/fuse_batch_norm.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.passes.fuse_batch_norm") {

namespace {

op_desc make(const std::string& type, std::int32_t role,
             const std::vector<op_slot>& inputs,
             const std::vector<op_slot>& outputs) {
  op_desc op;
  op.type = type;
  op.inputs = inputs;
  op.outputs = outputs;
  op.attributes.set("op_role", role);
  return op;
}

/// loss = mean(relu(norm(x) [+ z])), z = side(x), with all gradients and an sgd
/// for the scale.
struct normalized {
  explicit normalized(bool adds) : adds_(adds) {
    for (auto name : {"scale", "bias", "running_mean", "running_variance"})
      p.persistable(name, {3});
    for (auto name : {"x", "z", "normal", "sum", "y", "saved_mean",
                      "saved_variance", "y@GRAD", "sum@GRAD", "normal@GRAD",
                      "z@GRAD", "x@GRAD", "scale@GRAD", "bias@GRAD"})
      p.temporary(name);
    forward();
    p.op("mean", {"y"}, {"loss"}, role_forward | role_loss);
    p.loss_gradient("loss").op("mean_grad", {"loss@GRAD"}, {"y@GRAD"},
                               role_backward);
    backward();
    p.op("sgd", {"scale", "scale@GRAD"}, {"scale"}, role_optimize,
         {"scale", "scale@GRAD"});
  }

  void forward() {
    auto norm = make("batch_norm", role_forward,
                     {{"X", {"x"}},
                      {"Scale", {"scale"}},
                      {"Bias", {"bias"}},
                      {"Mean", {"running_mean"}},
                      {"Variance", {"running_variance"}}},
                     {{"Y", {"normal"}},
                      {"MeanOut", {"running_mean"}},
                      {"VarianceOut", {"running_variance"}},
                      {"SavedMean", {"saved_mean"}},
                      {"SavedVariance", {"saved_variance"}}});
    norm.attributes.set("epsilon", 0.5f);
    ops().push_back(norm);
    p.op("side", {"x"}, {"z"});
    if (adds_)
      ops().push_back(make("elementwise_add", role_forward,
                           {{"X", {"normal"}}, {"Y", {"z"}}},
                           {{"Out", {"sum"}}}));
    p.op("relu", {last()}, {"y"});
  }

  void backward() {
    ops().push_back(make("relu_grad", role_backward,
                         {{"Out", {"y"}}, {"Out@GRAD", {"y@GRAD"}}},
                         {{"X@GRAD", {last() + "@GRAD"}}}));
    if (adds_)
      ops().push_back(
        make("elementwise_add_grad", role_backward,
             {{"X", {"normal"}}, {"Y", {"z"}}, {"Out@GRAD", {"sum@GRAD"}}},
             {{"X@GRAD", {"normal@GRAD"}}, {"Y@GRAD", {"z@GRAD"}}}));
    auto gradient = make("batch_norm_grad", role_backward,
                         {{"X", {"x"}},
                          {"Scale", {"scale"}},
                          {"Bias", {"bias"}},
                          {"SavedMean", {"saved_mean"}},
                          {"SavedVariance", {"saved_variance"}},
                          {"Y@GRAD", {"normal@GRAD"}}},
                         {{"X@GRAD", {"x@GRAD"}},
                          {"Scale@GRAD", {"scale@GRAD"}},
                          {"Bias@GRAD", {"bias@GRAD"}}});
    gradient.attributes.set("op_role_var", names{"scale", "scale@GRAD"});
    ops().push_back(gradient);
  }

  std::string last() const { return adds_ ? "sum" : "normal"; }
  std::vector<op_desc>& ops() { return p.desc.main().ops; }
  op_desc& op(const std::string& type) {
    return *std::ranges::find(ops(), type, &op_desc::type);
  }

  small_program p;
  bool adds_;
};

names types(const program& p) {
  names found;
  for (auto& op : p.main().ops)
    found.push_back(op.type);
  return found;
}

const op_desc& find(const program& p, const std::string& type) {
  return *std::ranges::find(p.main().ops, type, &op_desc::type);
}

bool is_fused(const normalized& n, const std::set<std::string>& kept = {}) {
  const auto fused = fuse_batch_norms(n.p.desc, kept);
  const auto same = types(fused) == types(n.p.desc);
  const auto whole =
    types(fused).size() + (n.adds_ ? 4 : 2) == types(n.p.desc).size();
  CHECK(same != whole); // all of the chain or nothing
  return whole;
}

} // namespace

TEST_CASE("a batch norm and its relu become one op, and their gradients") {
  const auto p = fuse_batch_norms(normalized{false}.p.desc, {});
  CHECK(types(p)
        == names{"side", "fused_batch_norm_act", "mean", "fill_constant",
                 "mean_grad", "fused_batch_norm_act_grad", "sgd"});
  const auto& forward = find(p, "fused_batch_norm_act");
  CHECK(forward.only_output("Y") == "y");
  CHECK(forward.only_output("SavedMean") == "saved_mean");
  CHECK(forward.only_output("MeanOut") == "running_mean");
  CHECK(forward.only_input("Variance") == "running_variance");
  CHECK(forward.attributes.get_float("epsilon", 0) == 0.5f);
  CHECK(forward.attributes.get_string("act_type", "") == "relu");
  const auto& gradient = find(p, "fused_batch_norm_act_grad");
  CHECK(gradient.only_input("Y@GRAD") == "y@GRAD");
  CHECK(gradient.only_output("X@GRAD") == "x@GRAD");
  CHECK(gradient.role() == role_backward);
  CHECK(gradient.role_vars().size() == 1);
  CHECK(gradient.input("Y").empty());
}

TEST_CASE("a sum between them is part of the op") {
  const auto p = fuse_batch_norms(normalized{true}.p.desc, {});
  CHECK(types(p)
        == names{"side", "fused_bn_add_activation", "mean", "fill_constant",
                 "mean_grad", "fused_bn_add_activation_grad", "sgd"});
  CHECK(find(p, "fused_bn_add_activation").only_input("Z") == "z");
  const auto& gradient = find(p, "fused_bn_add_activation_grad");
  CHECK(gradient.only_input("Y") == "y");
  CHECK(gradient.only_output("Z@GRAD") == "z@GRAD");
}

TEST_CASE("the batch norm may be the second summand") {
  normalized n{true};
  for (auto type : {"elementwise_add", "elementwise_add_grad"}) {
    n.op(type).set_input("X", {"z"});
    n.op(type).set_input("Y", {"normal"});
  }
  n.op("elementwise_add_grad").set_output("X@GRAD", {"z@GRAD"});
  n.op("elementwise_add_grad").set_output("Y@GRAD", {"normal@GRAD"});
  const auto p = fuse_batch_norms(n.p.desc, {});
  CHECK(find(p, "fused_bn_add_activation").only_input("Z") == "z");
  CHECK(find(p, "fused_bn_add_activation_grad").only_output("Z@GRAD")
        == "z@GRAD");
}

TEST_CASE("the gradient of the other summand may be unwanted") {
  normalized n{true};
  n.op("elementwise_add_grad").set_output("Y@GRAD", {"@EMPTY@"});
  CHECK(is_fused(n));
  const auto p = fuse_batch_norms(n.p.desc, {});
  CHECK(find(p, "fused_bn_add_activation_grad").output("Z@GRAD").empty());
}

TEST_CASE("the summands' gradients may have an op each") {
  normalized n{true};
  auto& ops = n.ops();
  auto first = std::ranges::find(ops, "elementwise_add_grad", &op_desc::type);
  auto second = *first;
  first->outputs = {{"X@GRAD", {"normal@GRAD"}}};
  second.outputs = {{"Y@GRAD", {"z@GRAD"}}};
  ops.insert(first + 1, second);
  const auto p = fuse_batch_norms(n.p.desc, {});
  CHECK(types(p).size() + 5 == types(n.p.desc).size());
  CHECK(find(p, "fused_bn_add_activation_grad").only_output("Z@GRAD")
        == "z@GRAD");
}

TEST_CASE("without a backward pass the forward ops are fused") {
  normalized n{true};
  n.ops().resize(5); // up to the loss
  CHECK(types(fuse_batch_norms(n.p.desc, {}))
        == names{"side", "fused_bn_add_activation", "mean"});
}

TEST_CASE("values that are fetched are written by their own ops") {
  for (auto name : {"normal", "normal@GRAD"})
    CHECK_FALSE(is_fused(normalized{false}, {name}));
  for (auto name : {"normal", "sum", "sum@GRAD", "normal@GRAD"})
    CHECK_FALSE(is_fused(normalized{true}, {name}));
  for (auto name : {"y", "z", "x@GRAD", "z@GRAD", "y@GRAD", "saved_mean"})
    CHECK(is_fused(normalized{true}, {name}));
}

TEST_CASE("values that others read are written by their own ops") {
  for (const bool adds : {false, true})
    for (auto name : {"normal", "normal@GRAD"}) {
      normalized n{adds};
      CHECK(is_fused(n));
      n.p.op("scale", {name}, {"other"});
      CHECK_FALSE(is_fused(n));
    }
}

TEST_CASE("a persistable value between is written by its own op") {
  normalized n{false};
  n.p.persistable("normal");
  CHECK_FALSE(is_fused(n));
}

TEST_CASE("fixed statistics are not fused") {
  for (auto attribute : {"is_test", "use_global_stats"}) {
    normalized n{false};
    n.op("batch_norm").attributes.set(attribute, true);
    CHECK_FALSE(is_fused(n));
  }
}

TEST_CASE("a summand of another declared shape is not fused") {
  normalized n{true};
  n.p.desc.main().find_var("z")->dims = {1, 2};
  CHECK_FALSE(is_fused(n));
}

TEST_CASE("a gradient that does not name the bias gets it all the same") {
  normalized n{false};
  std::erase_if(n.op("batch_norm_grad").inputs,
                [](const op_slot& slot) { return slot.name == "Bias"; });
  const auto fused = fuse_batch_norms(n.p.desc, {});
  CHECK(find(fused, "fused_batch_norm_act_grad").input("Bias")
        == names{"bias"});
}

TEST_CASE("a sum whose gradient is a parameter's is not fused") {
  normalized n{true};
  n.op("elementwise_add_grad")
    .attributes.set("op_role_var", names{"z", "z@GRAD"});
  CHECK_FALSE(is_fused(n));
}

TEST_CASE("a chain whose gradient is another one is not fused") {
  normalized missing{false};
  std::erase_if(missing.ops(),
                [](const op_desc& op) { return op.type == "relu_grad"; });
  CHECK_FALSE(is_fused(missing));
  normalized other{false};
  other.op("batch_norm_grad").set_input("X", {"z"});
  CHECK_FALSE(is_fused(other));
}

TEST_CASE("an op between that touches what moves keeps the chain apart") {
  const auto insert = [](normalized& n, const std::string& behind,
                         const names& in, const names& out) {
    n.p.op("other", in, out);
    auto& ops = n.ops();
    auto at = std::ranges::find(ops, behind, &op_desc::type) + 1;
    std::rotate(at, ops.end() - 1, ops.end());
  };
  normalized reads{false};
  insert(reads, "batch_norm", {"saved_mean"}, {"w"});
  CHECK_FALSE(is_fused(reads));
  normalized writes{false};
  insert(writes, "batch_norm", {"w"}, {"x"});
  CHECK_FALSE(is_fused(writes));
  normalized biased{false};
  insert(biased, "mean", {"w"}, {"bias"});
  CHECK_FALSE(is_fused(biased));
  normalized late{false};
  insert(late, "relu_grad", {"w"}, {"scale"});
  CHECK_FALSE(is_fused(late));
  normalized summand{true};
  insert(summand, "elementwise_add", {"w"}, {"z"});
  CHECK_FALSE(is_fused(summand));
}

TEST_CASE("a synchronised batch norm is fused and stays synchronised") {
  for (const bool adds : {false, true}) {
    normalized n{adds};
    for (auto type : {"batch_norm", "batch_norm_grad"})
      n.op(type).type = std::string{"sync_"} + type;
    CHECK(has_batch_norms_to_fuse(n.p.desc));
    CHECK(is_fused(n));
    const auto fused = fuse_batch_norms(n.p.desc, {});
    for (auto& op : fused.main().ops)
      if (op.type.starts_with("fused_"))
        CHECK(op.attributes.get_bool(synchronised_attribute, false));
  }
  normalized half{false};
  half.op("batch_norm").type = "sync_batch_norm";
  CHECK_FALSE(is_fused(half)); // its gradient is one device's
}

TEST_CASE("the graph of the fused program is proven") {
  for (const bool adds : {false, true})
    for (const std::size_t devices : {1, 2}) {
      auto options = on_cpus(devices);
      options.lowering.fuse_batch_norms = true;
      options.lowering.separate_shape_inputs = true;
      const auto g = build(normalized{adds}.p, options);
      CHECK_NOTHROW(check_hazards(g, 2));
      CHECK(
        find_op(g, adds ? "fused_bn_add_activation" : "fused_batch_norm_act")
        != no_handle);
    }
}

} // TEST_SUITE("graph.passes.fuse_batch_norm")
