// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/wiring/wiring_plan.hpp>

#include <troupe/graph/layers.hpp>
#include <troupe/graph/models.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/graph/passes/delayed_inputs.hpp>
#include <troupe/graph/passes/transfers.hpp>
#include <troupe/graph/ssa_builder.hpp>
#include <troupe/kernels/sim/sim_device.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::graph;

TEST_SUITE("graph.wiring_plan") {

namespace {

/// x * w, learned with sgd.
graph::program linear() {
  graph::network net;
  const auto x = net.data("x", {-1, 2});
  const auto y = net.data("y", {-1, 1});
  const auto guess = layers::fc(x, 1, {.with_bias = false});
  const auto cost = layers::mean(layers::square(layers::sub(guess, y)));
  optimizer::sgd({.learning_rate = 0.1f}).minimize(cost);
  return net.main;
}

graph::ssa_graph
over(const graph::program& p, const std::string& devices,
     graph::merge_strategy strategy = graph::merge_strategy::all_reduce,
     bool share_parameters = false) {
  graph::build_options options;
  options.devices = parse_devices(devices);
  options.strategy = strategy;
  options.lowering.share_parameters = share_parameters;
  return graph::build_ssa_graph(p, options);
}

wiring_plan plan_of(const graph::ssa_graph& g, std::size_t workers = 1,
                    bool overlap = true) {
  return {g, {.streams = plan_streams(g, workers), .steps_overlap = overlap}};
}

/// A stream of a device that completes late and cannot wait for others.
class lone_stream final : public stream {
public:
  const std::string& name() const noexcept override { return name_; }
  int width() const noexcept override { return 1; }
  launch_result launch(work&, const launch_options&) override { return {}; }
  void wait(stream&, ticket) noexcept override {}
  bool finished(ticket) const noexcept override { return true; }
  void synchronize(ticket) override {}

private:
  std::string name_ = "compute";
};

/// `linear` on one device. Its update reads the gradient of some steps before.
struct delayed_update {
  explicit delayed_update(std::uint32_t distance) : g(over(linear(), "cpu")) {
    const auto update = std::ranges::find_if(
      g.ops, [](auto& o) { return o.desc->type == "sgd"; });
    REQUIRE(update != g.ops.end());
    std::uint32_t i = 0;
    while (g.var(update->inputs[i]).persistable)
      ++i;
    op = update->id;
    gradient = update->inputs[i];
    const std::vector<graph::delayed_input> inputs{{op, i, distance}};
    g = graph::delay_inputs(std::move(g), inputs);
  }

  graph::ssa_graph g;
  handle_id op;
  handle_id gradient;
};

} // namespace

TEST_CASE("on one device ops notify variables and variables notify ops") {
  const auto g = over(linear(), "cpu");
  const auto expected =
    R"(mul#0@cpu:0: (mul#0@cpu:0 -1), x:v0@cpu:0, fc_0.w_0:v0@cpu:0
elementwise_sub#1@cpu:0: (elementwise_sub#1@cpu:0 -1), fc_0.tmp_0:v1@cpu:0, y:v0@cpu:0
square#2@cpu:0: (square#2@cpu:0 -1), elementwise_sub_0.tmp_0:v1@cpu:0
mean#3@cpu:0: mean#3@cpu:0 -1, square_0.tmp_0:v1@cpu:0
scale_loss_grad#4@cpu:0: scale_loss_grad#4@cpu:0 -1, start
mean_grad#5@cpu:0: (mean_grad#5@cpu:0 -1), square_0.tmp_0:v1@cpu:0, mean_0.tmp_0@GRAD:v1@cpu:0
square_grad#6@cpu:0: (square_grad#6@cpu:0 -1), (elementwise_sub_0.tmp_0:v1@cpu:0), square_0.tmp_0@GRAD:v1@cpu:0
elementwise_sub_grad#7@cpu:0: (elementwise_sub_grad#7@cpu:0 -1), (fc_0.tmp_0:v1@cpu:0), (y:v0@cpu:0), elementwise_sub_0.tmp_0@GRAD:v1@cpu:0
mul_grad#8@cpu:0: (mul_grad#8@cpu:0 -1), (x:v0@cpu:0), (fc_0.w_0:v0@cpu:0), fc_0.tmp_0@GRAD:v1@cpu:0
sgd#9@cpu:0: (mul#0@cpu:0), (sgd#9@cpu:0 -1), (fc_0.w_0:v0@cpu:0), fc_0.w_0@GRAD:v1@cpu:0, learning_rate_0:v0@cpu:0
x:v0@cpu:0: start
fc_0.w_0:v0@cpu:0: fc_0.w_0:v1@cpu:0 -1
fc_0.tmp_0:v1@cpu:0: mul#0@cpu:0
y:v0@cpu:0: start
elementwise_sub_0.tmp_0:v1@cpu:0: elementwise_sub#1@cpu:0
square_0.tmp_0:v1@cpu:0: square#2@cpu:0
mean_0.tmp_0:v1@cpu:0: mean#3@cpu:0; ends the step
mean_0.tmp_0@GRAD:v1@cpu:0: scale_loss_grad#4@cpu:0
square_0.tmp_0@GRAD:v1@cpu:0: mean_grad#5@cpu:0
elementwise_sub_0.tmp_0@GRAD:v1@cpu:0: square_grad#6@cpu:0
fc_0.tmp_0@GRAD:v1@cpu:0: elementwise_sub_grad#7@cpu:0
fc_0.w_0@GRAD:v1@cpu:0: mul_grad#8@cpu:0
learning_rate_0:v0@cpu:0: start
fc_0.w_0:v1@cpu:0: sgd#9@cpu:0; ends the step
30 messages per step
)";
  CHECK(to_text(plan_of(g), g) == expected);
}

TEST_CASE("the expected order is a topological order of all ops") {
  for (auto* devices : {"cpu", "cpu:2"}) {
    const auto g = over(linear(), devices);
    const auto plan = plan_of(g);
    const auto order = plan.expected_order();
    REQUIRE(order.size() == g.ops.size());
    std::vector<std::size_t> position(g.size(), g.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      position[order[i]] = i;
    for (auto& o : g.ops)
      for (auto input : o.inputs)
        if (const auto maker = g.var(input).generator; maker != no_handle)
          CHECK(position[maker] < position[o.id]);
  }
}

TEST_CASE("steps that do not overlap need no messages between them") {
  const auto g = over(linear(), "cpu");
  const auto plan = plan_of(g, 1, false);
  for (auto& e : plan.edges())
    CHECK(e.distance == 0);
  CHECK(plan.messages_per_step() < plan_of(g).messages_per_step());
}

TEST_CASE("every handle receives a message in every step") {
  for (const auto* devices : {"cpu", "cpu:2", "cpu:3"})
    for (auto strategy :
         {graph::merge_strategy::all_reduce, graph::merge_strategy::reduce}) {
      const auto g = over(graph::build_model("lenet").main, devices, strategy);
      for (bool overlap : {true, false}) {
        const auto plan = plan_of(g, 2, overlap);
        std::vector<std::size_t> told(g.size());
        for (auto& e : plan.edges())
          told[e.to] += e.sent;
        CHECK(std::ranges::count(told, 0u) == 0);
        std::size_t sent = 0;
        for (auto count : told)
          sent += count;
        CHECK(plan.messages_per_step() == sent);
      }
    }
}

TEST_CASE("exactly the temporaries are released, each in its own step") {
  const auto g = over(graph::build_model("lenet").main, "cpu:2");
  const auto plan = plan_of(g);
  std::set<std::uint32_t> released;
  for (auto& r : plan.releases()) {
    CHECK(r.distance == 0);
    released.insert(r.storage);
  }
  std::set<std::uint32_t> temporaries;
  for (auto& v : g.vars)
    if (!v.persistable)
      temporaries.insert(v.storage);
  CHECK(released == temporaries);
}

TEST_CASE("every op runs on a stream of its own kind and device") {
  const auto g = over(linear(), "cpu:2");
  const auto plan = plan_of(g);
  for (auto& o : g.ops) {
    const auto& on = plan.streams()[plan.stream_of(o.id)];
    CHECK(on.kind == o.stream);
    CHECK(on.device == o.device);
  }
}

TEST_CASE("a device with several workers has a wide compute stream") {
  const auto g = over(linear(), "cpu");
  CHECK(plan_streams(g, 2).front().width == 2);
  CHECK(plan_streams(g, 1).front().is_serial());
  const auto two = over(linear(), "cpu:2");
  CHECK(plan_streams(two, 2).front().is_serial());
}

TEST_CASE("streams that can wait for each other share a ticket group") {
  const auto cpu = make_cpu_device(0);
  const auto sim = make_sim_device({device_kind::sim, 0});
  const auto host = cpu->make_stream({"compute"});
  const lone_stream lone, other;
  const auto first = sim->make_stream({"compute"}),
             second = sim->make_stream({"fetch"});
  const stream* streams[] = {host.get(),   &lone,  first.get(),
                             second.get(), &other, host.get()};
  std::vector<planned_stream> planned(std::size(streams));
  set_ticket_groups(planned, streams);
  constexpr auto none = planned_stream::host;
  const std::int32_t groups[] = {none, 1, 2, 2, 4, none};
  for (std::size_t i = 0; i < planned.size(); ++i) {
    CAPTURE(i);
    CHECK(planned[i].ticket_group == groups[i]);
  }
}

TEST_CASE("a ticket launch notifies the host on completion, others at launch") {
  const auto g = over(linear(), "cpu:2");
  auto streams = plan_streams(g, 1);
  for (std::size_t i = 0; i < streams.size(); ++i)
    if (streams[i].device == 0 && streams[i].kind != graph::stream_kind::fetch)
      streams[i].ticket_group = 0;
  const wiring_plan plan{g, {.streams = streams}};
  std::size_t at_launch = 0;
  std::size_t on_completion = 0;
  for (auto& e : plan.edges()) {
    if (!e.sent || e.from == no_handle || g.is_op(e.from) || !g.is_op(e.to))
      continue;
    const auto maker = plan.teller_of(e.from).op;
    if (maker == no_handle || plan.end_of(maker) == op_end::at_return) {
      CHECK_FALSE(e.at_completion);
      continue;
    }
    const auto& reader = plan.streams()[plan.stream_of(e.to)];
    CHECK(e.at_completion == (reader.ticket_group == planned_stream::host));
    ++(e.at_completion ? on_completion : at_launch);
  }
  CHECK(at_launch > 0);
  CHECK(on_completion > 0);
}

TEST_CASE("ops that end later, transfers and ranks notify on completion") {
  // Devices share the learning rate, so one place sends it to the other.
  const auto g = graph::add_transfers(
    over(linear(), "cpu:2", graph::merge_strategy::all_reduce, true), {0, 1});
  const auto is_chosen = [](const graph::op_handle& o) {
    return o.kind == graph::op_kind::computation && o.desc->type == "square";
  };
  const wiring_plan plan{
    g, {.streams = plan_streams(g, 1), .ends_later = is_chosen}};
  std::size_t chosen = 0;
  std::size_t transfers = 0;
  std::size_t ranks = 0;
  for (auto& o : g.ops) {
    const auto transfers_value =
      o.kind == graph::op_kind::send || o.kind == graph::op_kind::recv;
    const auto is_rank = o.collective_index >= 0;
    chosen += is_chosen(o);
    transfers += transfers_value;
    ranks += is_rank;
    CHECK((plan.end_of(o.id) == op_end::later)
          == (is_chosen(o) || transfers_value || is_rank));
    for (auto& e : plan.told_by(o.id))
      CHECK(e.at_completion
            == (plan.end_of(o.id) == op_end::later && !e.is_turn));
  }
  CHECK(chosen == 2);
  CHECK(transfers > 0);
  CHECK(ranks == 2);
}

TEST_CASE("a rank's next merge is told at launch if its values are its own") {
  const auto model = build_model("mlp");
  auto g = graph::add_transfers(over(model.main, "cpu:2"), {0, 1});
  const auto turns = [](const graph::ssa_graph& of) {
    const wiring_plan plan{of, {.streams = plan_streams(of, 1)}};
    std::size_t count = 0;
    for (auto& e : plan.edges())
      if (e.is_turn) {
        ++count;
        CHECK_FALSE(e.at_completion);
        CHECK(of.op(e.from).kind == graph::op_kind::all_reduce);
        CHECK(of.op(e.from).device == of.op(e.to).device);
        CHECK(of.op(e.from).collective_index != of.op(e.to).collective_index);
      }
    return count;
  };
  const auto merges = static_cast<std::size_t>(std::ranges::count(
    g.ops, graph::op_kind::all_reduce, &graph::op_handle::kind));
  REQUIRE(merges > 2);
  CHECK(turns(g) == merges); // the last one tells the first of the next step
  // The second collective of a device now also uses the values of the first.
  auto first = std::ranges::find(g.ops, graph::op_kind::all_reduce,
                                 &graph::op_handle::kind);
  auto second = std::ranges::find_if(first + 1, g.ops.end(), [&](auto& o) {
    return o.kind == first->kind && o.device == first->device;
  });
  REQUIRE(second != g.ops.end());
  second->inputs = first->inputs;
  CHECK(turns(g) == merges - 2);
}

TEST_CASE("gradients are ready in the order in which they are merged") {
  const auto g = over(build_model("lenet").main, "cpu:2");
  const auto order = plan_of(g).expected_order();
  std::vector<std::size_t> position(g.ops.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    position[order[i]] = i;
  std::vector<const graph::op_handle*> merges;
  for (auto& o : g.ops)
    if (o.kind == graph::op_kind::all_reduce)
      merges.push_back(&o);
  std::ranges::sort(merges, {}, &graph::op_handle::collective_index);
  std::vector<std::size_t> last_of(2); // maker, by device
  for (auto* merge : merges) {
    std::vector<std::size_t> latest(2);
    for (auto id : merge->inputs) {
      const auto& made = g.var(id);
      CHECK(position[made.generator] > last_of[made.device]);
      latest[made.device] =
        std::max(latest[made.device], position[made.generator]);
    }
    last_of = latest;
  }
}

TEST_CASE("delayed inputs have their distance in edges and releases") {
  const delayed_update d{2};
  const auto plan = plan_of(d.g);
  CHECK(std::ranges::any_of(plan.edges(), [&](const wired_edge& e) {
    return e.from == d.gradient && e.to == d.op && e.distance == 2;
  }));
  CHECK(std::ranges::any_of(plan.releases(), [&](const planned_release& r) {
    return r.op == d.op && r.distance == 2;
  }));
  CHECK_FALSE(plan.ends_step(d.op));
}

TEST_CASE("a step ends after the ticket launch that releases a delayed input") {
  const delayed_update d{1};
  auto streams = plan_streams(d.g, 1);
  for (auto& s : streams)
    s.ticket_group = 0;
  const wiring_plan plan{d.g, {.streams = streams}};
  CHECK(plan.ends_step(d.op));
}

} // TEST_SUITE("graph.wiring_plan")
