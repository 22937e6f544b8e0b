// SPDX-License-Identifier: Apache-2.0
#include "graph/random_program.hpp"
#include "graph/small_program.hpp"

#include <troupe/graph/op_order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

namespace {

using moment = std::pair<handle_id, std::uint32_t>; // a handle in a step

/// All ops' moments behind `first` of step 0, up to step 2, along `edges`.
std::set<moment> behind(handle_id first, const std::vector<edge>& edges,
                        std::size_t num_ops) {
  constexpr std::uint32_t last_step = 2;
  std::set<moment> found;
  std::vector<moment> open{{first, 0}};
  while (!open.empty()) {
    const auto [at, step] = open.back();
    open.pop_back();
    const auto go = [&, step = step](handle_id to, std::uint32_t distance) {
      if (step + distance <= last_step
          && found.insert({to, step + distance}).second)
        open.push_back({to, step + distance});
    };
    for (auto& e : edges)
      if (e.from == at)
        go(e.to, e.distance);
  }
  std::erase_if(found, [&](const moment& m) { return m.first >= num_ops; });
  return found;
}

/// The graph's, with the implicit ones of ops to themselves.
std::vector<edge> edges_of(const ssa_graph& g) {
  auto edges = g.edges;
  for (auto& o : g.ops)
    edges.push_back({o.id, o.id, edge_kind::order, 1});
  return edges;
}

std::vector<edge> edges_of(const op_order& order, std::size_t num_ops) {
  std::vector<edge> edges;
  for (handle_id op = 0; op < num_ops; ++op)
    for (auto& s : order.successors(op))
      edges.push_back({op, s.op, edge_kind::order, s.distance});
  return edges;
}

/// "mul sgd_w+1": who is told by an op.
std::string told_by(const ssa_graph& g, const op_order& order, const char* op) {
  std::string text;
  for (auto& s : order.successors(find_op(g, op)))
    text += (text.empty() ? "" : " ") + g.op(s.op).desc->type
            + (s.distance > 0 ? "+" + std::to_string(s.distance) : "");
  return text;
}

} // namespace

TEST_SUITE("graph.op_order") {

TEST_CASE("a chain through variables is a chain of ops") {
  small_program p;
  p.op("a", {"x"}, {"y"}).op("b", {"y"}, {"z"}).op("c", {"y", "z"}, {"out"});
  const auto g = build(p);
  const op_order order{g, op_order::scope::one_step};
  CHECK(told_by(g, order, "a") == "b"); // c waits for b, which waits for a
  CHECK(told_by(g, order, "b") == "c");
  CHECK(told_by(g, order, "c") == "");
}

TEST_CASE("two variables between two ops are one message") {
  small_program p;
  p.op("a", {"x"}, {"y", "z"}).op("b", {"y", "z"}, {"out"});
  const auto g = build(p);
  CHECK(told_by(g, op_order{g, op_order::scope::one_step}, "a") == "b");
}

TEST_CASE("an op waits for itself in the step before if no other makes it") {
  small_program p;
  p.persistable("w").op("look", {"w"}, {"y"}).op("set", {"y"}, {"w"});
  p.op("aside", {"y"}, {"z"});
  const auto g = build(p);
  const op_order order{g};
  CHECK(told_by(g, order, "look") == "set aside");
  CHECK(told_by(g, order, "set") == "look+1"); // which tells `set`
  CHECK(told_by(g, order, "aside") == "aside+1");
}

TEST_CASE("an update is told by readers and tells the next step") {
  small_program p;
  p.persistable("w").op("look", {"w"}, {"y"}).op("set", {"x"}, {"w"});
  const auto g = build(p);
  const op_order order{g};
  CHECK(told_by(g, order, "look") == "set");
  CHECK(told_by(g, order, "set") == "look+1");
}

TEST_CASE("random graphs order the same ops with and without variables") {
  std::size_t fewer = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const auto p =
      seed % 2 ? random_training_program(seed) : random_program(seed);
    const auto g = build(p, random_options(p, seed));
    const op_order order{g};
    const auto all = edges_of(g);
    const auto edges = edges_of(order, g.ops.size());
    for (auto& op : g.ops)
      CHECK(behind(op.id, all, g.ops.size())
            == behind(op.id, edges, g.ops.size()));
    fewer += order.size() < g.edges.size();
  }
  CHECK(fewer > 50);
}

TEST_CASE("no successor of a random graph is implied by the others") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const auto p = random_training_program(seed);
    const auto g = build(p, random_options(p, seed));
    const auto edges = edges_of(op_order{g}, g.ops.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      auto others = edges;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK_FALSE(behind(edges[i].from, others, g.ops.size())
                    .contains({edges[i].to, edges[i].distance}));
    }
  }
}

} // TEST_SUITE("graph.op_order")
