// SPDX-License-Identifier: Apache-2.0

// The messages of graphs whose places exchange values.

#include <troupe/graph/passes/transfers.hpp>
#include <troupe/graph/ssa/implied_edges.hpp>
#include <troupe/graph/ssa/reachability.hpp>
#include <troupe/graph/ssa_builder.hpp>
#include <troupe/graph/wiring/wiring_plan.hpp>

#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;
using graph::op_end;
using graph::wired_edge;
using graph::wiring_plan;

TEST_SUITE("actors.remote.transfers_plan") {

namespace {

/// Devices share parameters, so those of other places get them by transfers.
graph::ssa_graph split(const small_net& net, merge_strategy strategy,
                       const std::vector<std::uint32_t>& places) {
  graph::build_options o;
  o.devices = parse_devices("cpu:" + std::to_string(places.size()));
  o.strategy = strategy;
  o.loss = net.loss;
  o.lowering.share_parameters = true;
  return graph::add_transfers(
    graph::build_ssa_graph(std::make_shared<graph::program>(net.main), o),
    places);
}

/// The plan of all places, or of one.
wiring_plan plan_of(const graph::ssa_graph& g,
                    const std::vector<bool>& here = {}) {
  graph::wiring_options options;
  options.streams = graph::plan_streams(g, 1, here);
  options.device_is_here = here;
  return {g, options};
}

bool leads_to_another_place(const graph::ssa_graph& g, const wired_edge& e) {
  const auto place = [&](handle_id id) {
    return g.place_of(g.is_op(id) ? g.op(id).device : g.var(id).device);
  };
  return e.from != no_handle && place(e.from) != place(e.to);
}

/// The graph with only those edges that are sent as messages.
graph::ssa_graph as_sent(graph::ssa_graph g, const wiring_plan& plan) {
  g.edges.clear();
  for (auto& e : plan.edges())
    if (e.sent && e.from != no_handle && e.from != e.to)
      g.edges.push_back({e.from, e.to, graph::edge_kind::order, e.distance});
  return g;
}

} // namespace

TEST_CASE("messages stay within places and imply all other edges") {
  std::size_t only_implied_elsewhere = 0;
  for (auto& net : {make_lenet(), make_word2vec()})
    for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
      const auto g = split(net, strategy, {0, 1, 1});
      REQUIRE_FALSE(g.transfers.empty());
      const auto plan = plan_of(g);
      for (auto& e : plan.edges())
        CHECK_FALSE(leads_to_another_place(g, e));
      // Edges that are not sent follow from messages alone, without transfers.
      std::vector<graph::order_query> waits;
      for (auto& e : g.edges)
        if (e.kind != graph::edge_kind::transfer)
          waits.push_back({e.from, e.to, e.distance});
      const graph::reachability sent{as_sent(g, plan)};
      CHECK(sent.find_unordered(waits).empty());
      const auto implied = graph::find_implied_edges(g, graph::reachability{g});
      for (std::size_t i = 0; i < g.edges.size(); ++i)
        if (implied.edges[i])
          only_implied_elsewhere +=
            std::ranges::any_of(plan.edges(), [&](const wired_edge& e) {
              return e.sent && e.from == g.edges[i].from
                     && e.to == g.edges[i].to;
            });
    }
  // Otherwise the test would prove little.
  CHECK(only_implied_elsewhere > 0);
}

TEST_CASE("transfers end later, and every receiving op gets a message") {
  const auto g = split(make_mlp(), merge_strategy::all_reduce, {0, 1});
  const auto plan = plan_of(g);
  for (auto& t : g.transfers) {
    CHECK(plan.end_of(t.send) == op_end::later);
    CHECK(plan.end_of(t.recv) == op_end::later);
    CHECK(plan.ends_step(t.send));
    CHECK(std::ranges::any_of(plan.edges(), [&](auto& e) {
      return e.sent && e.to == t.recv && e.distance == 0;
    }));
  }
}

TEST_CASE("the plans of all processes add up to the whole plan") {
  const auto g = split(make_lenet(), merge_strategy::reduce, {0, 1, 1});
  const auto whole = plan_of(g);
  const auto first = plan_of(g, {true, false, false});
  const auto second = plan_of(g, {false, true, true});
  std::vector<wired_edge> both;
  for (auto* part : {&first, &second})
    both.insert(both.end(), part->edges().begin(), part->edges().end());
  const auto by_handles = [](const wired_edge& a, const wired_edge& b) {
    return std::pair{a.from, a.to} < std::pair{b.from, b.to};
  };
  std::ranges::sort(both, by_handles);
  auto all = whole.edges();
  std::ranges::sort(all, by_handles);
  CHECK(both == all);
  CHECK(first.messages_per_step() + second.messages_per_step()
        == whole.messages_per_step());
  CHECK(first.streams().size() == 3);
  CHECK(second.streams().size() == 6); // both devices have collectives
  CHECK(first.releases().size() + second.releases().size()
        == whole.releases().size());
}

} // TEST_SUITE("actors.remote.transfers_plan")
