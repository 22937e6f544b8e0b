// SPDX-License-Identifier: Apache-2.0
// The graph of a program against the one that Paddle's ParallelExecutor dumped
// for it. docs/paddle.md explains every difference that is held here.

#include <support/files.hpp>
#include <troupe/graph/paddle/program_file.hpp>
#include <troupe/graph/ssa_builder.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <string>

using namespace troupe;
using namespace troupe::graph;

TEST_SUITE("paddle.program_graphs") {

namespace {

using json = nlohmann::json;
using type_counts = std::map<std::string, std::size_t>;

constexpr std::size_t num_devices = 2;

const std::string folder = TROUPE_TEST_DATA "/paddle_programs/";

const json& dumped_graphs() {
  static const json graphs =
    json::parse(test::read_bytes(folder + "graphs.json"));
  return graphs;
}

ssa_graph build(const std::string& name, merge_strategy strategy) {
  const program main = read_program(folder + name + "/main.pdmodel");
  build_options options;
  options.devices = {{device_kind::cpu, 0}, {device_kind::cpu, 1}};
  options.strategy = strategy;
  options.lowering.share_parameters =
    true; // as Paddle's CPU places do under reduce
  options.fetches = {find_loss(main)};
  return build_ssa_graph(main, options);
}

type_counts count_types(const ssa_graph& g) {
  type_counts counts;
  for (const op_handle& op : g.ops)
    ++counts[op.desc->type];
  return counts;
}

/// Removes a type and returns how many there were.
std::size_t take(type_counts& counts, const std::string& type) {
  const auto node = counts.extract(type);
  return node.empty() ? 0 : node.mapped();
}

/// Gradients that collectives of `kind` merge, each as often as it is merged.
std::multiset<std::string> merged_by(const ssa_graph& g, op_kind kind) {
  std::multiset<std::string> names;
  for (const op_handle& op : g.ops)
    if (op.kind == kind)
      for (handle_id input : op.inputs)
        if (g.var(input).device == 0)
          names.emplace(g.var(input).name);
  return names;
}

/// What both graphs hold, compared; what only one of them holds, taken out.
struct graph_pair {
  graph_pair(const std::string& name, merge_strategy strategy)
    : graph(build(name, strategy)), ours(count_types(graph)),
      paddles(dumped_graphs().at(name).at(to_string(strategy)).at("ops")) {
    const std::multiset<std::string> merged =
      dumped_graphs().at(name).at(to_string(strategy)).at("merged");
    CHECK(merged_by(graph, strategy == merge_strategy::reduce
                             ? op_kind::reduce
                             : op_kind::all_reduce)
          == merged);
    CHECK(take(ours, "scale_loss_grad") == take(paddles, "ScaleLossGrad"));
    CHECK(take(ours, "fetch") == num_devices);
  }

  ssa_graph graph;
  type_counts ours;
  type_counts paddles;
};

/// `dense` gradients per layer and `sparse` ones: how Paddle merges them;
/// `collectives`: how many Troupe does it with.
void check_all_reduce(const std::string& name, std::size_t dense,
                      std::size_t sparse, std::size_t collectives) {
  CAPTURE(name);
  graph_pair graphs{name, merge_strategy::all_reduce};
  CHECK(take(graphs.paddles, "fused_all_reduce") == dense);
  CHECK(take(graphs.paddles, "reduce") == sparse);
  CHECK(take(graphs.paddles, "broadcast") == sparse);
  CHECK(take(graphs.ours, "all_reduce") == collectives);
  CHECK(graphs.ours == graphs.paddles);
}

void check_reduce(const std::string& name) {
  CAPTURE(name);
  const graph_pair graphs{name, merge_strategy::reduce};
  CHECK(graphs.ours == graphs.paddles);
}

} // namespace

TEST_CASE("all_reduce: as Paddle's but for the collectives") {
  check_all_reduce("gpt_small", 20, 0, 1);
  check_all_reduce("lenet", 4, 0, 1);
  check_all_reduce("mlp", 3, 0, 1);
  check_all_reduce("resnet8_bn", 41, 0, 1);
  check_all_reduce("resnet8_plain", 21, 0, 1);
  check_all_reduce("widedeep_small", 5, 2, 3);
  check_all_reduce("word2vec_dense_adam", 3, 0, 1);
  check_all_reduce("word2vec_sparse", 2, 1, 2);
  check_all_reduce("word2vec_sparse_adam_lazy", 2, 1, 2);
}

TEST_CASE("reduce: as Paddle's") {
  for (const auto& [name, graphs] : dumped_graphs().items())
    check_reduce(name);
}
} // TEST_SUITE("paddle.program_graphs")
