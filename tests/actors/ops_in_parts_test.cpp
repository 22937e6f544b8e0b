// SPDX-License-Identifier: Apache-2.0
//
// Ops in an executor whose kernels divide their work into parts. No test
// measures time: a part that waits for another one ends only if a worker helps.
#include <troupe/actors/executor.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/event_reader.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/network.hpp>
#include <troupe/graph/optimizer.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.ops_in_parts") {

namespace {

using body = std::function<void(kernel_context&)>;

class body_kernel final : public kernel {
public:
  explicit body_kernel(body run) : run_(std::move(run)) {}
  void run(kernel_context& ctx) override { run_(ctx); }

private:
  body run_;
};

/// Independent ops, each of which runs the test's body.
graph::program ops_of_body(std::size_t count) {
  graph::program p;
  for (std::size_t n = 0; n < count; ++n) {
    graph::var_desc output;
    output.name = "v" + std::to_string(n);
    p.main().add_var(std::move(output));
    graph::op_desc op;
    op.type = "body";
    op.set_output("Out", {"v" + std::to_string(n)});
    p.main().ops.push_back(std::move(op));
  }
  return p;
}

executor_options options_for(body run, const std::string& devices,
                             int threads) {
  auto kernels = std::make_shared<kernel_table>();
  kernels->add("body", device_kind::cpu,
               [run = std::move(run)](const attribute_map&) {
                 return std::make_unique<body_kernel>(run);
               });
  executor_options o;
  o.devices = parse_devices(devices);
  o.kernels = std::move(kernels);
  o.threads = threads;
  return o;
}

/// Runs two parts that wait for each other. Fails if that takes too long.
void meet(const kernel_context& ctx) {
  constexpr std::chrono::seconds patience{30};
  const auto until = std::chrono::steady_clock::now() + patience;
  std::atomic<int> inside{0};
  ctx.in_parts(2, [&](std::size_t) {
    ++inside;
    while (inside < 2) {
      if (std::chrono::steady_clock::now() > until)
        throw error(errc::kernel_failure, "nobody came to help");
      std::this_thread::yield();
    }
  });
}

std::vector<trace_event> of_kind(const std::vector<trace_event>& events,
                                 event_kind kind) {
  std::vector<trace_event> found;
  std::ranges::copy_if(events, std::back_inserter(found),
                       [kind](auto& e) { return e.kind == kind; });
  return found;
}

/// The CPU kernels, but updates run `seen` first, also those that merge
/// gradients.
std::shared_ptr<const kernel_table> with_seen_updates(const body& seen) {
  auto kernels = std::make_shared<kernel_table>(cpu_kernels());
  for (const std::string type : {"sgd", "merging_sgd", "gathered_sgd"})
    kernels->add(
      type, device_kind::cpu, [type, seen](const attribute_map& attributes) {
        std::shared_ptr<kernel> update =
          cpu_kernels().make(type, device_kind::cpu, attributes);
        return std::make_unique<body_kernel>([=](kernel_context& ctx) {
          seen(ctx);
          update->run(ctx);
        });
      });
  return kernels;
}

/// Runs one step of a net with one parameter on two CPU devices.
void update_once(graph::merge_strategy strategy, const body& seen) {
  graph::network net;
  auto x = net.data("x", {-1, 4});
  auto loss = layers::mean(layers::fc(x, 1, {.with_bias = false}));
  optimizer::sgd({.learning_rate = 0.1f}).minimize(loss);
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.strategy = strategy;
  options.threads = 2;
  options.kernels = with_seen_updates(seen);
  options.parameters = std::make_shared<scope>();
  run_startup(net.startup, *options.parameters, 1);
  executor exe{net.main, options};
  arena memory{make_host_memory_source()};
  auto batch = tensor::make(memory, {8, 4}, dtype::float32);
  std::ranges::fill(batch.values<float>(), 1.0f);
  exe.run({{"x", batch}});
}

bool has_two_cores() {
  return usable_cores() >= 2;
}

} // namespace

TEST_CASE("a kernel knows how many workers its device has") {
  if (!has_two_cores())
    return skip_case("needs two cores");
  const auto workers_of = [](const std::string& devices, int threads) {
    std::atomic<std::size_t> seen{0};
    executor exe{
      ops_of_body(1),
      options_for([&](auto& ctx) { seen = ctx.workers(); }, devices, threads)};
    exe.run({});
    return seen.load();
  };
  CHECK(workers_of("cpu:1", 1) == 1);
  CHECK(workers_of("cpu:1", 2) == 2);
  CHECK(workers_of("cpu:2", 2) == 1); // one worker per device
}

TEST_CASE("an idle worker helps with another worker's op") {
  if (!has_two_cores())
    return skip_case("needs two cores");
  for (auto form : {edge_form::counter, edge_form::message}) {
    auto options = options_for([](auto& ctx) { meet(ctx); }, "cpu:1", 2);
    options.hooks.form = form;
    executor exe{ops_of_body(1), options};
    for (int step = 0; step < 20; ++step)
      exe.run({});
  }
}

TEST_CASE("the trace records which op is helped in which step") {
  if (!has_two_cores())
    return skip_case("needs two cores");
  auto options = options_for([](auto& ctx) { meet(ctx); }, "cpu:1", 2);
  options.hooks.trace = trace_level::ops;
  executor exe{ops_of_body(1), options};
  const auto op = exe.graph().ops.front().id;
  for (int step = 0; step < 3; ++step)
    exe.run({});
  const auto events =
    event_reader(exe.trace(), event_reader::start::oldest).take();
  const auto began = of_kind(events, event_kind::help_begin);
  const auto ended = of_kind(events, event_kind::help_end);
  REQUIRE(began.size() == 3);
  REQUIRE(ended.size() == 3);
  for (std::size_t s = 0; s < 3; ++s) {
    CHECK(began[s].from == op);
    CHECK(began[s].step == s);
    CHECK(ended[s].step == s);
    CHECK(began[s].time <= ended[s].time);
  }
}

TEST_CASE("all parts of concurrent ops run") {
  std::atomic<int> parts{0};
  executor exe{
    ops_of_body(6),
    options_for(
      [&](auto& ctx) { ctx.in_parts(5, [&](std::size_t) { ++parts; }); },
      "cpu:1", 0)};
  for (int step = 0; step < 200; ++step)
    exe.run({});
  CHECK(parts == 200 * 6 * 5);
}

TEST_CASE("an exception of a part fails its step but not the next one") {
  std::atomic<bool> bad{true};
  executor exe{ops_of_body(1), options_for(
                                 [&](auto& ctx) {
                                   ctx.in_parts(4, [&](std::size_t i) {
                                     if (bad && i == 2)
                                       throw error(errc::kernel_failure,
                                                   "part 2");
                                   });
                                 },
                                 "cpu:1", 0)};
  const auto e = caught([&] { exe.run({}); });
  CHECK(e.code() == errc::kernel_failure);
  CHECK(std::string{e.what()}.find("part 2") != std::string::npos);
  CHECK(e.where().op_type == "body");
  bad = false;
  exe.run({});
}

TEST_CASE("under reduce the workers of all devices share an update") {
  if (!has_two_cores())
    return skip_case("needs two cores");
  for (int run = 0; run < 10; ++run) {
    std::atomic<int> updates{0};
    update_once(graph::merge_strategy::reduce, [&](auto& ctx) {
      ++updates;
      CHECK(ctx.workers() == 2);
      meet(ctx);
    });
    CHECK(updates == 1);
  }
}

TEST_CASE("under all_reduce each device runs its update on one worker") {
  if (!has_two_cores())
    return skip_case("needs two cores");
  std::atomic<int> updates{0};
  update_once(graph::merge_strategy::all_reduce, [&](auto& ctx) {
    ++updates;
    CHECK(ctx.workers() == 1);
  });
  CHECK(updates == 2);
}

TEST_CASE("runs with the same number of workers are bit-identical") {
  if (!has_two_cores())
    return skip_case("needs two cores");
  constexpr std::int64_t worth_a_cut = 8192; // samples
  const auto net = make_mlp();
  const auto run = [&](edge_form form) {
    executor_options options;
    options.devices = parse_devices("cpu:1");
    options.threads = 2;
    options.hooks.form = form;
    return train(net, options, std::vector<std::int64_t>(3, worth_a_cut));
  };
  const auto first = run(edge_form::counter);
  for (auto form : {edge_form::counter, edge_form::message, edge_form::mixed}) {
    const auto again = run(form);
    CHECK(again.losses == first.losses);
    CHECK(bit_equal(*again.parameters, *first.parameters));
  }
}

} // TEST_SUITE("actors.ops_in_parts")
