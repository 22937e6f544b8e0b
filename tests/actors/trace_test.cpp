// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>

#include <troupe/actors/workers/sharing_choice.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/event_reader.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/skip_case.hpp>

#include "configurations.hpp"
#include "late_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.trace") {

namespace {

std::size_t count(const std::vector<trace_event>& events, event_kind kind,
                  step_id step) {
  return static_cast<std::size_t>(
    std::ranges::count_if(events, [&](const trace_event& e) {
      return e.kind == kind && e.step == step;
    }));
}

executor_options options_for(const small_net& net, trace_level level) {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.parameters = net.parameters();
  o.hooks.trace = level;
  o.flight_recorder.level = trace_level::off;
  return o;
}

/// All events that the executor has recorded.
std::vector<trace_event> recorded(executor& exe) {
  return event_reader{exe.trace(), event_reader::start::oldest}.take();
}

/// Times of each op in one step.
struct op_times {
  std::vector<std::uint64_t> begins, ends;

  bool in_order() const {
    return begins.size() == 1 && ends.size() == 1 && begins[0] <= ends[0];
  }
};

std::map<handle_id, op_times>
ops_of_step(const std::vector<trace_event>& events, step_id step) {
  std::map<handle_id, op_times> ops;
  for (auto& e : events) {
    if (e.step != step)
      continue;
    if (e.kind == event_kind::run_begin)
      ops[e.from].begins.push_back(e.time);
    if (e.kind == event_kind::run_end)
      ops[e.from].ends.push_back(e.time);
  }
  return ops;
}

} // namespace

TEST_CASE("every message of a step is recorded once") {
  for (auto form : {edge_form::counter, edge_form::message, edge_form::mixed})
    for (auto& net : {make_lenet(), make_word2vec()}) {
      CAPTURE(net.name);
      auto options = options_for(net, trace_level::messages);
      options.hooks.form = form;
      options.steps_in_flight = 3;
      executor exe{net.main, options};
      std::vector<step_id> ids;
      for (std::uint64_t s = 0; s < 5; ++s)
        ids.push_back(exe.submit(net.batch(s, 6)));
      for (auto id : ids)
        exe.wait(id);
      const auto expected = exe.stats().messages_per_step;
      const auto events = recorded(exe);
      // Messages of the last step to the next one may still be in flight.
      for (step_id s = 0; s < 4; ++s)
        CHECK(count(events, event_kind::message, s) == expected);
    }
}

TEST_CASE("messages follow graph edges, and every handle receives one") {
  auto net = make_mlp();
  executor exe{net.main, options_for(net, trace_level::messages)};
  std::set<std::pair<handle_id, handle_id>> edges;
  for (auto& e : exe.graph().edges)
    edges.emplace(e.from, e.to);
  exe.run(net.batch(0, 4));
  std::set<handle_id> told;
  for (auto& e : recorded(exe)) {
    if (e.kind != event_kind::message)
      continue;
    if (e.step == 0)
      told.insert(e.to);
    if (e.from != no_handle && e.from != e.to)
      CHECK(edges.contains({e.from, e.to}));
  }
  CHECK(told.size() == exe.graph().size()); // every handle gets a message
}

TEST_CASE("each op begins and ends once per step, in this order") {
  for (bool late : {false, true}) {
    CAPTURE(late);
    auto net = make_lenet();
    auto options = options_for(net, trace_level::ops);
    if (late)
      options.hooks.device_instances = {make_late_device(0, 1, 20),
                                        make_late_device(1, 2, 20)};
    executor exe{net.main, options};
    for (std::uint64_t s = 0; s < 4; ++s)
      exe.run(net.batch(s, 5));
    const auto events = recorded(exe);
    for (step_id s = 0; s < 4; ++s) {
      const auto by_op = ops_of_step(events, s);
      CHECK(by_op.size() == exe.graph().ops.size());
      for (auto& [id, times] : by_op) {
        CAPTURE(id);
        CHECK(times.in_order());
      }
      CHECK(count(events, event_kind::message, s) == 0);
    }
  }
}

TEST_CASE("an op begins after the ops that produce its inputs have ended") {
  auto net = make_mlp();
  executor exe{net.main, options_for(net, trace_level::ops)};
  auto& g = exe.graph();
  exe.run(net.batch(0, 4));
  const auto by_op = ops_of_step(recorded(exe), 0);
  std::size_t compared = 0;
  for (auto& e : g.edges)
    if (e.distance == 0 && !g.is_op(e.from) && g.is_op(e.to)
        && g.var(e.from).generator != no_handle) {
      CHECK(by_op.at(g.var(e.from).generator).ends.at(0)
            <= by_op.at(e.to).begins.at(0));
      ++compared;
    }
  CHECK(compared > g.ops.size() / 2);
}

TEST_CASE("trace level steps records steps, feeds, fetches and failures") {
  auto net = make_mlp();
  auto options = options_for(net, trace_level::steps);
  executor exe{net.main, options};
  exe.run(net.batch(0, 4));
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[0] = -1;
  caught([&] { exe.run(bad); });
  const auto events = recorded(exe);
  for (step_id s : {0, 1}) {
    CHECK(count(events, event_kind::step_begin, s) == 1);
    CHECK(count(events, event_kind::step_end, s) == 1);
    CHECK(count(events, event_kind::feed, s) == 4); // two of each device
    CHECK(count(events, event_kind::run_begin, s) == 0);
  }
  CHECK(count(events, event_kind::fetch, 0) == 2); // the loss
  CHECK(count(events, event_kind::failure, 0) == 0);
  CHECK(count(events, event_kind::failure, 1) >= 1);
  for (auto& e : events)
    if (e.kind == event_kind::feed && exe.graph().var(e.from).name == "label")
      CHECK(e.amount == 2 * sizeof(std::int64_t));
}

TEST_CASE("every collective and every temporary is recorded") {
  const auto net = make_mlp();
  for (auto& c : all_configurations()) {
    CAPTURE(c.name);
    c.options.parameters = net.parameters();
    c.options.hooks.trace = trace_level::ops;
    executor exe{net.main, c.options};
    const auto& g = exe.graph();
    exe.run(net.batch(0, 4));
    exe.run(net.batch(1, 4));
    const auto events = recorded(exe);
    std::size_t collectives = 0, values = 0;
    for (auto& o : g.ops)
      if (o.collective_index >= 0) {
        ++collectives;
        values += o.inputs.size();
      }
    CHECK(count(events, event_kind::run_begin, 0) == g.ops.size());
    CHECK(count(events, event_kind::run_end, 0) == g.ops.size());
    CHECK(count(events, event_kind::merge_begin, 0) == collectives);
    CHECK(count(events, event_kind::merge_end, 0) == collectives);
    CHECK(count(events, event_kind::arrival, 0) == values);
    std::map<handle_id, std::uint64_t> made, freed; // bytes by variable
    for (auto& e : events)
      if (e.step == 0 && e.kind == event_kind::allocation) {
        CHECK_FALSE(g.var(e.to).persistable);
        made[e.to] += e.amount;
      } else if (e.step == 0 && e.kind == event_kind::deallocation
                 && g.var(e.to).generator != no_handle) {
        freed[e.to] += e.amount;
      }
    CHECK(made.size() > net.main.main().ops.size() / 2);
    CHECK(made == freed);
    std::map<std::uint32_t, std::uint64_t> held; // bytes by storage
    std::uint64_t all_merged = 0;
    for (auto& [variable, bytes] : made)
      held[g.var(variable).storage] = bytes;
    for (auto& e : events)
      if (e.step == 0 && e.kind == event_kind::arrival) {
        CHECK(e.amount == static_cast<std::uint64_t>(g.var(e.to).device));
      } else if (e.step == 0 && e.kind == event_kind::merge_begin) {
        std::uint64_t merged = 0;
        for (auto input : g.op(e.from).inputs)
          if (!g.var(input).persistable)
            merged += held[g.var(input).storage];
        all_merged += merged;
        CHECK(e.amount == merged);
      }
    CHECK((all_merged > 0) == (collectives > 0));
  }
}

TEST_CASE("a failed step sends as many messages as a successful one") {
  auto net = make_mlp();
  auto options = options_for(net, trace_level::messages);
  options.steps_in_flight = 1;
  executor exe{net.main, options};
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[0] = -1;
  caught([&] { exe.run(bad); });
  exe.run(net.batch(1, 4));
  const auto events = recorded(exe);
  CHECK(count(events, event_kind::message, 0) == exe.stats().messages_per_step);
}

TEST_CASE("the trace level may change while steps run") {
  auto net = make_lenet();
  executor exe{net.main, options_for(net, trace_level::off)};
  exe.run(net.batch(0, 6));
  CHECK(recorded(exe).empty());
  using enum trace_level;
  const std::vector<trace_level> levels{ops, messages, off, steps, messages};
  level_request level{exe.trace(), off};
  for (std::uint64_t s = 0; s < 40; ++s) {
    const auto id = exe.submit(net.batch(s, 6));
    level.change(levels[s % levels.size()]);
    exe.wait(id);
  }
  CHECK_FALSE(recorded(exe).empty());
}

TEST_CASE("a new trace level makes the workers share ops again") {
  if (usable_cores() < 2)
    return skip_case("needs two cores");
  const auto net = make_lenet();
  auto options = options_for(net, trace_level::off);
  options.threads = 2;
  options.hooks.dry_run = true;
  executor exe{net.main, options};
  const auto feeds = net.batch(0, 8);
  const auto steps_on_one = [&](std::uint32_t steps) {
    const auto before = exe.stats().single_worker_steps;
    for (std::uint32_t s = 0; s < steps; ++s)
      exe.run(feeds);
    return exe.stats().single_worker_steps - before;
  };
  constexpr auto kept = actors::sharing_choice::trial_steps + 1;
  int changes = 0;
  level_request level{exe.trace(), trace_level::off};
  for (int round = 0; round < 3; ++round) {
    for (int tries = 0; tries < 200 && steps_on_one(kept) < kept; ++tries)
      ;
    if (steps_on_one(1) == 0)
      continue; // ops may be long on a busy machine
    ++changes;
    level.change(exe.trace().level() == trace_level::off ? trace_level::steps
                                                         : trace_level::off);
    // The first step still runs as was chosen before the change.
    CHECK(steps_on_one(actors::sharing_choice::short_steps_before_trials) <= 1);
  }
  if (changes == 0)
    skip_case("needs a machine on which one worker is faster");
}

TEST_CASE("recording does not change results") {
  auto net = make_lenet();
  std::vector<double> losses[2];
  for (auto level : {trace_level::off, trace_level::messages}) {
    executor exe{net.main, options_for(net, level)};
    for (std::uint64_t s = 0; s < 3; ++s)
      losses[level == trace_level::off ? 0 : 1].push_back(
        exe.run(net.batch(s, 6)).loss);
  }
  CHECK(losses[0] == losses[1]);
}

} // TEST_SUITE("actors.trace")
