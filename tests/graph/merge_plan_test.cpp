// SPDX-License-Identifier: Apache-2.0
#include "random_program.hpp"
#include "small_program.hpp"

#include <troupe/graph/merging/merge_plan.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.merge_plan") {

namespace {

merge_plan plan(const small_program& p, const build_options& options) {
  return plan_merges(p.desc.main(), options);
}

const merged_gradient& gradient_of(const merge_plan& p,
                                   const std::string& parameter) {
  auto at = std::find_if(
    p.gradients.begin(), p.gradients.end(),
    [&](const merged_gradient& g) { return g.parameter == parameter; });
  REQUIRE(at != p.gradients.end());
  return *at;
}

/// Parameters of the given sizes, gradients and updates in the same order.
struct sized_program : small_program {
  explicit sized_program(const std::vector<std::int64_t>& sizes) {
    op("forward", {"x"}, {"loss"}, role_forward | role_loss);
    loss_gradient("loss");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      persistable(param(i), {sizes[i]});
      op("backward", {"loss@GRAD"}, {grad(i)}, role_backward,
         {param(i), grad(i)});
    }
    count = sizes.size();
  }

  sized_program& update() {
    for (std::size_t i = 0; i < count; ++i)
      op("sgd", {param(i), grad(i)}, {param(i)}, role_optimize,
         {param(i), grad(i)});
    return *this;
  }

  static std::string param(std::size_t i) { return "p" + std::to_string(i); }
  static std::string grad(std::size_t i) { return gradient_name(param(i)); }

  std::size_t count = 0;
};

// What variables hold, as hashes: an op's result is a hash of its type and of
// what it reads; merged gradients are a hash of all devices' gradients.
using value = std::size_t;
using values = std::map<std::pair<std::string, std::size_t>, value>;

value mix(value a, value b) {
  return a * 1000003 + (b ^ (b >> 29)) + 12345;
}

value hash(std::string_view name) {
  return std::hash<std::string_view>{}(name);
}

class symbolic_run {
public:
  explicit symbolic_run(const ssa_graph& g) : graph_(g) {}

  // Ops are numbered in an order that respects all edges of a step.
  void step(std::size_t number) {
    for (auto& v : graph_.vars)
      if (v.feed)
        held(v.id) = mix(mix(number, hash(v.name)), v.device);
    for (auto& op : graph_.ops)
      run(op);
  }

  values fetched;

private:
  value& held(handle_id id) {
    auto& v = graph_.var(id);
    return now_[{std::string{v.name}, v.device}];
  }

  value merged(const op_handle& op, std::string_view name) {
    value sum = 1;
    for (auto id : op.inputs)
      if (graph_.var(id).name == name)
        sum = mix(sum, held(id));
    return sum;
  }

  void run(const op_handle& op) {
    std::vector<value> results;
    for (auto id : op.outputs)
      results.push_back(result(op, graph_.var(id)));
    for (std::size_t i = 0; i < results.size(); ++i)
      held(op.outputs[i]) = results[i];
    if (op.kind == op_kind::fetch) {
      auto& v = graph_.var(op.inputs.front());
      fetched[{std::string{v.name}, op.device}] = held(v.id);
    }
  }

  value result(const op_handle& op, const var_handle& out) {
    switch (op.kind) {
    case op_kind::all_reduce:
    case op_kind::reduce: return merged(op, out.name);
    case op_kind::broadcast: return held(op.inputs.front());
    default: break;
    }
    auto all = mix(hash(op.desc->type), hash(out.name));
    for (auto id : op.inputs)
      all = mix(all, held(id));
    return all;
  }

  const ssa_graph& graph_;
  values now_;
};

values run_two_steps(const small_program& p, build_options options,
                     merge_strategy strategy) {
  options.strategy = strategy;
  auto g = build(p, options);
  symbolic_run run{g};
  run.step(0);
  run.step(1);
  return run.fetched;
}

} // namespace

TEST_CASE("homes balance elements, the lowest device on ties") {
  sized_program p{{5, 3, 1, 2, 4}};
  p.update();
  auto result = plan(p, on_cpus(3, merge_strategy::reduce));
  std::vector<std::size_t> homes;
  for (auto& g : result.gradients)
    homes.push_back(g.home.value());
  CHECK(homes == std::vector<std::size_t>{0, 1, 2, 2, 1});
}

TEST_CASE("gradients are ordered by the ops that complete them") {
  small_program p;
  p.persistable("a").persistable("b");
  p.op("both", {"x"}, {"b@GRAD", "a@GRAD"}, role_backward,
       {"a", "a@GRAD", "b", "b@GRAD"})
    .op("more", {"a@GRAD"}, {"a@GRAD"}, role_backward);
  auto result = plan(p, on_cpus(2));
  REQUIRE(result.gradients.size() == 2);
  CHECK(result.gradients[0].gradient == "b@GRAD");
  CHECK(result.gradients[1].gradient == "a@GRAD");
  CHECK(result.gradients[1].complete_after == 1);
}

TEST_CASE("gradients that no backward op writes are not merged") {
  small_program p;
  p.persistable("a").op("odd", {"x"}, {"y"}, role_backward, {"a", "a@GRAD"});
  CHECK(plan(p, on_cpus(2)).gradients.empty());
}

TEST_CASE("updates run at home, learning-rate ops everywhere") {
  sized_program p{{4, 4}};
  p.persistable("lr");
  p.op("decay", {"lr"}, {"lr"}, role_lr_sched | role_optimize);
  p.update();
  auto result = plan(p, on_cpus(2, merge_strategy::reduce));
  auto& places = result.only_device;
  REQUIRE(places.size() == 7);
  CHECK_FALSE(places[2].has_value());
  CHECK_FALSE(places[4].has_value());
  CHECK(places[5] == 0);
  CHECK(places[6] == 1);
  CHECK(gradient_of(result, "p1").broadcast_after == 6);
}

TEST_CASE("several updates of a parameter run at home, one broadcast after") {
  sized_program p{{4}};
  p.persistable("momentum")
    .op("decay", {"p0"}, {"p0"}, role_optimize)
    .op("velocity", {"momentum", "p0@GRAD"}, {"momentum"}, role_optimize)
    .op("apply", {"p0", "momentum"}, {"p0"}, role_optimize);
  auto result = plan(p, on_cpus(2, merge_strategy::reduce));
  for (std::size_t i : {3, 4, 5})
    CHECK(result.only_device[i] == 0);
  CHECK(gradient_of(result, "p0").broadcast_after == 5);
}

TEST_CASE("a norm over gradients of several homes falls back to all-reduce") {
  sized_program p{{4, 4, 4}};
  p.op("norm", {"p0@GRAD", "p1@GRAD"}, {"norm"}, role_optimize);
  p.update();
  auto result = plan(p, on_cpus(2, merge_strategy::reduce));
  CHECK_FALSE(gradient_of(result, "p0").home.has_value());
  CHECK_FALSE(gradient_of(result, "p1").home.has_value());
  CHECK(gradient_of(result, "p2").home == 0);
  CHECK_FALSE(result.only_device[5].has_value());
  CHECK_FALSE(result.only_device[6].has_value());
  CHECK(result.only_device[8] == 0);

  auto replicated = plan(p, on_cpus(2, merge_strategy::replicate));
  for (std::size_t i : {5, 6, 7, 8})
    CHECK(replicated.only_device[i] == 0);
}

TEST_CASE("state that other ops or fetches see is kept on every device") {
  sized_program p{{4, 4}};
  p.update().op("watch", {"p0@GRAD"}, {"seen"});
  auto result = plan(p, on_cpus(2, merge_strategy::reduce));
  CHECK_FALSE(gradient_of(result, "p0").home.has_value());
  CHECK(gradient_of(result, "p1").home.has_value());

  auto options = on_cpus(2, merge_strategy::replicate, {"p1@GRAD", "p0"});
  CHECK_FALSE(gradient_of(plan(p, options), "p1").home.has_value());
}

TEST_CASE("a parameter goes where its gradient goes") {
  sized_program p{{4}};
  p.op("decay", {"p0"}, {"p0"}, role_optimize);
  auto result = plan(p, on_cpus(2, merge_strategy::reduce));
  CHECK(result.only_device[3] == 0);
  for (auto strategy : {merge_strategy::reduce, merge_strategy::replicate}) {
    result = plan(p, on_cpus(2, strategy, {"p0@GRAD"}));
    CHECK_FALSE(result.only_device[3].has_value());
  }
}

TEST_CASE("a parameter that others read half updated is updated everywhere") {
  sized_program p{{4}};
  p.update().op("peek", {"p0"}, {"peeked"});
  auto options = on_cpus(2, merge_strategy::reduce);
  CHECK(plan(p, options).only_device[3] == 0);
  p.op("shrink", {"p0"}, {"p0"}, role_optimize);
  CHECK_FALSE(plan(p, options).only_device[3].has_value());
}

TEST_CASE("a counter shared by all updates does not tie them together") {
  sized_program p{{4, 4}};
  p.persistable("counter").op("count", {"counter"}, {"counter"}, role_optimize);
  for (std::size_t i : {0, 1})
    p.op("adam", {p.param(i), p.grad(i), "counter"}, {p.param(i)},
         role_optimize, {p.param(i), p.grad(i)});
  auto result = plan(p, on_cpus(2, merge_strategy::reduce));
  CHECK_FALSE(result.only_device[4].has_value());
  CHECK(result.only_device[5] == 0);
  CHECK(result.only_device[6] == 1);
}

TEST_CASE("every strategy leaves the same values in what can be fetched") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    auto p = random_training_program(seed);
    auto options = random_options(p, seed);
    options.devices = cpus(2 + seed % 2);
    options.lowering.share_parameters = false;
    for (std::size_t i = 0; i < 4; ++i)
      if (auto name = "p" + std::to_string(i); p.desc.main().find_var(name))
        options.fetches.push_back(name);
    auto expected = run_two_steps(p, options, merge_strategy::all_reduce);
    REQUIRE(expected.size() >= 2);
    for (const bool share : {false, true}) {
      CAPTURE(share);
      options.lowering.share_parameters = share;
      for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                            merge_strategy::replicate})
        CHECK(run_two_steps(p, options, strategy) == expected);
    }
  }
}

TEST_CASE("of gradients added up over steps, what is added is merged") {
  sized_program p({8});
  p.persistable("sum", {8})
    .op("elementwise_add", {"p0@GRAD", "sum"}, {"sum"}, role_backward,
        {"p0", "sum"});
  auto& ops = p.desc.main().ops;
  ops[2].attributes.erase("op_role_var");
  ops[3].attributes.set("grad_merge_cond_name", std::string("every_third"));
  ops[3].inputs = {{"X", {"p0@GRAD"}}, {"Y", {"sum"}}};
  const auto result = plan(p, on_cpus(2));
  REQUIRE(result.gradients.size() == 1);
  CHECK(result.gradients[0].gradient == "p0@GRAD");
  CHECK(result.gradients[0].complete_after == 2);
}

} // TEST_SUITE("graph.merge_plan")
