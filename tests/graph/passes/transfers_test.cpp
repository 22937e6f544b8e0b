// SPDX-License-Identifier: Apache-2.0
#include "graph/brute_force.hpp"
#include "graph/random_program.hpp"
#include "graph/small_program.hpp"

#include <troupe/base/error.hpp>
#include <troupe/graph/passes/delayed_inputs.hpp>
#include <troupe/graph/passes/program_order.hpp>
#include <troupe/graph/passes/rank_collectives.hpp>
#include <troupe/graph/passes/redundant_edges.hpp>
#include <troupe/graph/passes/transfers.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;
using test::caught;
using test::says;

TEST_SUITE("graph.passes.transfers") {

namespace {

constexpr auto strategies = {merge_strategy::all_reduce, merge_strategy::reduce,
                             merge_strategy::replicate, merge_strategy::none};

constexpr bool shares_parameters = true;

/// With shared parameters, devices read those of the first device, which may be
/// in another place.
ssa_graph split(const small_program& p, merge_strategy strategy,
                const std::vector<std::uint32_t>& places,
                const names& fetches = {}, bool shared = false) {
  auto options = on_cpus(places.size(), strategy, fetches);
  options.lowering.fuse_all_reduce_bytes = 0;
  options.lowering.share_parameters = shared;
  return add_transfers(build(p, options), places);
}

/// The lines about transfers, and about ops that use a temporary made for one.
std::string describe_transfers(const ssa_graph& g) {
  const auto all = describe_ops(g);
  std::string lines;
  for (std::size_t begin = 0; begin < all.size();) {
    const auto end = all.find('\n', begin) + 1;
    const auto line = all.substr(begin, end - begin);
    if (line.find("@cpu:") != std::string::npos || line.starts_with("send")
        || line.starts_with("recv"))
      lines += line;
    begin = end;
  }
  return lines;
}

/// Each place uses its own storages only.
bool is_apart(const ssa_graph& g) {
  return std::ranges::all_of(g.ops, [&](const op_handle& o) {
    const auto is_here = [&](handle_id id) {
      return g.place_of(g.var(id).device) == g.place_of(o.device);
    };
    return std::ranges::all_of(o.inputs, is_here)
           && std::ranges::all_of(o.outputs, is_here);
  });
}

/// Ops that are no transfers, in their order.
std::vector<const op_handle*> workers_of(const ssa_graph& g) {
  std::vector<const op_handle*> ops;
  for (auto& o : g.ops)
    if (o.kind != op_kind::send && o.kind != op_kind::recv)
      ops.push_back(&o);
  return ops;
}

/// What a variable holds, whatever carried it: "version 0 of w on 1" or "output
/// 0 of op 7", ops counted without transfers.
std::string origin(const ssa_graph& g, handle_id var) {
  for (;;) {
    const auto& v = g.var(var);
    if (v.generator == no_handle)
      return "version 0 of " + std::string{v.name} + " on "
             + std::to_string(v.device);
    const auto& writer = g.op(v.generator);
    if (writer.kind != op_kind::recv) {
      const auto output = std::ranges::find(writer.outputs, var);
      const auto before = workers_of(g);
      return "output " + std::to_string(output - writer.outputs.begin())
             + " of op "
             + std::to_string(std::ranges::find(before, &writer)
                              - before.begin());
    }
    const auto carrier =
      std::ranges::find(g.transfers, writer.id, &transfer::recv);
    REQUIRE(carrier != g.transfers.end());
    var = g.op(carrier->send).inputs.front();
  }
}

/// Every op does what it did, to the same values.
void check_same_values(const ssa_graph& whole, const ssa_graph& parts) {
  const auto before = workers_of(whole), after = workers_of(parts);
  REQUIRE(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(before[i]->device == after[i]->device);
    CHECK(before[i]->desc->type == after[i]->desc->type);
    REQUIRE(before[i]->inputs.size() == after[i]->inputs.size());
    for (std::size_t k = 0; k < before[i]->inputs.size(); ++k)
      CHECK(origin(whole, before[i]->inputs[k])
            == origin(parts, after[i]->inputs[k]));
  }
  // What a variable holds when its step ends.
  for (auto& v : whole.vars)
    if (v.persistable && v.generator != no_handle)
      CHECK(origin(whole, whole.latest(v.name, v.device))
            == origin(parts, parts.latest(v.name, v.device)));
}

std::vector<std::uint32_t> random_places(std::size_t devices,
                                         std::uint64_t seed) {
  std::mt19937_64 draw{seed};
  std::vector<std::uint32_t> places;
  for (std::size_t d = 0; d < devices; ++d)
    places.push_back(static_cast<std::uint32_t>(draw() % 3));
  return places;
}

} // namespace

TEST_CASE("collectives have a rank per device and need no transfer") {
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                        merge_strategy::replicate}) {
    auto options = on_cpus(2, strategy);
    const auto whole = build(linear_with_sgd(), options);
    const auto parts = add_transfers(whole, {0, 1});
    CHECK(parts.transfers.empty());
    CHECK(describe_ops(parts) == describe_ops(make_rank_collectives(whole)));
    CHECK(describe_hazards(parts)
          == describe_hazards(make_rank_collectives(whole)));
    CHECK(parts.places == std::vector<std::uint32_t>{0, 1});
  }
}

TEST_CASE("a parameter of another place is sent each step") {
  CHECK(describe_transfers(split(linear_with_sgd(), merge_strategy::all_reduce,
                                 {0, 1}, {}, shares_parameters))
        == "send@0: lr:0 ->\n"
           "recv@1: -> lr@cpu:0:1\n"
           "sgd_b@1: b:0 lr@cpu:0:1 b@GRAD:2 -> b:1\n"
           "sgd_w@1: w:0 lr@cpu:0:1 w@GRAD:2 -> w:1\n");
}

TEST_CASE("devices of one place share what comes from another") {
  small_program p;
  p.persistable("w").op("look", {"w", "x"}, {"y"}).op("turn", {"w"}, {"z"});
  auto options = on_cpus(3);
  options.lowering.share_parameters = true;
  const auto g = add_transfers(build(p, options), {0, 1, 1});
  CHECK(describe_ops(g)
        == "look@0: w:0 x:0 -> y:1\n"
           "send@0: w:0 ->\n"
           "recv@1: -> w@cpu:0:1\n"
           "look@1: w@cpu:0:1 x:0 -> y:1\n"
           "look@2: w@cpu:0:1@1 x:0 -> y:1\n"
           "turn@0: w:0 -> z:1\n"
           "turn@1: w@cpu:0:1 -> z:1\n"
           "turn@2: w@cpu:0:1@1 -> z:1\n");
}

TEST_CASE("what is read steps later is sent when it has been written") {
  auto options = on_cpus(2);
  options.lowering.share_parameters = true;
  small_program p;
  p.op("early", {"y"}, {"z"}).op("late", {"x"}, {"y"});
  auto g = build(p, options);
  // `early` on cpu:1 reads what `late` on cpu:0 wrote a step ago.
  const auto early = find_op(g, "early", 1);
  const auto written = find_var(g, "y", 1, 0);
  auto sources = std::make_shared<handle_sources>(*g.sources);
  const auto input =
    sources->arguments.insert(sources->arguments.end(), written);
  g.ops[early].inputs = std::span<const handle_id>{&*input, 1};
  sources->before = g.sources;
  g.sources = sources;
  g = delay_inputs(std::move(g), std::vector{delayed_input{early, 0, 1}});
  const auto parts = add_transfers(g, {0, 1});
  CHECK(describe_transfers(parts)
        == "early@1: y@cpu:0:2 -> z:1\n"
           "send@0: y:1 ->\n"
           "recv@1: -> y@cpu:0:2\n");
  CHECK(find_hazards(parts, 2).empty());
}

TEST_CASE("one place needs no transfer") {
  const auto g = build(linear_with_sgd(), on_cpus(2));
  const auto same = add_transfers(g, {3, 3});
  CHECK(describe_ops(same) == describe_ops(g));
  CHECK(same.edges == g.edges);
  CHECK(same.places.empty());
}

TEST_CASE("what cannot be split is refused") {
  const auto g = build(linear_with_sgd(), on_cpus(2));
  CHECK(says(caught([&] {
               add_transfers(g, {0, 1, 2});
             }),
             "a place must be given for each of the 2 devices, not for 3"));
  CHECK(says(caught([&] {
               add_transfers(add_transfers(g, {0, 1}), {0, 1});
             }),
             "split over places already"));
  auto ordered = g;
  ordered.edges.push_back(
    {find_op(g, "mul", 0), find_op(g, "mul", 1), edge_kind::order, 0});
  CHECK(says(caught([&] {
               add_transfers(ordered, {0, 1});
             }),
             "an order edge leads from mul#0@cpu:0 to mul#1@cpu:1"));
}

TEST_CASE("a pass that lets a place use another's variable is found") {
  const auto whole = build(linear_with_sgd(), on_cpus(2));
  CHECK_NOTHROW(check_places(whole));
  auto g = add_transfers(whole, {0, 1});
  CHECK_NOTHROW(check_places(g));
  g.ops[find_op(g, "mul", 1)].inputs = g.op(find_op(g, "mul", 0)).inputs;
  CHECK(
    says(caught([&] { check_places(g); }), "uses a variable of another place"));
}

TEST_CASE("transfers are not redundant") {
  const auto g = split(linear_with_sgd(), merge_strategy::all_reduce, {0, 1},
                       {}, shares_parameters);
  CHECK(!g.transfers.empty());
  const auto less = remove_redundant_edges(g);
  const auto is_transfer = [](const edge& e) {
    return e.kind == edge_kind::transfer;
  };
  CHECK(std::ranges::count_if(less.edges, is_transfer)
        == static_cast<std::ptrdiff_t>(g.transfers.size()));
}

TEST_CASE("all graphs are proven, and any edge that is left out is missed") {
  for (auto strategy : strategies)
    for (auto& places : std::vector<std::vector<std::uint32_t>>{
           {0, 1}, {1, 0}, {0, 1, 1}, {0, 1, 0}, {2, 1, 0}}) {
      const auto g = split(linear_with_sgd(), strategy, places,
                           {"loss", "w", "b@GRAD"}, shares_parameters);
      CHECK(is_apart(g));
      for (std::uint32_t k : {1, 2, 3})
        CHECK_NOTHROW(check_hazards(g, k));
      for (std::size_t i = 0; i < g.edges.size(); ++i) {
        auto lacking = g;
        lacking.edges.erase(lacking.edges.begin() + long(i));
        const auto found = !find_hazards(lacking, 2).empty();
        CHECK_MESSAGE(found == !brute_force_ordered(lacking, 2),
                      handle_name(g, g.edges[i].from), " -> ",
                      handle_name(g, g.edges[i].to));
        if (g.edges[i].kind == edge_kind::transfer && places.size() == 2)
          CHECK(!brute_force_same_order(g, lacking, 3));
      }
    }
}

TEST_CASE("random programs keep their values and are proven") {
  std::size_t transfers = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    auto p =
      seed % 2 == 0 ? random_program(seed) : random_training_program(seed);
    auto options = random_options(p, seed);
    options.lowering.share_parameters = seed % 5 != 0;
    const auto places = random_places(options.devices.size(), seed);
    const auto whole = build(p, options);
    const auto is_split =
      std::ranges::adjacent_find(places, std::ranges::not_equal_to{})
      != places.end();
    const auto g = is_split ? make_rank_collectives(whole) : whole;
    auto parts = add_transfers(whole, places);
    if (seed % 3 == 0)
      parts = run_in_program_order(std::move(parts));
    transfers += parts.transfers.size();
    CHECK(is_apart(parts));
    check_same_values(g, parts);
    for (std::uint32_t k : {1, 2, 3})
      CHECK(find_hazards(parts, k).empty());
    CHECK(brute_force_ordered(parts, 2));
  }
  CHECK(transfers > 50);
}

} // TEST_SUITE("graph.passes.transfers")
