// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/late_device.hpp>

#include <troupe/base/trace.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

namespace {

class recording : public trace_sink {
public:
  void record(const trace_event& event) noexcept override {
    std::lock_guard guard{mutex_};
    events_.push_back(event);
  }
  std::vector<trace_event> take() {
    std::lock_guard guard{mutex_};
    return std::exchange(events_, {});
  }

private:
  std::mutex mutex_;
  std::vector<trace_event> events_;
};

std::size_t count(const std::vector<trace_event>& events, trace_kind kind,
                  step_id step) {
  return static_cast<std::size_t>(
    std::count_if(events.begin(), events.end(), [&](const trace_event& e) {
      return e.kind == kind && e.step == step;
    }));
}

executor_options options_for(const small_net& net, trace_sink* sink) {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.parameters = net.parameters();
  o.trace = sink;
  return o;
}

/// Places of an op's events in one step, by time.
struct op_times {
  std::vector<std::uint64_t> ready, launch, completion;

  bool in_order() const {
    return ready.size() == 1 && launch.size() == 1 && completion.size() == 1
           && ready[0] <= launch[0] && launch[0] <= completion[0];
  }
};

std::map<handle_id, op_times>
ops_of_step(const std::vector<trace_event>& events, step_id step) {
  std::map<handle_id, op_times> ops;
  for (auto& e : events) {
    if (e.step != step)
      continue;
    if (e.kind == trace_kind::ready)
      ops[e.from].ready.push_back(e.time_ns);
    if (e.kind == trace_kind::launch)
      ops[e.from].launch.push_back(e.time_ns);
    if (e.kind == trace_kind::completion)
      ops[e.from].completion.push_back(e.time_ns);
  }
  return ops;
}

} // namespace

TEST_SUITE("actors.trace") {

TEST_CASE("every message of a step is recorded once") {
  for (auto form : {edge_form::counter, edge_form::message})
    for (auto& net : {make_lenet(), make_word2vec()}) {
      CAPTURE(net.name);
      recording sink;
      auto options = options_for(net, &sink);
      options.form = form;
      options.steps_in_flight = 3;
      std::size_t expected = 0;
      {
        executor exe{net.main, options};
        expected = exe.stats().messages_per_step;
        std::vector<step_id> ids;
        for (std::uint64_t s = 0; s < 5; ++s)
          ids.push_back(exe.submit(net.batch(s, 6)));
        for (auto id : ids)
          exe.wait(id);
      }
      const auto events = sink.take();
      for (step_id s = 0; s < 5; ++s)
        CHECK(count(events, trace_kind::message, s) == expected);
    }
}

TEST_CASE("messages run along the graph's edges and starts, and no others") {
  auto net = make_mlp();
  recording sink;
  std::multiset<std::pair<handle_id, handle_id>> expected;
  std::size_t handles = 0;
  {
    executor exe{net.main, options_for(net, &sink)};
    for (auto& e : exe.graph().edges)
      expected.emplace(e.from, e.to);
    handles = exe.graph().size();
    exe.run(net.batch(0, 4));
  }
  std::multiset<std::pair<handle_id, handle_id>> along;
  for (auto& e : sink.take())
    if (e.kind == trace_kind::message) {
      if (e.from == no_handle)
        CHECK(e.to < handles);
      else
        along.emplace(e.from, e.to);
    }
  CHECK(along == expected);
}

TEST_CASE("each op is ready before it is launched before it completes") {
  for (bool late : {false, true}) {
    CAPTURE(late);
    auto net = make_lenet();
    recording sink;
    auto options = options_for(net, &sink);
    if (late)
      options.device_instances = {make_late_device(0, 1, 20),
                                  make_late_device(1, 2, 20)};
    std::size_t ops = 0;
    {
      executor exe{net.main, options};
      ops = exe.graph().ops.size();
      for (std::uint64_t s = 0; s < 4; ++s)
        exe.run(net.batch(s, 5));
    }
    const auto events = sink.take();
    for (step_id s = 0; s < 4; ++s) {
      const auto by_op = ops_of_step(events, s);
      CHECK(by_op.size() == ops);
      for (auto& [id, times] : by_op) {
        CAPTURE(id);
        CHECK(times.in_order());
      }
    }
  }
}

TEST_CASE("an op is launched behind the completion of what it reads") {
  auto net = make_mlp();
  recording sink;
  auto options = options_for(net, &sink);
  graph::ssa_graph g;
  {
    executor exe{net.main, options};
    g = exe.graph();
    exe.run(net.batch(0, 4));
  }
  auto by_op = ops_of_step(sink.take(), 0);
  for (auto& e : g.edges)
    if (e.distance == 0 && !g.is_op(e.from) && g.is_op(e.to)
        && g.var(e.from).generator != no_handle)
      CHECK(by_op[g.var(e.from).generator].launch[0] <= by_op[e.to].ready[0]);
}

TEST_CASE("a failed step records as many messages as a good one") {
  auto net = make_mlp();
  recording sink;
  std::size_t expected = 0;
  {
    executor exe{net.main, options_for(net, &sink)};
    expected = exe.stats().messages_per_step;
    auto bad = net.batch(0, 4);
    bad["label"].values<std::int64_t>()[0] = -1;
    caught([&] { exe.run(bad); });
  }
  CHECK(count(sink.take(), trace_kind::message, 0) == expected);
}

TEST_CASE("an executor without the sink calls none") {
  auto net = make_mlp();
  recording sink;
  {
    executor with{net.main, options_for(net, &sink)};
    with.run(net.batch(0, 4));
  }
  CHECK_FALSE(sink.take().empty());
  executor without{net.main, options_for(net, nullptr)};
  without.run(net.batch(0, 4));
  CHECK(sink.take().empty());
}

TEST_CASE("tracing changes no result") {
  auto net = make_lenet();
  recording sink;
  std::vector<double> losses[2];
  for (int traced : {0, 1}) {
    executor exe{net.main, options_for(net, traced ? &sink : nullptr)};
    for (std::uint64_t s = 0; s < 3; ++s)
      losses[traced].push_back(exe.run(net.batch(s, 6)).loss);
  }
  CHECK(losses[0] == losses[1]);
}

} // TEST_SUITE("actors.trace")
