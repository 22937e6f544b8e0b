// SPDX-License-Identifier: Apache-2.0
#include "graph/small_program.hpp"

#include <troupe/base/error.hpp>
#include <troupe/graph/graph_rewriter.hpp>
#include <troupe/graph/passes/delayed_inputs.hpp>
#include <troupe/graph/passes/transfers.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;
using test::caught;
using test::says;

TEST_SUITE("graph.passes.delayed_inputs") {

namespace {

/// Lets the only input of op `type` on a device be what `var` held on device 0.
ssa_graph reading(const ssa_graph& g, const std::string& type,
                  const std::string& var, std::uint32_t distance,
                  std::size_t device = 0) {
  graph_rewriter made{g};
  for (auto& o : g.ops) {
    std::vector<graph_rewriter::var_index> inputs, outputs;
    for (auto v : o.inputs)
      inputs.push_back(made.index_of(v));
    for (auto v : o.outputs)
      outputs.push_back(made.index_of(v));
    if (o.desc->type == type && o.device == device)
      inputs = {made.index_of(g.latest(var, 0))};
    made.add_op(o, inputs, outputs);
  }
  auto result = made.finish();
  result.delayed_inputs = g.delayed_inputs;
  return delay_inputs(
    std::move(result),
    std::vector{delayed_input{find_op(g, type, device), 0, distance}});
}

/// a: x -> u, b: u -> v, c: v -> w
small_program chain() {
  small_program p;
  p.op("a", {"x"}, {"u"}).op("b", {"u"}, {"v"}).op("c", {"v"}, {"w"});
  return p;
}

} // namespace

TEST_CASE("the first steps lack a past for the delays of a chain in sum") {
  const auto g = build(chain());
  CHECK(steps_without_past(g) == 0);
  const auto one = reading(g, "b", "u", 1);
  CHECK(steps_without_past(one) == 1);
  CHECK(steps_without_past(reading(one, "c", "v", 2)) == 3);
}

TEST_CASE("a value that is written after its reader counts with its own past") {
  small_program p;
  p.op("c", {"x"}, {"w"}).op("b", {"x"}, {"v"}).op("a", {"x"}, {"u"});
  const auto b = reading(build(p), "b", "u", 1);
  CHECK(steps_without_past(reading(b, "c", "v", 2)) == 3);
}

TEST_CASE("a chain of delays leads over places") {
  const auto p = chain();
  auto g = reading(build(p, on_cpus(2)), "b", "u", 1);
  g = reading(g, "c", "v", 2, 1);
  CHECK(steps_without_past(add_transfers(g, {0, 1})) == 3);
}

TEST_CASE("a cycle of delays has a past after each of them has counted") {
  const auto a = reading(build(chain()), "a", "w", 2);
  const auto steps = steps_without_past(reading(a, "b", "u", 1));
  CHECK(steps >= 3);
  CHECK(steps < 10);
}

TEST_CASE("delays that cannot be are refused") {
  small_program p;
  p.persistable("w").op("a", {"w"}, {"u"}).op("b", {"u"}, {"v"});
  p.op("c", {"u"}, {"u"});
  const auto g = build(p, on_cpus(1, merge_strategy::all_reduce, {"v"}));
  const auto refused = [&](const std::string& op,
                           const std::vector<std::uint32_t>& distances,
                           std::uint32_t input = 0) {
    std::vector<delayed_input> delayed;
    for (auto d : distances)
      delayed.push_back({find_op(g, op), input, d});
    return caught([&] { delay_inputs(g, delayed); });
  };
  CHECK(says(refused("b", {1}, 1), "no input 1 of b#"));
  CHECK(says(refused("b", {0}), "can be 0 steps old"));
  CHECK(says(refused("b", {1, 2}), "is delayed twice"));
  CHECK(says(refused("a", {1}), "not of a persistable variable"));
  CHECK(says(refused("b", {1}), "is overwritten in that step"));
  CHECK(says(refused("fetch", {1}), "of an op of the program, not of a fetch"));
}

TEST_CASE("a transfer carries no value of an earlier step") {
  const auto g =
    add_transfers(reading(build(chain(), on_cpus(2)), "b", "u", 1, 1), {0, 1});
  REQUIRE(g.transfers.size() == 1);
  const auto e = caught([&] {
    delay_inputs(g, std::vector{delayed_input{g.transfers[0].send, 0, 1}});
  });
  CHECK(e.code() == errc::graph_invalid);
  CHECK(says(e, "an input of an earlier step must be of an op of the program, "
                "not of a send"));
  CHECK(e.where().op_type == "send");
  CHECK(e.where().variable == "u");
}

} // TEST_SUITE("graph.passes.delayed_inputs")
