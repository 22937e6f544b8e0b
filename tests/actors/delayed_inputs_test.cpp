// SPDX-License-Identifier: Apache-2.0
//
// Compares programs whose ops read values of earlier steps with a plain
// interpreter.
#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>

#include <troupe/base/random.hpp>
#include <troupe/graph/passes/delayed_inputs.hpp>

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

/// Node i reads up to two nodes before it, or the feed (number -1).
struct node {
  std::array<int, 2> from{-1, -1};
  std::array<std::uint32_t, 2> distance{0, 0};
};

std::string name_of(int n) {
  return n < 0 ? "x" : "v" + std::to_string(n);
}

std::vector<node> draw_nodes(std::uint64_t seed) {
  splitmix64 draw{seed};
  std::vector<node> nodes(4 + draw.below(6));
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t input : {0u, 1u}) {
      const auto from = static_cast<int>(draw.below(i + 1)) - 1;
      nodes[i].from[input] = from;
      if (from >= 0) // feeds are read without delay
        nodes[i].distance[input] = static_cast<std::uint32_t>(draw.below(4));
    }
  return nodes;
}

graph::program program_of(const std::vector<node>& nodes) {
  graph::program p;
  const auto declare = [&](int n) {
    graph::var_desc v;
    v.name = name_of(n);
    v.dims = {-1, 1};
    v.need_check_feed = n < 0;
    p.main().add_var(std::move(v));
  };
  declare(-1);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    declare(static_cast<int>(i));
    graph::op_desc op;
    op.type = "join";
    op.set_input("X", {name_of(nodes[i].from[0])});
    op.set_input("Y", {name_of(nodes[i].from[1])});
    op.set_output("Out", {name_of(static_cast<int>(i))});
    p.main().ops.push_back(std::move(op));
  }
  return p;
}

graph_pass delays_of(std::vector<node> nodes) {
  return [nodes = std::move(nodes)](graph::ssa_graph g) {
    std::vector<graph::delayed_input> delayed;
    for (auto& o : g.ops) {
      if (o.desc->type != "join")
        continue;
      const auto& n = nodes[o.id];
      for (std::uint32_t input : {0u, 1u})
        if (n.distance[input] > 0)
          delayed.push_back({o.id, input, n.distance[input]});
    }
    return graph::delay_inputs(std::move(g), delayed);
  };
}

float joined(float x, float y) {
  return x + 2 * y + 1;
}

float fed(std::uint64_t step) {
  return static_cast<float>(step % 5);
}

/// Values by step and node; empty if an input is from before the first step.
std::vector<std::vector<std::optional<float>>>
interpret(const std::vector<node>& nodes) {
  std::vector<std::vector<std::optional<float>>> all;
  for (std::uint64_t s = 0; s < steps; ++s) {
    auto& now = all.emplace_back(nodes.size());
    const auto read = [&](int from,
                          std::uint32_t distance) -> std::optional<float> {
      if (from < 0)
        return fed(s);
      return s < distance ? std::nullopt
                          : all[s - distance][static_cast<std::size_t>(from)];
    };
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto x = read(nodes[i].from[0], nodes[i].distance[0]);
      const auto y = read(nodes[i].from[1], nodes[i].distance[1]);
      if (x && y)
        now[i] = joined(*x, *y);
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

} // namespace

TEST_CASE("1,000 random programs with delayed inputs match an interpreter") {
  caf::actor_system_config config;
  configure(config, 2);
  caf::actor_system system{config};
  auto kernels = std::make_shared<kernel_table>();
  kernels->add("join", device_kind::cpu, &run_join);
  arena memory{make_host_memory_source()};
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const auto nodes = draw_nodes(seed);
    const auto expected = interpret(nodes);
    executor_options options;
    options.kernels = kernels;
    options.system = &system;
    options.steps_in_flight = 1 + seed % 4;
    options.hooks.passes = {delays_of(nodes)};
    if (seed % 3 == 0)
      options.hooks.shuffle = delivery_shuffle{.seed = seed, .max_delay_us = 5};
    for (std::size_t i = 0; i < nodes.size(); ++i)
      options.fetches.push_back(name_of(static_cast<int>(i)));
    executor exe{program_of(nodes), options};
    std::vector<step_id> ids;
    for (std::uint64_t s = 0; s < steps; ++s) {
      auto x = tensor::make(memory, {1, 1}, dtype::float32);
      x.data<float>()[0] = fed(s);
      ids.push_back(exe.submit({{"x", x}}, options.fetches));
    }
    for (auto s : ids) {
      const auto result = exe.wait(s);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto& got = result.fetched.at(options.fetches[i]).front();
        REQUIRE(static_cast<bool>(got) == expected[s][i].has_value());
        if (expected[s][i])
          REQUIRE(got.data<float>()[0] == *expected[s][i]);
      }
    }
  }
}

} // TEST_SUITE("actors.delayed_inputs")
