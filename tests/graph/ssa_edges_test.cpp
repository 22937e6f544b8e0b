// SPDX-License-Identifier: Apache-2.0
#include "small_program.hpp"

#include <troupe/graph/ssa/hazard_checker.hpp>
#include <troupe/graph/ssa/ssa_edges.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.ssa_edges") {

namespace {

constexpr auto war = edge_kind::write_after_read;
constexpr auto waw = edge_kind::write_after_write;

std::size_t count_between_ops(const ssa_graph& g) {
  return static_cast<std::size_t>(
    std::count_if(g.edges.begin(), g.edges.end(), [&](const edge& e) {
      return g.is_op(e.from) && g.is_op(e.to);
    }));
}

} // namespace

// The first ParallelExecutor returned from its search at the first variable
// with a single version and so left all later ones unprotected.
TEST_CASE("single-version variables do not hide later hazards") {
  small_program p;
  p.op("one", {"x"}, {"a"})
    .op("two", {"x"}, {"b"})
    .op("look", {"b"}, {"seen"})
    .op("again", {"x"}, {"b"});
  auto g = build(p);
  CHECK(has_edge(g, find_op(g, "look"), find_op(g, "again"), war, 0));
}

// The first ParallelExecutor protected only versions that an op had written:
// parameters read in the forward pass and then updated were not.
TEST_CASE("readers of a parameter's version 0 come before its update") {
  small_program p;
  p.persistable("w").persistable("unused");
  p.op("look", {"w"}, {"seen"}).op("update", {"x"}, {"w"});
  auto g = build(p, on_cpus(2));
  for (std::size_t device : {0, 1})
    CHECK(has_edge(g, find_op(g, "look", device), find_op(g, "update", device),
                   war, 0));
  CHECK(count_between_ops(g) == 2);
}

TEST_CASE("readers of a fed variable come before its overwriting") {
  small_program p;
  p.op("look", {"x"}, {"seen"}).op("overwrite", {}, {"x"});
  auto g = build(p);
  CHECK(describe_ops(g)
        == "look@0: x:0 -> seen:1\n"
           "overwrite@0: -> x:1\n");
  CHECK(has_edge(g, find_op(g, "look"), find_op(g, "overwrite"), war, 0));
}

TEST_CASE("each write makes a version and each read takes the latest") {
  small_program p;
  p.op("a", {"x"}, {"t"})
    .op("b", {"t"}, {"u"})
    .op("c", {"t"}, {"t"})
    .op("d", {"t", "t"}, {"v"});
  auto g = build(p);
  CHECK(describe_ops(g)
        == "a@0: x:0 -> t:1\n"
           "b@0: t:1 -> u:1\n"
           "c@0: t:1 -> t:2\n"
           "d@0: t:2 t:2 -> v:1\n");
  CHECK(describe_hazards(g) == "b@0 -> c@0 write_after_read +0\n");
  auto reads = std::count_if(g.edges.begin(), g.edges.end(),
                             [&](auto& e) { return e.to == find_op(g, "d"); });
  CHECK(reads == 1);
}

TEST_CASE("an op that names an output twice writes one version") {
  small_program p;
  p.op("a", {"x"}, {"t", "t"});
  CHECK(describe_ops(build(p)) == "a@0: x:0 -> t:1 t:1\n");
}

TEST_CASE("writers of a version that nobody reads stay in order") {
  small_program p;
  p.op("a", {"x"}, {"t"}).op("b", {"x"}, {"t"}).op("c", {"x"}, {"t"});
  auto g = build(p);
  CHECK(has_edge(g, find_op(g, "a"), find_op(g, "b"), waw, 0));
  CHECK(has_edge(g, find_op(g, "b"), find_op(g, "c"), waw, 0));
  CHECK(count_between_ops(g) == 2);
}

TEST_CASE("a variable written in place twice needs no edges of its own") {
  small_program p;
  p.persistable("s").op("a", {"s"}, {"s"}).op("b", {"s"}, {"s"});
  auto g = build(p);
  CHECK(describe_ops(g)
        == "a@0: s:0 -> s:1\n"
           "b@0: s:1 -> s:2\n");
  CHECK(describe_hazards(g) == "s:2@0 -> s:0@0 data +1\n");
}

TEST_CASE("a reader whose result the writer takes needs no second edge") {
  small_program p;
  p.persistable("w").op("grad", {"w"}, {"g"}).op("sgd", {"w", "g"}, {"w"});
  CHECK(count_between_ops(build(p)) == 0);
}

TEST_CASE("persistable variables are ordered over the step boundary") {
  small_program p;
  p.persistable("s");
  p.op("first", {"x"}, {"s"}).op("look", {"s"}, {"seen"});
  auto g = build(p);
  CHECK(describe_hazards(g) == "look@0 -> first@0 write_after_read +1\n");

  small_program unread;
  unread.persistable("s").op("a", {"x"}, {"s"}).op("b", {"x"}, {"s"});
  CHECK(describe_hazards(build(unread))
        == "a@0 -> b@0 write_after_write +0\n"
           "b@0 -> a@0 write_after_write +1\n");
}

TEST_CASE("temporaries have no edges over the step boundary") {
  small_program p;
  p.op("first", {"x"}, {"t"}).op("look", {"t"}, {"seen"});
  CHECK(describe_hazards(build(p)).empty());
}

TEST_CASE("persistable variables that nobody writes tell their readers alone") {
  small_program p;
  p.persistable("w").op("look", {"w"}, {"seen"});
  auto g = build(p, on_cpus(1, merge_strategy::all_reduce, {"w"}));
  const auto w = find_var(g, "w", 0);
  REQUIRE(g.edges.size() == 3);
  CHECK(has_edge(g, w, find_op(g, "look"), edge_kind::data, 0));
  CHECK(has_edge(g, w, find_op(g, "fetch"), edge_kind::data, 0));
  CHECK(has_edge(g, find_op(g, "look"), find_var(g, "seen", 1), edge_kind::data,
                 0));
}

TEST_CASE("a fetched persistable is read before the next step writes it") {
  small_program p;
  p.persistable("w").op("update", {"x"}, {"w"});
  auto g = build(p, on_cpus(1, merge_strategy::all_reduce, {"w"}));
  auto fetch = find_op(g, "fetch");
  CHECK(g.op(fetch).stream == stream_kind::fetch);
  CHECK(has_edge(g, find_var(g, "w", 1), fetch, edge_kind::data, 0));
  CHECK(has_edge(g, fetch, find_op(g, "update"), war, 1));
}

TEST_CASE("collectives that merge in place wait for other readers") {
  small_program p;
  p.persistable("w");
  p.op("forward", {"x"}, {"loss"}, role_forward | role_loss)
    .loss_gradient("loss")
    .op("early", {"loss@GRAD"}, {"w@GRAD"}, role_backward)
    .op("look", {"w@GRAD"}, {"seen"}, role_backward)
    .op("backward", {"w@GRAD"}, {"w@GRAD"}, role_backward, {"w", "w@GRAD"});
  auto g = build(p, on_cpus(2));
  for (std::size_t device : {0, 1})
    CHECK(has_edge(g, find_op(g, "look", device),
                   find_op(g, "backward", device), war, 0));
  auto merged = find_op(g, "all_reduce");
  CHECK(g.op(merged).stream == stream_kind::collective);
  CHECK(g.op(merged).inputs[1] == find_var(g, "w@GRAD", 2, 1));
  CHECK(g.op(merged).outputs[1] == find_var(g, "w@GRAD", 3, 1));
}

TEST_CASE("a broadcast waits for the parameter's readers on each device") {
  small_program p;
  p.persistable("w");
  p.op("look", {"w"}, {"loss"}, role_forward | role_loss)
    .loss_gradient("loss")
    .op("backward", {"loss@GRAD"}, {"w@GRAD"}, role_backward, {"w", "w@GRAD"})
    .op("sgd", {"w", "w@GRAD"}, {"w"}, role_optimize, {"w", "w@GRAD"});
  auto g = build(p, on_cpus(3, merge_strategy::reduce));
  auto broadcast = find_op(g, "broadcast");
  CHECK(has_edge(g, find_op(g, "look", 0), find_op(g, "sgd", 0), war, 0));
  CHECK(has_edge(g, find_op(g, "look", 1), broadcast, war, 0));
  CHECK(has_edge(g, find_op(g, "look", 2), broadcast, war, 0));
  for (std::size_t device : {0, 1, 2})
    CHECK(has_edge(g, g.latest("w", device), find_var(g, "w", 0, device),
                   edge_kind::data, 1));
}

TEST_CASE("equal pairs are merged and the shorter distance wins") {
  std::vector<edge> edges{{1, 2, war, 1},
                          {1, 2, edge_kind::order, 0},
                          {0, 2, waw, 0},
                          {1, 2, war, 0}};
  merge_edges(edges);
  REQUIRE(edges.size() == 2);
  CHECK(edges[0] == edge{0, 2, waw, 0});
  CHECK(edges[1] == edge{1, 2, war, 0});
}

TEST_CASE("data edges within a step can be dropped and added again") {
  small_program p;
  p.persistable("w");
  p.op("look", {"w", "x"}, {"t"})
    .op("twice", {"t", "t"}, {"u"})
    .op("update", {"u"}, {"w"});
  const auto whole = build(p, on_cpus(2));
  auto g = whole;
  drop_data_edges(g);
  CHECK_FALSE(g.lists_data_edges);
  CHECK(g.edges.size() < whole.edges.size());
  for (auto& e : g.edges)
    CHECK((e.kind != edge_kind::data || e.distance > 0));
  const auto again = with_data_edges(g);
  CHECK(again.lists_data_edges);
  CHECK(again.edges == whole.edges);
  CHECK(with_data_edges(whole).edges == whole.edges);
}

TEST_CASE("data edges that differ from inputs and outputs are not dropped") {
  small_program p;
  p.op("look", {"x"}, {"t"}).op("use", {"t"}, {"u"});
  const auto whole = build(p);
  auto lacks_one = whole;
  std::erase_if(lacks_one.edges,
                [&](const edge& e) { return e.to == find_op(whole, "use"); });
  auto has_one_more = whole;
  has_one_more.edges.push_back({find_op(whole, "look"),
                                whole.op(find_op(whole, "use")).outputs[0],
                                edge_kind::data, 0});
  merge_edges(has_one_more.edges);
  for (auto& g : {lacks_one, has_one_more}) {
    auto kept = g;
    drop_data_edges(kept);
    CHECK(kept.lists_data_edges);
    CHECK(kept.edges == g.edges);
  }
}

} // TEST_SUITE("graph.ssa_edges")
