// SPDX-License-Identifier: Apache-2.0
#include "small_program.hpp"

#include <troupe/graph/passes/program_order.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.shared_parameters") {

namespace {

build_options sharing(std::size_t devices,
                      merge_strategy strategy = merge_strategy::reduce,
                      const names& fetches = {}) {
  auto options = on_cpus(devices, strategy, fetches);
  options.lowering.share_parameters = true;
  return options;
}

/// Devices on which a variable has a storage.
std::set<std::uint32_t> places_of(const ssa_graph& g, const std::string& name) {
  std::set<std::uint32_t> places;
  for (auto& v : g.vars)
    if (v.name == name)
      places.insert(v.device);
  return places;
}

bool has_op(const ssa_graph& g, op_kind kind) {
  return std::ranges::any_of(
    g.ops, [kind](const op_handle& op) { return op.kind == kind; });
}

const std::set<std::uint32_t> first{0}, both{0, 1};

} // namespace

TEST_CASE("a parameter is updated once, where all devices read it") {
  const auto g =
    build(linear_with_sgd(), sharing(2, merge_strategy::reduce, {"w"}));
  CHECK(describe_ops(g)
        == "mul@0: x:0 w:0 -> xw:1\n"
           "mul@1: x:0 w:0@0 -> xw:1\n"
           "add@0: xw:1 b:0 -> y:1\n"
           "add@1: xw:1 b:0@0 -> y:1\n"
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
           "sgd_w@1: w:0@0 lr:0@0 w@GRAD:2 -> w:1@0\n"
           "fetch@0: w:1 ->\n"
           "fetch@1: w:1@0 ->\n");
}

TEST_CASE("an update waits for the readers on all devices, they for it") {
  const auto g =
    build(linear_with_sgd(), sharing(2, merge_strategy::reduce, {"w"}));
  CHECK(describe_hazards(g)
        == "mul@0 -> sgd_w@1 write_after_read +0\n"
           "mul@1 -> sgd_w@1 write_after_read +0\n"
           "add@0 -> sgd_b@0 write_after_read +0\n"
           "add@1 -> sgd_b@0 write_after_read +0\n"
           "reduce@0 -> reduce@0 order +0\n"
           "reduce@0 -> reduce@0 order +1\n"
           "fetch@0 -> sgd_w@1 write_after_read +1\n"
           "fetch@1 -> sgd_w@1 write_after_read +1\n"
           "b:1@0 -> b:0@0 data +1\n"
           "w:1@0 -> w:0@0 data +1\n");
}

TEST_CASE("without an edge from a reader of another device it is a hazard") {
  // Nothing else orders a glance and the update.
  auto p = linear_with_sgd();
  auto& ops = p.desc.main().ops;
  p.op("glance", {"w"}, {"glanced"});
  std::rotate(ops.begin(), ops.end() - 1, ops.end());
  const auto g = build(p, sharing(3));
  CHECK_NOTHROW(check_hazards(g, 2));
  const auto update = find_op(g, "sgd_w", 1);
  for (std::size_t device : {0, 1, 2}) {
    CAPTURE(device);
    const auto reader = find_op(g, "glance", device);
    REQUIRE(has_edge(g, reader, update, edge_kind::write_after_read, 0));
    auto lacking = g;
    std::erase_if(lacking.edges, [&](const edge& e) {
      return e.from == reader && e.to == update;
    });
    const auto hazards = find_hazards(lacking, 1);
    REQUIRE(hazards.size() == 1);
    CHECK(hazards[0].first == reader);
    CHECK(hazards[0].second == update);
  }
}

TEST_CASE("every strategy is proven with shared parameters") {
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                        merge_strategy::replicate, merge_strategy::none})
    for (std::uint32_t steps_in_flight : {1, 2, 3})
      CHECK_NOTHROW(check_hazards(
        build(linear_with_sgd(), sharing(3, strategy, {"loss", "w"})),
        steps_in_flight));
}

TEST_CASE("what each device updates has a storage on each") {
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::none}) {
    const auto g = build(linear_with_sgd(), sharing(2, strategy));
    CHECK(places_of(g, "w") == both);
    CHECK(places_of(g, "b") == both);
    CHECK(places_of(g, "lr") == first);
  }
}

TEST_CASE("state of an update is where its parameter is") {
  auto p = linear_with_sgd();
  auto& update = p.desc.main().ops.back();
  p.persistable("velocity");
  update.set_input("State", {"velocity"});
  update.set_output("StateOut", {"velocity"});
  const auto g = build(p, sharing(2));
  CHECK(g.op(find_op(g, "sgd_w", 1)).device == 1);
  CHECK(places_of(g, "velocity") == first);
}

TEST_CASE("statistics that each device updates stay its own") {
  auto p = linear_with_sgd();
  p.persistable("mean").op("move", {"xw", "mean"}, {"mean"});
  const auto g = build(p, sharing(2));
  CHECK(places_of(g, "mean") == both);
  CHECK(places_of(g, "w") == first);
}

TEST_CASE("a parameter that falls back to all_reduce has its copies") {
  const auto g =
    build(linear_with_sgd(), sharing(2, merge_strategy::reduce, {"b@GRAD"}));
  CHECK(places_of(g, "b") == both);
  CHECK(places_of(g, "w") == first);
}

TEST_CASE("a parameter that another op writes on every device is broadcast") {
  auto p = linear_with_sgd();
  auto& ops = p.desc.main().ops;
  p.op("clip", {"w"}, {"w"});
  std::rotate(ops.begin(), ops.end() - 1, ops.end());
  const auto g = build(p, sharing(2));
  CHECK(places_of(g, "w") == both);
  CHECK(has_op(g, op_kind::broadcast));
  CHECK(places_of(g, "b") == first);
}

TEST_CASE("a program that only reads uses one copy of all") {
  small_program p;
  p.persistable("w").op("mul", {"x", "w"}, {"y"});
  const auto g = build(p, sharing(2, merge_strategy::all_reduce, {"y"}));
  CHECK(places_of(g, "w") == first);
  CHECK(places_of(g, "y") == both);
}

TEST_CASE("one device shares with nobody") {
  const auto alone = build(linear_with_sgd(), on_cpus(1));
  const auto g = build(linear_with_sgd(), sharing(1));
  CHECK(describe_ops(g) == describe_ops(alone));
  CHECK(g.edges == alone.edges);
}

TEST_CASE("program order chains devices by their ops, not by what they read") {
  small_program p;
  p.persistable("w").op("a", {"w"}, {"y"}).op("b", {"w"}, {"z"});
  CHECK(describe_hazards(run_in_program_order(build(p, sharing(2))))
        == "a@0 -> b@0 order +0\n"
           "a@1 -> b@1 order +0\n"
           "b@0 -> a@0 order +1\n"
           "b@1 -> a@1 order +1\n");
}

} // TEST_SUITE("graph.shared_parameters")
