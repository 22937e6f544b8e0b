// SPDX-License-Identifier: Apache-2.0

// If any message is withheld, its step stops, and the executor names the handle
// that waits for it. This holds however the graph runs.

#include <troupe/actors/executor.hpp>

#include <actors/configurations.hpp>
#include <actors/small_nets.hpp>

#include <troupe/graph/wiring/wiring_plan.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.withheld_message") {

namespace {

constexpr std::chrono::seconds patience{60};

/// The messages of a step. Devices that complete late have no host streams.
std::vector<graph::wired_edge> messages_of(const executor& exe, bool is_late) {
  auto streams = graph::plan_streams(exe.graph(), 2);
  for (auto& s : streams)
    if (is_late)
      s.ticket_group = 0;
  const graph::wiring_plan plan{exe.graph(), {.streams = streams}};
  std::vector<graph::wired_edge> sent;
  std::ranges::copy_if(plan.edges(), std::back_inserter(sent),
                       [](auto& e) { return e.sent == 1; });
  return sent;
}

/// The sender of a message to step `to`, as `wait_chain::missing` names it.
std::string sender_of(const graph::ssa_graph& g, const graph::wired_edge& e,
                      step_id to) {
  return e.from == no_handle ? "the start of step " + std::to_string(to)
                             : graph::handle_name(g, e.from) + ", step "
                                 + std::to_string(to - e.distance);
}

/// True if `missing` names the sender, possibly among others.
bool names(const std::string& missing, const std::string& sender) {
  return (" or " + missing + " or ").find(" or " + sender + " or ")
         != std::string::npos;
}

/// Asks until the chain from the step's end leads to the message, and returns
/// an empty text. If that takes too long, returns the last answer.
std::string ask_until_named(const executor& exe, const graph::wired_edge& e,
                            step_id to) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto chain = exe.why();
    if (!chain.links.empty() && chain.links.back().handle == e.to
        && chain.links.back().step == to
        && names(chain.missing, sender_of(exe.graph(), e, to)))
      return {};
    if (std::chrono::steady_clock::now() > until)
      return to_string(chain);
    std::this_thread::yield();
  }
}

} // namespace

TEST_CASE("a withheld message stops its step, and why names what is missing") {
  const auto net = make_mlp();
  const auto feeds = net.batch(0, 4);
  for (auto& c : all_configurations()) {
    CAPTURE(c.name);
    c.options.parameters = net.parameters();
    const executor whole{net.main, c.options};
    const auto messages = messages_of(whole, c.name == "late devices");
    REQUIRE(messages.size() == whole.stats().messages_per_step);
    constexpr step_id stopped = 2; // two steps end before it
    for (auto& m : messages) {
      CAPTURE(sender_of(whole.graph(), m, stopped));
      CAPTURE(graph::handle_name(whole.graph(), m.to));
      auto options = c.options;
      options.hooks.shuffle = delivery_shuffle{
        .seed = {}, .withheld = message_id{m.from, m.to, stopped}};
      executor exe{net.main, options};
      exe.run(feeds);
      exe.run(feeds);
      exe.submit(feeds);
      CHECK(ask_until_named(exe, m, stopped) == "");
      CHECK(exe.stats().steps == stopped);
      let_go(exe);
      CHECK(std::isfinite(exe.wait(stopped).loss));
    }
  }
}

} // TEST_SUITE("actors.withheld_message")
