// SPDX-License-Identifier: Apache-2.0
#include "graph/random_program.hpp"
#include "graph/small_program.hpp"

#include <troupe/graph/passes/gradient_stream.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>
#include <troupe/graph/wiring/wiring_plan.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.passes.gradient_stream") {

namespace {

/// The types of the ops on the stream for gradients, with their device.
std::set<std::string> moved(const ssa_graph& g) {
  std::set<std::string> found;
  for (auto& op : g.ops)
    if (op.stream == stream_kind::gradient)
      found.insert(op.desc->type + "@" + std::to_string(op.device));
  return found;
}

/// Two layers whose gradient ops are separate; the gradient of `v` is made of
/// two parts.
small_program two_layers() {
  small_program p;
  p.persistable("w").persistable("v");
  p.op("layer_1", {"x", "w"}, {"h"})
    .op("layer_2", {"h", "v"}, {"loss"}, role_forward | role_loss);
  p.loss_gradient("loss");
  p.op("part_1", {"loss@GRAD", "h"}, {"v_1"}, role_backward);
  p.op("part_2", {"loss@GRAD", "h"}, {"v_2"}, role_backward);
  p.op("sum", {"v_1", "v_2"}, {"v@GRAD"}, role_backward, {"v", "v@GRAD"});
  p.op("input_grad", {"loss@GRAD", "v"}, {"h@GRAD"}, role_backward);
  p.op("weight_grad", {"h@GRAD", "x"}, {"w@GRAD"}, role_backward,
       {"w", "w@GRAD"});
  p.op("update_v", {"v", "v@GRAD"}, {"v"}, role_optimize, {"v", "v@GRAD"});
  p.op("update_w", {"w", "w@GRAD"}, {"w"}, role_optimize, {"w", "w@GRAD"});
  return p;
}

} // namespace

TEST_CASE("what only updates and collectives wait for is moved") {
  for (std::size_t devices : {1, 2}) {
    CAPTURE(devices);
    std::set<std::string> wanted;
    for (std::size_t d = 0; d < devices; ++d)
      for (auto type : {"part_1", "part_2", "sum", "weight_grad"})
        wanted.insert(type + ("@" + std::to_string(d)));
    const auto g = build(two_layers(), on_cpus(devices));
    CHECK(moved(g).empty());
    CHECK(moved(move_weight_gradients(g)) == wanted);
  }
}

TEST_CASE("a gradient that is fetched stays") {
  const auto g = move_weight_gradients(
    build(two_layers(), on_cpus(1, merge_strategy::all_reduce, {"w@GRAD"})));
  CHECK_FALSE(moved(g).contains("weight_grad@0"));
  CHECK(moved(g).contains("part_1@0"));
}

TEST_CASE("a device has a stream for gradients only if some were moved") {
  const auto g = build(two_layers(), on_cpus(2));
  const auto count = [](const ssa_graph& of) {
    return std::ranges::count(plan_streams(of, 1), stream_kind::gradient,
                              &planned_stream::kind);
  };
  CHECK(count(g) == 0);
  CHECK(count(move_weight_gradients(g)) == 2);
}

TEST_CASE("edges of random graphs stay as they were") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto p = random_training_program(seed);
    const auto g = build(p, random_options(p, seed));
    const auto other = move_weight_gradients(g);
    CHECK(other.edges == g.edges);
    CHECK_NOTHROW(check_hazards(other, 2));
  }
}

} // TEST_SUITE("graph.passes.gradient_stream")
