// SPDX-License-Identifier: Apache-2.0

// A plan sends the messages that its graph requires, and no others: the checker
// rejects every plan from which one message, end or release has been removed.

#include <graph/wiring/plan_checker.hpp>

#include <troupe/actors/steps/executor_graph.hpp>

#include <actors/configurations.hpp>
#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::wiring_plan;

TEST_SUITE("actors.wrong_plan") {

namespace {

graph::ssa_graph graph_of(const small_net& net, executor_options options) {
  options.fetches = {net.loss, "fc_0.w_0"};
  return actors::build_graph(std::make_shared<graph::program>(net.main),
                             options, net.loss);
}

/// @param late the devices complete late, and their streams wait for each other
wiring_plan plan_of(const graph::ssa_graph& g, bool overlap, bool late) {
  auto streams = graph::plan_streams(g, 2);
  for (auto& s : streams)
    if (late)
      s.ticket_group = 0;
  return {g, {.streams = std::move(streams), .steps_overlap = overlap}};
}

/// Calls `act(graph, plan, steps_overlap)` for each way to run a net.
template <class Act>
void with_all_plans(const small_net& net, Act act) {
  CAPTURE(net.name);
  for (auto& c : all_configurations())
    for (bool overlap : {true, false}) {
      CAPTURE(c.name);
      CAPTURE(overlap);
      const auto g = graph_of(net, c.options);
      act(g, plan_of(g, overlap, c.name == "late devices"), overlap);
    }
}

template <class T>
std::vector<T> without(std::vector<T> all, std::size_t i) {
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
  return all;
}

} // namespace

TEST_CASE("the checker accepts the plans of all nets") {
  for (auto& net : {make_mlp(), make_lenet(), make_resnet(true),
                    make_word2vec(), make_dropout_net()})
    with_all_plans(net, [](const graph::ssa_graph& g, const wiring_plan& plan,
                           bool overlap) {
      CHECK(fault_of(loose_plan{plan, g}, g, overlap) == "");
    });
}

TEST_CASE("removing any message makes a plan wrong") {
  with_all_plans(make_mlp(), [](const graph::ssa_graph& g,
                                const wiring_plan& plan, bool overlap) {
    const loose_plan right{plan, g};
    REQUIRE(right.sent.size() == plan.messages_per_step());
    auto wrong = right;
    for (std::size_t i = 0; i < right.sent.size(); ++i) {
      const auto& e = right.sent[i];
      CAPTURE((e.from == no_handle ? "start" : handle_name(g, e.from)));
      CAPTURE(handle_name(g, e.to));
      wrong.sent = without(right.sent, i);
      CHECK(fault_of(wrong, g, overlap) != "");
    }
  });
}

TEST_CASE("removing any release or required end makes a plan wrong") {
  with_all_plans(make_mlp(), [](const graph::ssa_graph& g,
                                const wiring_plan& plan, bool overlap) {
    const loose_plan right{plan, g};
    auto wrong = right;
    for (std::size_t i = 0; i < right.releases.size(); ++i) {
      wrong.releases = without(right.releases, i);
      CHECK(fault_of(wrong, g, overlap) != "");
    }
    wrong = right;
    for (handle_id id = 0; id < g.size(); ++id) {
      const auto tells_nobody =
        std::ranges::none_of(right.sent, [&](const graph::wired_edge& e) {
          return e.from == id && e.distance == 0;
        });
      if (!tells_nobody)
        continue; // ends the step for another reason, if at all
      CAPTURE(handle_name(g, id));
      wrong.ends_step[id] = false;
      CHECK(fault_of(wrong, g, overlap) != "");
      wrong.ends_step[id] = true;
    }
  });
}

} // TEST_SUITE("actors.wrong_plan")
