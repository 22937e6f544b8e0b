// SPDX-License-Identifier: Apache-2.0
#include "graph/brute_force.hpp"
#include "graph/random_program.hpp"
#include "graph/small_program.hpp"

#include <troupe/base/error.hpp>
#include <troupe/graph/passes/place_handles.hpp>
#include <troupe/graph/passes/rank_collectives.hpp>
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

TEST_SUITE("graph.passes.place_handles") {

namespace {

using places = std::vector<std::uint32_t>;
using table = std::vector<handle_place>;

/// Two ops, each on two devices in two places.
ssa_graph two_ops() {
  small_program p;
  p.op("look", {"x"}, {"y"}).op("turn", {"y"}, {"z"});
  return make_rank_collectives(build(p, on_cpus(2)));
}

ssa_graph placed(const ssa_graph& g, const table& lines) {
  return place_handles(g, lines, {0, 1});
}

/// y = x * w, loss = mean(y), an update of w that keeps a velocity.
small_program linear_with_momentum() {
  small_program p;
  p.persistable("w", {4, 4}).persistable("w_velocity", {4, 4});
  p.op("mul", {"x", "w"}, {"y"})
    .op("mean", {"y"}, {"loss"}, role_forward | role_loss)
    .loss_gradient("loss")
    .op("mean_grad", {"y", "loss@GRAD"}, {"y@GRAD"}, role_backward)
    .op("mul_grad", {"x", "y@GRAD"}, {"w@GRAD"}, role_backward, {"w", "w@GRAD"})
    .op("momentum", {"w", "w_velocity", "w@GRAD"}, {"w", "w_velocity"},
        role_optimize, {"w", "w@GRAD"});
  return p;
}

/// The ops that have been moved, as "type: from -> to".
std::string moves_of(const ssa_graph& g) {
  std::string text;
  for (auto& o : g.ops)
    if (o.shard() != o.device)
      text += o.desc->type + ": " + std::to_string(o.shard()) + " -> "
              + std::to_string(o.device) + "\n";
  return text;
}

error refused(const ssa_graph& g, const table& lines) {
  return caught([&] { placed(g, lines); });
}

} // namespace

TEST_CASE("an op runs where the table says, on the samples of its device") {
  const auto g = placed(two_ops(), {{"turn#*@cpu:1", 0, "a"}});
  CHECK(moves_of(g) == "turn: 1 -> 0\n");
  CHECK(describe_ops(add_transfers(g, {0, 1}))
        == "look@0: x:0 -> y:1\n"
           "look@1: x:0 -> y:1\n"
           "turn@0: y:1 -> z:1\n"
           "send@1: y:1 ->\n"
           "recv@0: -> y@cpu:1:2\n"
           "turn@0: y@cpu:1:2 -> z@cpu:1:2\n"
           "send@0: z@cpu:1:2 ->\n"
           "recv@1: -> z:1\n");
}

TEST_CASE(
  "a variable lives where the table says, and its value is sent there") {
  const auto g = placed(two_ops(), {{"y:v?@cpu:1", 0, "a"}});
  CHECK(moves_of(g).empty());
  CHECK(describe_ops(add_transfers(g, {0, 1}))
        == "look@0: x:0 -> y:1\n"
           "look@1: x:0 -> y@cpu:1@cpu:0:2\n"
           "send@1: y@cpu:1@cpu:0:2 ->\n"
           "recv@0: -> y@cpu:1:1\n"
           "turn@0: y:1 -> z:1\n"
           "turn@1: y@cpu:1@cpu:0:2 -> z:1\n");
}

TEST_CASE("the first line that fits counts") {
  const auto g = two_ops();
  CHECK(moves_of(placed(g, {{"look*", 1, "a"}, {"*", 0, "b"}}))
        == "look: 0 -> 1\nturn: 1 -> 0\n");
  CHECK(
    moves_of(placed(g, {{"look#0@cpu:0", 0, "a"}, {"look*", 1, "b"}})).empty());
}

TEST_CASE("a star is any text, a question mark one character") {
  const auto g = two_ops();
  for (const auto* pattern :
       {"turn#3@cpu:1", "turn#?@cpu:1", "t*3*1", "*u*n*cpu:1", "turn*@*:1",
        "?urn*:1", "turn#3@cpu:1*", "***turn**1"})
    CHECK(moves_of(placed(g, {{pattern, 0, "a"}})) == "turn: 1 -> 0\n");
  for (const auto* pattern : {"turn#3@cpu:", "urn#3@cpu:1", "turn#3@cpu:1?",
                              "t*4*1", "TURN*", "turn#??@cpu:1", ""})
    CHECK(says(refused(g, {{pattern, 0, "a"}}), "fits no handle"));
}

TEST_CASE("a persistable variable that only one device has moves") {
  small_program p;
  p.persistable("m").op("look", {"x"}, {"y"}).op("add", {"m", "y"}, {"m"});
  auto g = make_rank_collectives(build(p, on_cpus(2)));
  // As with the strategy reduce: only cpu:1 updates it.
  CHECK(says(refused(g, {{"m:*@cpu:1", 0, "a"}}), "belong to their device"));
  CHECK(says(refused(g, {{"m:*@cpu:0", 1, "a"}}), "belong to their device"));
  const auto reduced = make_rank_collectives(
    build(linear_with_momentum(), on_cpus(2, merge_strategy::reduce)));
  const auto velocity = [](const ssa_graph& of) {
    for (auto& v : of.vars)
      if (v.name == "w_velocity")
        return v.device;
    return std::uint32_t{99};
  };
  const auto home = velocity(reduced);
  REQUIRE(home < 2);
  const auto moved = placed(reduced, {{"w_velocity:*", 1 - home, "a"}});
  CHECK(velocity(moved) == 1 - home);
  for (std::uint32_t k : {1, 2, 3})
    CHECK(find_hazards(add_transfers(moved, {0, 1}), k).empty());
}

TEST_CASE("handles that belong to their device stay there") {
  auto options = on_cpus(2, merge_strategy::all_reduce, {"loss"});
  const auto g = make_rank_collectives(build(linear_with_sgd(), options));
  const auto all = place_handles(g, table{{"*", 0, "a"}}, {0, 1});
  for (auto& o : all.ops) {
    const bool moves =
      o.kind == op_kind::computation || o.kind == op_kind::scale_loss_grad;
    CHECK((o.device == 0) == (moves || o.shard() == 0));
  }
  for (std::size_t i = 0; i < g.vars.size(); ++i)
    if (g.vars[i].feed || g.vars[i].name == "loss" || g.vars[i].name == "w")
      CHECK(all.vars[i].device == g.vars[i].device);
  for (const auto* pattern :
       {"all_reduce*", "fetch*", "w:*@cpu:1", "x:*", "loss:*"})
    CHECK(says(refused(g, {{pattern, 0, "p, line 7"}}),
               "p, line 7: '" + std::string{pattern}
                 + "' fits only handles that belong to their device"));
}

TEST_CASE("a table that makes no sense is refused") {
  const auto g = two_ops();
  CHECK(says(refused(g, {{"look*", 2, "p, line 1"}}),
             "p, line 1: there is no rank 2, the last one is 1"));
  CHECK(says(refused(g, {{"look*", 0, "a"}, {"look#0*", 1, "p, line 2"}}),
             "p, line 2: 'look#0*' fits no handle that an earlier line does "
             "not place"));
  small_program p;
  p.op("look", {"x"}, {"y"});
  CHECK(says(caught([&] {
               place_handles(make_rank_collectives(build(p, on_cpus(3))),
                             table{{"look*@cpu:0", 2, "a"}}, {0, 1, 1});
             }),
             "look#0@cpu:0 cannot move to cpu:2: of another process, only the "
             "first device will do"));
}

TEST_CASE("a file of patterns and ranks is read") {
  const auto lines = parse_handle_places("# comment\n"
                                         "\n"
                                         "conv2d#4@cpu:1   0\r\n"
                                         "  *_grad#*\t12",
                                         "p.txt");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].pattern == "conv2d#4@cpu:1");
  CHECK(lines[0].rank == 0);
  CHECK(lines[0].source == "p.txt, line 3");
  CHECK(lines[1].pattern == "*_grad#*");
  CHECK(lines[1].rank == 12);
  CHECK(parse_handle_places("", "p.txt").empty());
  for (const auto* line :
       {"conv2d", "conv2d one", "conv2d -1", "conv2d 1x", "conv2d 99999999999"})
    CHECK(says(caught([&] { parse_handle_places(line, "p.txt"); }),
               "p.txt, line 1: '" + std::string{line}
                 + "' is not a pattern and a rank"));
}

TEST_CASE("random places of random programs are proven") {
  std::size_t transfers = 0, moves = 0, small = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 draw{seed};
    const auto p =
      seed % 2 == 0 ? random_program(seed) : random_training_program(seed);
    auto options = random_options(p, seed);
    options.lowering.share_parameters = false;
    const auto devices = options.devices.size();
    places each;
    for (std::uint32_t d = 0; d < devices; ++d)
      each.push_back(d);
    auto g = build(p, options);
    if (devices > 1)
      g = make_rank_collectives(std::move(g));
    table lines;
    for (handle_id id = 0; id < g.size(); ++id)
      if (draw() % 3 == 0)
        lines.push_back({handle_name(g, id),
                         static_cast<std::uint32_t>(draw() % devices), "a"});
    std::erase_if(lines, [&](auto& line) {
      try {
        place_handles(g, {&line, 1}, each);
        return false;
      } catch (const error&) { // it belongs to its device
        return true;
      }
    });
    const auto parts = add_transfers(place_handles(g, lines, each), each);
    transfers += parts.transfers.size();
    moves += std::size_t(std::ranges::count_if(
      parts.ops, [](auto& o) { return o.device != o.shard(); }));
    for (std::uint32_t k : {1, 2, 3})
      CHECK(find_hazards(parts, k).empty());
    if (parts.size() <= 340) { // it can take no more
      CHECK(brute_force_ordered(parts, 2));
      ++small;
    }
  }
  CHECK(small > 100);
  CHECK(transfers > 500);
  CHECK(moves > 300);
}

} // TEST_SUITE("graph.passes.place_handles")
