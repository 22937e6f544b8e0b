// SPDX-License-Identifier: Apache-2.0

// Other actors can use each op handle and each variable handle as an actor,
// however its graph runs. Watching the handles does not change results.

#include <troupe/actors/handles.hpp>

#include <actors/application.hpp>
#include <actors/configurations.hpp>
#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

CAF_BEGIN_TYPE_ID_BLOCK(every_handle_test, caf::first_custom_type_id)
CAF_ADD_ATOM(every_handle_test, watcher_atoms, link_atom, "link")
CAF_ADD_ATOM(every_handle_test, watcher_atoms, ask_atom, "ask")
CAF_ADD_ATOM(every_handle_test, watcher_atoms, heard_atom, "heard")
CAF_ADD_ATOM(every_handle_test, watcher_atoms, quit_atom, "quit")
CAF_END_TYPE_ID_BLOCK(every_handle_test)

using namespace troupe;
using namespace troupe::test;
using namespace watcher_atoms;

TEST_SUITE("actors.every_handle") {

namespace {

constexpr std::chrono::seconds patience{60};

struct watcher_state {
  int downs = 0;
  int exits = 0;
};

/// An actor of the application. It monitors handles and links to them, asks
/// handles on request, and counts the terminations that it is notified of.
caf::behavior watch(caf::event_based_actor* me) {
  const auto state = std::make_shared<watcher_state>();
  me->set_down_handler([state](caf::down_msg&) { ++state->downs; });
  me->set_exit_handler([state](caf::exit_msg&) { ++state->exits; });
  return {
    [me](link_atom, const caf::actor& to) {
      me->monitor(to);
      me->link_to(to);
    },
    [me](ask_atom, const caf::actor& to) {
      auto answer = me->make_response_promise();
      me->request(to, patience, actors::describe_atom_v)
        .then(
          [answer](const std::string& line) mutable { answer.deliver(line); },
          [answer](const caf::error& e) mutable {
            answer.deliver("error: " + caf::to_string(e));
          });
      return answer;
    },
    [state](heard_atom) {
      return caf::make_message(state->downs, state->exits);
    },
    [me](quit_atom) { me->quit(); }};
}

/// A running graph with an actor that watches all its handles.
class watched_run {
public:
  watched_run(const small_net& net, executor_options options, application& app)
    : self_(app.system), watcher_(app.system.spawn(watch)),
      exe_(std::make_unique<executor>(net.main, std::move(options))) {
    actors::register_types<caf::id_block::every_handle_test>();
    for (handle_id id = 0; id < exe_->graph().size(); ++id)
      self_->send(watcher_, link_atom_v, handle_address(*exe_, id));
  }
  ~watched_run() { self_->send(watcher_, quit_atom_v); }

  executor& exe() { return *exe_; }
  const graph::ssa_graph& graph() const { return exe_->graph(); }

  /// A handle's description without its name; empty if the description does not
  /// begin with the name.
  std::string ask(handle_id id) {
    std::string line;
    self_->request(watcher_, patience, ask_atom_v, handle_address(*exe_, id))
      .receive([&](std::string& text) { line = std::move(text); },
               [&](const caf::error& e) { FAIL(caf::to_string(e)); });
    const auto name = graph::handle_name(graph(), id) + ", ";
    return line.starts_with(name) ? line.substr(name.size()) : std::string{};
  }

  /// The same, repeated until the handle is done.
  std::string ask_until_done(handle_id id) {
    const auto until = std::chrono::steady_clock::now() + patience;
    auto line = ask(id);
    while (!line.ends_with("is done")
           && std::chrono::steady_clock::now() < until)
      line = ask(id);
    return line;
  }

  /// Number of terminated handles that the watcher was notified of, by monitor
  /// and by link. Waits until both are `expected`.
  std::pair<int, int> hears(int expected) {
    std::pair<int, int> heard{-1, -1};
    const auto ask = [&] {
      self_->request(watcher_, patience, heard_atom_v)
        .receive(
          [&](int downs, int exits) {
            heard = {downs, exits};
          },
          [](const caf::error& e) { FAIL(caf::to_string(e)); });
    };
    const auto until = std::chrono::steady_clock::now() + patience;
    do
      ask();
    while (heard != std::pair{expected, expected}
           && std::chrono::steady_clock::now() < until);
    return heard;
  }

  void end() { exe_.reset(); }

private:
  caf::scoped_actor self_;
  caf::actor watcher_;
  std::unique_ptr<executor> exe_;
};

constexpr std::int64_t samples = 4;
constexpr step_id steps = 4;

/// The result of some steps.
struct outcome {
  std::vector<double> losses;
  std::shared_ptr<scope> parameters;
};

outcome undisturbed(const small_net& net, executor_options options) {
  const auto made =
    train(net, std::move(options), std::vector<std::int64_t>(steps, samples));
  return {made.losses, made.parameters};
}

bool is_answer_in(const std::string& line, step_id from, step_id to) {
  for (auto step = from; step <= to; ++step)
    for (const auto* what :
         {"is done", "waits for ", "is ready and waits for stream ",
          "runs on worker ", "was launched on stream "})
      if (line.starts_with("step " + std::to_string(step) + ": " + what))
        return line.find('\n') == line.npos;
  return false;
}

/// Calls `act(configuration, application)` for each way to run a graph, with a
/// new actor system each time.
template <class Act>
void in_all_configurations(Act act) {
  for (auto& c : all_configurations()) {
    CAPTURE(c.name);
    application app;
    c.options.system = &app.system;
    act(c, app);
  }
}

/// The first fed variable of the first device.
handle_id feed_of(const graph::ssa_graph& g) {
  return std::ranges::find_if(g.vars, [](auto& v) { return v.feed; })->id;
}

/// Handles that wait for `first` in the same step: because of edges, transfers
/// between places, or other ranks of a collective.
std::vector<bool> all_behind(const graph::ssa_graph& g, handle_id first) {
  auto edges = g.edges;
  for (auto& a : g.ops)
    for (auto& b : g.ops)
      if (g.rank_collectives && a.collective_index >= 0
          && a.collective_index == b.collective_index)
        edges.push_back({a.id, b.id});
  std::vector<bool> behind(g.size());
  behind[first] = true;
  for (bool more = true; std::exchange(more, false);)
    for (auto& e : edges)
      if (e.distance == 0 && behind[e.from] && !behind[e.to])
        more = behind[e.to] = true;
  return behind;
}

} // namespace

TEST_CASE("monitoring and asking handles does not change results") {
  const auto net = make_mlp();
  in_all_configurations([&](configuration& c, application& app) {
    const auto expected = undisturbed(net, c.options);
    c.options.parameters = net.parameters();
    watched_run run{net, c.options, app};
    const auto handles = static_cast<handle_id>(run.graph().size());
    std::vector<double> losses;
    for (step_id s = 0; s < steps; s += 2) {
      run.exe().submit(net.batch(s, samples));
      run.exe().submit(net.batch(s + 1, samples));
      for (handle_id id = 0; id < handles; ++id)
        CHECK(is_answer_in(run.ask(id), s, s + 1));
      losses.push_back(run.exe().wait(s).loss);
      losses.push_back(run.exe().wait(s + 1).loss);
      const auto done = "step " + std::to_string(s + 1) + ": is done";
      for (handle_id id = 0; id < handles; ++id)
        CHECK(run.ask(id) == done);
    }
    CHECK(losses == expected.losses);
    run.exe().synchronize_parameters();
    CHECK(bit_equal(*c.options.parameters, *expected.parameters));
    CHECK(run.hears(0) == std::pair{0, 0});
    run.end();
    const auto all = static_cast<int>(handles);
    CHECK(run.hears(all) == std::pair{all, all});
  });
}

TEST_CASE("each handle of a stopped step reports whether it is done") {
  const auto net = make_mlp();
  in_all_configurations([&](configuration& c, application& app) {
    const auto expected = undisturbed(net, c.options);
    c.options.parameters = net.parameters();
    const auto feed = feed_of(executor{net.main, c.options}.graph());
    c.options.hooks.shuffle =
      delivery_shuffle{.seed = {}, .withheld = message_id{no_handle, feed, 1}};
    watched_run run{net, c.options, app};
    std::vector<double> losses{run.exe().run(net.batch(0, samples)).loss};
    const auto stopped = run.exe().submit(net.batch(1, samples));
    const auto behind = all_behind(run.graph(), feed);
    REQUIRE(std::ranges::count(behind, false) > 0);
    for (handle_id id = 0; id < run.graph().size(); ++id) {
      CAPTURE(id);
      const auto line = behind[id] ? run.ask(id) : run.ask_until_done(id);
      CAPTURE(graph::handle_name(run.graph(), id));
      CAPTURE(line);
      CHECK(behind[id] == (line != "step 1: is done"));
      CHECK(is_answer_in(line, 1, 1));
    }
    CHECK(run.ask(feed) == "step 1: waits for 1 of 1 message");
    let_go(run.exe());
    losses.push_back(run.exe().wait(stopped).loss);
    for (step_id s = 2; s < steps; ++s)
      losses.push_back(run.exe().run(net.batch(s, samples)).loss);
    CHECK(losses == expected.losses);
    run.exe().synchronize_parameters();
    CHECK(bit_equal(*c.options.parameters, *expected.parameters));
  });
}

TEST_CASE("after a handle is killed, every step's error names it") {
  const auto net = make_mlp();
  in_all_configurations([&](configuration& c, application& app) {
    c.options.parameters = net.parameters();
    const executor whole{net.main, c.options};
    const auto feed = feed_of(whole.graph());
    c.options.hooks.shuffle =
      delivery_shuffle{.seed = {}, .withheld = message_id{no_handle, feed, 1}};
    caf::scoped_actor self{app.system};
    for (handle_id id = 0; id < whole.graph().size(); ++id) {
      executor exe{net.main, c.options};
      const auto name = graph::handle_name(exe.graph(), id);
      CAPTURE(name);
      exe.run(net.batch(0, samples));
      const auto under_way = exe.submit(net.batch(1, samples));
      const auto handle = handle_address(exe, id);
      self->monitor(handle);
      caf::anon_send_exit(handle, caf::exit_reason::kill);
      self->receive(
        [&](const caf::down_msg& m) {
          CHECK(m.source == handle);
          CHECK(m.reason == caf::exit_reason::kill);
        },
        caf::after(patience) >> [] { FAIL("no down message"); });
      let_go(exe);
      const auto ends = [&](auto act) {
        const auto e = caught(act);
        CHECK(e.code() == errc::peer_failure);
        CHECK(e.where().op == name);
      };
      ends([&] { exe.wait(under_way); });
      ends([&] { exe.run(net.batch(2, samples)); });
    }
  });
}

} // TEST_SUITE("actors.every_handle")
