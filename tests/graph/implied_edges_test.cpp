// SPDX-License-Identifier: Apache-2.0
#include "graph/random_program.hpp"
#include "graph/small_program.hpp"

#include <troupe/graph/ssa/implied_edges.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.implied_edges") {

namespace {

using moment = std::pair<handle_id, std::uint32_t>; // a handle in a step

/// All moments behind `first` of step 0, up to step 2, along `edges`.
std::set<moment> behind(handle_id first, const std::vector<edge>& edges) {
  constexpr std::uint32_t last_step = 2;
  std::set<moment> found;
  std::vector<moment> open{{first, 0}};
  while (!open.empty()) {
    const auto [at, step] = open.back();
    open.pop_back();
    for (auto& e : edges)
      if (e.from == at && step + e.distance <= last_step
          && found.insert({e.to, step + e.distance}).second)
        open.push_back({e.to, step + e.distance});
  }
  return found;
}

/// The graph's, with the implicit ones of ops to themselves.
std::vector<edge> all_edges(const ssa_graph& g) {
  auto edges = g.edges;
  for (auto& o : g.ops)
    edges.push_back({o.id, o.id, edge_kind::order, 1});
  return edges;
}

/// Those of them that are not implied.
std::vector<edge> needed_edges(const ssa_graph& g) {
  const auto implied = find_implied_edges(g, reachability{g});
  std::vector<edge> edges;
  for (std::size_t i = 0; i < g.edges.size(); ++i)
    if (!implied.edges[i])
      edges.push_back(g.edges[i]);
  for (auto& o : g.ops)
    if (!implied.own[o.id])
      edges.push_back({o.id, o.id, edge_kind::order, 1});
  return edges;
}

/// "a -> y, y -> b": what is not sent, without ops to themselves.
std::string implied_in(const ssa_graph& g) {
  const auto implied = find_implied_edges(g, reachability{g});
  const auto name = [&](handle_id id) {
    return g.is_op(id) ? g.op(id).desc->type : std::string{g.var(id).name};
  };
  std::string text;
  for (std::size_t i = 0; i < g.edges.size(); ++i)
    if (implied.edges[i])
      text += (text.empty() ? "" : ", ") + name(g.edges[i].from) + " -> "
              + name(g.edges[i].to);
  return text;
}

} // namespace

TEST_CASE("a variable need not tell an op that waits for another reader") {
  small_program p;
  p.op("a", {"x"}, {"y"}).op("b", {"y"}, {"z"}).op("c", {"y", "z"}, {"out"});
  CHECK(implied_in(build(p)) == "y -> c"); // c waits for b, which waits for y
}

TEST_CASE("an update need not hear of a reader whose result it takes") {
  small_program p;
  p.persistable("w").op("grad", {"w"}, {"g"}).op("sgd", {"w", "g"}, {"w"});
  CHECK(implied_in(build(p)) == "w -> sgd");
}

TEST_CASE("an op waits for itself in the step before if nothing implies it") {
  small_program p;
  p.persistable("w").op("look", {"w"}, {"y"}).op("set", {"y"}, {"w"});
  p.op("aside", {"y"}, {"z"});
  const auto g = build(p);
  const auto implied = find_implied_edges(g, reachability{g});
  CHECK(implied.own[find_op(g, "look")]); // look -> set -> w -> look
  CHECK(implied.own[find_op(g, "set")]);
  CHECK_FALSE(implied.own[find_op(g, "aside")]);
}

TEST_CASE("ops on the way of any of many parameters wait for themselves") {
  constexpr int parameters = 200; // more than one look at the graph takes in
  small_program p;
  for (int i = 0; i < parameters; ++i) {
    const auto n = std::to_string(i);
    p.persistable("w" + n).op("look" + n, {"w" + n}, {"y" + n});
    p.op("set" + n, {"y" + n}, {"w" + n}).op("aside" + n, {"y" + n}, {"z" + n});
  }
  const auto g = build(p);
  const auto implied = find_implied_edges(g, reachability{g});
  for (auto& o : g.ops) {
    CAPTURE(o.desc->type);
    CHECK(implied.own[o.id] == !o.desc->type.starts_with("aside"));
  }
}

TEST_CASE("an op always tells the variables that it writes") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto p = random_training_program(seed);
    const auto g = build(p, random_options(p, seed));
    const auto implied = find_implied_edges(g, reachability{g});
    for (std::size_t i = 0; i < g.edges.size(); ++i)
      if (auto& e = g.edges[i]; g.is_op(e.from) && !g.is_op(e.to))
        CHECK_FALSE(implied.edges[i]);
  }
}

TEST_CASE("random graphs keep their order without what is implied") {
  std::size_t fewer = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const auto p =
      seed % 2 ? random_training_program(seed) : random_program(seed);
    const auto g = build(p, random_options(p, seed));
    const auto all = all_edges(g);
    const auto needed = needed_edges(g);
    for (handle_id id = 0; id < g.size(); ++id)
      CHECK(behind(id, all) == behind(id, needed));
    fewer += needed.size() < all.size();
  }
  CHECK(fewer > 25);
}

TEST_CASE("no message that is left in a random graph is implied by others") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const auto p = random_training_program(seed);
    const auto g = build(p, random_options(p, seed));
    const auto edges = needed_edges(g);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (g.is_op(edges[i].from) && !g.is_op(edges[i].to))
        continue;
      auto others = edges;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK_FALSE(behind(edges[i].from, others)
                    .contains({edges[i].to, edges[i].distance}));
    }
  }
}

} // TEST_SUITE("graph.implied_edges")
