// SPDX-License-Identifier: Apache-2.0

// What a graph gets whose devices know only their own shards of a batch.

#include "graph/brute_force.hpp"
#include "graph/small_program.hpp"

#include <troupe/graph/passes/rank_collectives.hpp>
#include <troupe/graph/passes/transfers.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.ssa.batch_users") {

namespace {

build_options spread_over(std::size_t devices) {
  auto options = on_cpus(devices);
  options.spread_batch = true;
  options.loss = "loss";
  return options;
}

bool waits_for_count(const ssa_graph& g, const std::string& type,
                     std::size_t device) {
  return has_edge(g, find_op(g, "count_samples", device),
                  find_op(g, type, device), edge_kind::order, 0);
}

/// y = dropout(x) * w, loss = mean(y), sgd on w.
small_program with_dropout() {
  small_program p;
  p.temporary("x").persistable("w");
  p.op("dropout", {"x"}, {"d"}).op("mul", {"d", "w"}, {"y"});
  p.op("mean", {"y"}, {"loss"}).loss_gradient("loss");
  p.op("mul_grad", {"loss@GRAD", "d"}, {"w@GRAD"}, role_backward,
       {"w", "w@GRAD"});
  p.op("sgd", {"w", "w@GRAD"}, {"w"}, role_optimize, {"w", "w@GRAD"});
  return p;
}

} // namespace

TEST_CASE("samples are counted first and losses gathered before gradients") {
  const auto g = build(linear_with_sgd(), spread_over(2));
  const auto count = find_op(g, "count_samples");
  const auto losses = find_op(g, "gather_losses");
  const auto gradients = find_op(g, "all_reduce");
  CHECK(g.op(count).collective_index == 0);
  CHECK(g.op(losses).collective_index == 1);
  CHECK(g.op(gradients).collective_index == 2);
  CHECK(g.op(losses).inputs.size() == 2);
  CHECK(find_op(build(linear_with_sgd(), on_cpus(2)), "count_samples")
        == no_handle);
}

TEST_CASE("the loss scale and ops that draw numbers wait for the count") {
  const auto g = add_transfers(build(with_dropout(), spread_over(2)), {0, 1});
  for (std::size_t device : {0, 1}) {
    CHECK(waits_for_count(g, "scale_loss_grad", device));
    CHECK(waits_for_count(g, "dropout", device));
    CHECK_FALSE(waits_for_count(g, "mul", device));
    CHECK_FALSE(waits_for_count(g, "mul_grad", device));
    CHECK_FALSE(waits_for_count(g, "sgd", device));
  }
  CHECK_FALSE(has_edge(g, find_op(g, "count_samples", 0),
                       find_op(g, "dropout", 1), edge_kind::order, 0));
}

TEST_CASE("a forward op of unknown type waits for the count") {
  small_program p;
  p.temporary("x").op("my_noise", {"x"}, {"loss"});
  const auto g = build(p, spread_over(2));
  CHECK(has_edge(g, find_op(g, "count_samples"), find_op(g, "my_noise", 1),
                 edge_kind::order, 0));
}

TEST_CASE("a program without a loss only counts samples") {
  small_program p;
  p.temporary("x").op("relu", {"x"}, {"y"});
  auto options = on_cpus(2, merge_strategy::all_reduce, {"y"});
  options.spread_batch = true;
  const auto g = build(p, options);
  CHECK(find_op(g, "count_samples") != no_handle);
  CHECK(find_op(g, "gather_losses") == no_handle);
}

TEST_CASE("such graphs are proven free of hazards") {
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                        merge_strategy::replicate, merge_strategy::none}) {
    auto options = spread_over(3);
    options.strategy = strategy;
    const auto g = add_transfers(build(with_dropout(), options), {0, 1, 2});
    for (std::uint32_t k : {1, 2, 3})
      CHECK(find_hazards(g, k).empty());
    CHECK(brute_force_ordered(g, 2));
  }
}

} // TEST_SUITE("graph.ssa.batch_users")
