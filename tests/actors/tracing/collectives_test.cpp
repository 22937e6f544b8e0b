// SPDX-License-Identifier: Apache-2.0

// A run says which ranks have arrived at each collective that is under way.

#include <troupe/actors/executor.hpp>
#include <troupe/base/clock.hpp>

#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.collectives") {

namespace {

using waits = std::vector<actors::collective_wait>;

/// The first collective of the graph that runs on a device.
handle_id first_collective_on(const graph::ssa_graph& g, std::uint32_t device) {
  const graph::op_handle* first = nullptr;
  for (auto& op : g.ops)
    if (op.collective_index >= 0 && op.device == device
        && (!first || op.collective_index < first->collective_index))
      first = &op;
  return first ? first->id : no_handle;
}

/// Asks until a rank is missing.
waits ask_until_one_is_missing(const executor& exe) {
  for (;;) {
    auto found = exe.collectives();
    if (!found.empty() && !found.front().call.missing.empty())
      return found;
    std::this_thread::yield();
  }
}

std::string text_of(const graph::ssa_graph& g, const waits& all) {
  std::string text;
  for (auto& w : all) {
    text += graph::handle_name(g, w.handle) + " step " + std::to_string(w.step)
            + ", here";
    for (auto rank : w.call.arrived)
      text += " " + std::to_string(rank);
    text += ", missing";
    for (auto rank : w.call.missing)
      text += " " + std::to_string(rank);
    text += "\n";
  }
  return text;
}

} // namespace

TEST_CASE("a rank that is held back is missing in the collectives of its step, "
          "seen by the other process") {
  const auto net = make_mlp();
  process_group run{
    2, [&](node_options node) -> std::string {
      auto options = options_over(2, graph::merge_strategy::all_reduce);
      options.parameters = net.parameters();
      options.nodes = node;
      executor exe{net.main, options};
      const auto feeds = exe.own_share(net.batch(0, 6));
      exe.run(feeds);
      if (node.process == 1) {
        while (exe.take_notes().empty()) // held back
          std::this_thread::yield();
        exe.run(feeds);
        return text_of(exe.graph(), exe.collectives());
      }
      const auto before = now_ns();
      const auto step = exe.submit(feeds);
      const auto found = ask_until_one_is_missing(exe);
      exe.send_note(1, "go on");
      exe.wait(step);
      for (auto& w : found) {
        const auto& op = exe.graph().op(w.handle);
        if (op.device != 0 || op.collective_index < 0)
          return "not a collective of this process";
        if (w.call.since_ns < before || w.call.since_ns > now_ns())
          return "waits since another time";
        if (w.step != 1 || w.call.arrived != std::vector<std::size_t>{0}
            || w.call.missing != std::vector<std::size_t>{1})
          return text_of(exe.graph(), found);
      }
      if (found.front().handle != first_collective_on(exe.graph(), 0))
        return "not in order";
      return exe.collectives().empty() ? "as expected" : "not over";
    }};
  CHECK(run.wait(0).last_word == "as expected");
  CHECK(run.wait(1).last_word == "");
}

TEST_CASE("devices of one process are ranks, too, if each has its own handle") {
  const auto net = make_mlp();
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.parameters = net.parameters();
  options.lowering.merge_in_updates = options.lowering.share_parameters = false;
  options.hooks.rank_collectives = true;
  handle_id held = no_handle, sender = no_handle;
  {
    const executor whole{net.main, options};
    held = first_collective_on(whole.graph(), 1);
    for (auto& e : whole.graph().edges)
      if (e.to == held && e.distance == 0)
        sender = e.from;
  }
  REQUIRE(sender != no_handle);
  options.hooks.shuffle =
    delivery_shuffle{.seed = {}, .withheld = message_id{sender, held, 0}};
  executor exe{net.main, options};
  const auto step = exe.submit(net.batch(0, 6));
  const auto found = ask_until_one_is_missing(exe);
  let_go(exe);
  exe.wait(step);
  CHECK(found.front().handle == first_collective_on(exe.graph(), 0));
  CHECK(found.front().call.arrived == std::vector<std::size_t>{0});
  CHECK(found.front().call.missing == std::vector<std::size_t>{1});
  CHECK(found.front().step == 0);
  CHECK(exe.collectives().empty());
}

TEST_CASE("collectives of one op for all devices have no ranks that wait") {
  const auto net = make_mlp();
  executor exe{
    net.main,
    {.devices = parse_devices("cpu:2"), .parameters = net.parameters()}};
  exe.run(net.batch(0, 6));
  CHECK(exe.collectives().empty());
}

} // TEST_SUITE("actors.collectives")
