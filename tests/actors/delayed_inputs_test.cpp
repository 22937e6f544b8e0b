// SPDX-License-Identifier: Apache-2.0
//
// Compares programs whose ops read values of earlier steps with a plain
// interpreter.
#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>

#include "late_device.hpp"

#include <troupe/base/random.hpp>
#include <troupe/graph/graph_rewriter.hpp>
#include <troupe/graph/passes/delayed_inputs.hpp>
#include <troupe/graph/passes/transfers.hpp>
#include <troupe/kernels/device.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;

TEST_SUITE("actors.delayed_inputs") {

namespace {

constexpr std::uint64_t steps = 9;

/// What a node reads.
struct node_input {
  int from = -1; ///< a node, or the feed (-1)
  std::uint32_t distance = 0;
  bool of_next_device = false; ///< not of the reader's own device
};

struct node {
  std::array<node_input, 2> inputs;
};

/// The same nodes on each device.
struct random_graph {
  std::vector<node> nodes; ///< in program order
  /// Each node comes after those that it reads. In program order, a node can
  /// come before what it reads of an earlier step.
  std::vector<std::size_t> order;
};

std::string name_of(int n) {
  return n < 0 ? "x" : "v" + std::to_string(n);
}

random_graph draw_graph(std::uint64_t seed) {
  splitmix64 draw{seed};
  random_graph g;
  g.nodes.resize(4 + draw.below(6));
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    g.order.insert(g.order.begin()
                     + static_cast<std::ptrdiff_t>(
                       draw.below(4) == 0 ? draw.below(i + 1) : i),
                   i);
  for (std::size_t i = 0; i < g.order.size(); ++i) {
    const auto reader = g.order[i];
    for (auto& input : g.nodes[reader].inputs) {
      const auto read = draw.below(i + 1);
      if (read == 0) // feeds are read without delay, on their own device
        continue;
      input.from = static_cast<int>(g.order[read - 1]);
      input.distance = static_cast<std::uint32_t>(draw.below(4));
      input.of_next_device = draw.below(2) == 0;
      if (g.order[read - 1] > reader && input.distance == 0)
        input.distance = 1;
    }
  }
  return g;
}

/// The nodes read nothing but the feed. `with_inputs` changes that.
graph::program program_of(const random_graph& g) {
  graph::program p;
  const auto declare = [&](int n) {
    graph::var_desc v;
    v.name = name_of(n);
    v.dims = {-1, 1};
    v.need_check_feed = n < 0;
    p.main().add_var(std::move(v));
  };
  declare(-1);
  for (int n = 0; n < static_cast<int>(g.nodes.size()); ++n) {
    declare(n);
    graph::op_desc op;
    op.type = "join";
    op.set_input("X", {name_of(-1)});
    op.set_input("Y", {name_of(-1)});
    op.set_output("Out", {name_of(n)});
    p.main().ops.push_back(std::move(op));
  }
  return p;
}

graph::ssa_graph with_inputs(const graph::ssa_graph& g,
                             const std::vector<node>& nodes) {
  graph::graph_rewriter made{g};
  std::vector<graph::delayed_input> delayed;
  std::vector<std::size_t> next_node(g.devices.size());
  for (auto& o : g.ops) {
    std::vector<graph::graph_rewriter::var_index> inputs, outputs;
    for (auto v : o.inputs)
      inputs.push_back(made.index_of(v));
    for (auto v : o.outputs)
      outputs.push_back(made.index_of(v));
    if (o.desc->type == "join") {
      const auto& n = nodes[next_node[o.device]++];
      for (std::uint32_t i : {0u, 1u}) {
        const auto& in = n.inputs[i];
        const auto device =
          (o.device + (in.of_next_device ? 1 : 0)) % g.devices.size();
        inputs[i] = made.index_of(g.latest(name_of(in.from), device));
        if (in.distance > 0)
          delayed.push_back({o.id, i, in.distance});
      }
    }
    made.add_op(o, inputs, outputs);
  }
  return graph::delay_inputs(made.finish(), delayed);
}

float joined(float x, float y) {
  return x + 2 * y + 1;
}

float fed(std::uint64_t step, std::size_t device) {
  return static_cast<float>(step % 5 + 7 * device);
}

/// By node and device; empty if an input is from before the first step.
using node_values = std::vector<std::vector<std::optional<float>>>;

/// Values by step.
std::vector<node_values> interpret(const random_graph& g, std::size_t devices) {
  std::vector<node_values> all;
  for (std::uint64_t s = 0; s < steps; ++s) {
    all.emplace_back(g.nodes.size(),
                     std::vector<std::optional<float>>(devices));
    const auto read = [&](const node_input& in,
                          std::size_t reader) -> std::optional<float> {
      const auto device = (reader + (in.of_next_device ? 1 : 0)) % devices;
      if (in.from < 0)
        return fed(s, device);
      return s < in.distance ? std::nullopt
                             : all[s - in.distance]
                                  [static_cast<std::size_t>(in.from)][device];
    };
    for (auto n : g.order)
      for (std::size_t d = 0; d < devices; ++d) {
        const auto x = read(g.nodes[n].inputs[0], d);
        const auto y = read(g.nodes[n].inputs[1], d);
        if (x && y)
          all[s][n][d] = joined(*x, *y);
      }
  }
  return all;
}

void run_join(kernel_context& ctx) {
  const auto x = ctx.input("X");
  const auto y = ctx.input("Y");
  auto out = ctx.output("Out", x.dims(), x.type());
  out.data<float>()[0] = joined(x.data<float>()[0], y.data<float>()[0]);
}

/// One device or two, in one place or in two; the form of edges; ops that
/// complete after their launch; devices that complete late and out of order;
/// the order of messages. Each is drawn on its own, so that all meet.
executor_options draw_options(const random_graph& g, std::uint64_t seed) {
  splitmix64 draw{~seed};
  executor_options o;
  const auto devices = 1 + static_cast<int>(draw.below(2));
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.steps_in_flight = 1 + static_cast<std::uint32_t>(draw.below(4));
  o.hooks.form = std::array{edge_form::counter, edge_form::message,
                            edge_form::mixed}[draw.below(3)];
  if (draw.below(3) == 0)
    o.hooks.shuffle = delivery_shuffle{.seed = seed, .max_delay_us = 5};
  if (draw.below(4) == 0)
    o.hooks.pending_ops = draw.below(g.nodes.size() * o.devices.size()) + 1;
  if (draw.below(4) == 0)
    for (int d = 0; d < devices; ++d)
      o.hooks.device_instances.push_back(draw.below(3) == 0
                                           ? std::shared_ptr{make_cpu_device(d)}
                                           : make_late_device(d, draw(), 5));
  // The inputs are delayed first. A transfer then carries values that its
  // reader reads steps later.
  const auto is_split = draw.below(2) == 0;
  o.hooks.passes = {[nodes = g.nodes, is_split](graph::ssa_graph built) {
    auto made = with_inputs(built, nodes);
    if (is_split && made.devices.size() == 2)
      made = graph::add_transfers(std::move(made), {0, 1});
    return made;
  }};
  return o;
}

} // namespace

TEST_CASE("1,000 random programs with delayed inputs match an interpreter") {
  caf::actor_system_config config;
  const auto owned = make_actor_system(config, 2);
  auto& system = *owned;
  auto kernels = std::make_shared<kernel_table>();
  kernels->add("join", device_kind::cpu, &run_join);
  arena memory{make_host_memory_source()};
  int split = 0, late = 0, with_messages = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const auto g = draw_graph(seed);
    auto options = draw_options(g, seed);
    const auto devices = options.devices.size();
    const auto expected = interpret(g, devices);
    options.kernels = kernels;
    options.system = &system;
    for (int n = 0; n < static_cast<int>(g.nodes.size()); ++n)
      options.fetches.push_back(name_of(n));
    executor exe{program_of(g), options};
    split += exe.graph().transfers.empty() ? 0 : 1;
    late += options.hooks.device_instances.empty() ? 0 : 1;
    with_messages += exe.stats().message_edges > 0 ? 1 : 0;
    std::vector<step_id> ids;
    for (std::uint64_t s = 0; s < steps; ++s) {
      auto x = tensor::make(memory, {static_cast<std::int64_t>(devices), 1},
                            dtype::float32);
      for (std::size_t d = 0; d < devices; ++d)
        x.data<float>()[d] = fed(s, d);
      ids.push_back(exe.submit({{"x", x}}, options.fetches));
    }
    for (auto s : ids) {
      const auto result = exe.wait(s);
      for (std::size_t n = 0; n < g.nodes.size(); ++n)
        for (std::size_t d = 0; d < devices; ++d) {
          const auto& got = result.fetched.at(options.fetches[n])[d];
          REQUIRE(static_cast<bool>(got) == expected[s][n][d].has_value());
          if (got)
            REQUIRE(got.data<float>()[0] == *expected[s][n][d]);
        }
    }
  }
  CHECK(split > 200);
  CHECK(late > 200);
  CHECK(with_messages > 500);
}

} // TEST_SUITE("actors.delayed_inputs")
