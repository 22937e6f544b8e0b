// SPDX-License-Identifier: Apache-2.0

// Any actor of the application can know the address of a handle. Its messages
// never count as messages of the graph.

#include <troupe/actors/handles.hpp>

#include <actors/application.hpp>
#include <actors/small_nets.hpp>

#include <troupe/actors/caf/inside.hpp>
#include <troupe/graph/wiring/wiring_plan.hpp>

#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using actors::ready_atom_v;

TEST_SUITE("actors.stranger") {

namespace {

constexpr std::chrono::seconds patience{60};

executor_options options_for(const small_net& net, application& app,
                             edge_form form) {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.parameters = net.parameters();
  o.system = &app.system;
  o.hooks.form = form;
  return o;
}

/// By port: the receiver, if all edges are CAF messages.
std::vector<handle_id> receivers(const graph::ssa_graph& g) {
  const graph::wiring_plan plan{g, {.streams = graph::plan_streams(g, 2)}};
  std::vector<handle_id> to;
  for (auto& e : plan.edges())
    if (e.sent && e.from != no_handle)
      to.push_back(e.to);
  return to;
}

/// The fed variable for the image on the first device.
handle_id image_of(const graph::ssa_graph& g) {
  return std::ranges::find_if(g.vars, [](auto& v) { return v.feed; })->id;
}

/// An actor of the application that does not belong to the graph.
class stranger {
public:
  explicit stranger(application& app) : self_(app.system) {}

  /// True if a readiness message to `to` is refused as a request. It is also
  /// sent without a sender, from the stranger, and in the name of the receiver.
  bool is_refused(const caf::actor& to, std::uint32_t edge,
                  std::uint64_t step) {
    caf::anon_send(to, ready_atom_v, edge, step);
    self_->send(to, ready_atom_v, edge, step);
    const auto receiver = caf::actor_cast<caf::strong_actor_ptr>(to);
    actors::post_from(receiver, receiver, ready_atom_v, edge, step);
    bool refused = false;
    self_->request(to, patience, ready_atom_v, edge, step)
      .receive([] {},
               [&](const caf::error& e) {
                 refused = e == caf::sec::unexpected_message;
               });
    return refused;
  }

private:
  caf::scoped_actor self_;
};

} // namespace

TEST_CASE("readiness messages from outside the graph are always refused") {
  const auto net = make_mlp();
  const auto expected = train(net, {.devices = parse_devices("cpu:2")},
                              std::vector<std::int64_t>{4, 4, 4, 4});
  for (auto form : {edge_form::counter, edge_form::mixed, edge_form::message}) {
    CAPTURE(static_cast<int>(form));
    application app;
    auto options = options_for(net, app, form);
    const auto image = image_of(executor{net.main, options}.graph());
    // Step 1 stops early, so it still waits for most of its messages.
    options.hooks.shuffle =
      delivery_shuffle{.seed = {}, .withheld = message_id{no_handle, image, 1}};
    executor exe{net.main, options};
    std::vector<double> losses{exe.run(net.batch(0, 4)).loss};
    const auto stopped = exe.submit(net.batch(1, 4));
    stranger other{app};
    const auto to = receivers(exe.graph());
    const auto two_rounds_on = [](step_id step, std::uint64_t counters) {
      return step + 2 * 256 * counters; // looks like `step` to a mailbox
    };
    for (std::uint32_t edge = 0; edge < to.size(); ++edge)
      for (std::uint64_t step :
           {step_id{0}, step_id{1}, step_id{2}, two_rounds_on(1, 4)})
        REQUIRE(other.is_refused(handle_address(exe, to[edge]), edge, step));
    for (handle_id id = 0; id < exe.graph().size(); ++id)
      for (std::uint32_t edge : {0u, 17u, 1'000'000u, UINT32_MAX})
        REQUIRE(other.is_refused(handle_address(exe, id), edge, 1));
    CHECK(exe.stats().steps == 1);
    let_go(exe);
    losses.push_back(exe.wait(stopped).loss);
    for (std::uint64_t s : {2, 3})
      losses.push_back(exe.run(net.batch(s, 4)).loss);
    CHECK(losses == expected.losses);
    CHECK(bit_equal(*options.parameters, *expected.parameters));
  }
}

} // TEST_SUITE("actors.stranger")
