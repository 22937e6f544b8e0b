// SPDX-License-Identifier: Apache-2.0

// One graph with handles in two processes, which exchange values over loopback.
// Losses are the same as in one process.

#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/handles.hpp>

#include <actors/application.hpp>
#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/child_process.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.two_processes") {

namespace {

constexpr int steps = 5;

executor_options options_for(const small_net& net,
                             graph::merge_strategy strategy) {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.threads = 1;
  o.strategy = strategy;
  o.parameters = net.parameters();
  return o;
}

node_options node(std::size_t process) {
  node_options n;
  n.process_of_device = {0, 1};
  n.process = process;
  n.timeout_ms = 20000;
  return n;
}

void split_run_agrees(const small_net& net, graph::merge_strategy strategy) {
  CAPTURE(net.name);
  CAPTURE(to_string(strategy));
  pipe_pair port, losses;
  const auto child = in_child([&] {
    auto options = options_for(net, strategy);
    options.nodes = node(1);
    options.nodes->port = port.get<std::uint16_t>();
    executor exe{net.main, options};
    for (std::uint64_t s = 0; s < steps; ++s)
      losses.put(exe.run(exe.own_share(net.batch(s, 7))).losses[1]);
  });
  std::vector<double> here, there;
  {
    auto options = options_for(net, strategy);
    options.nodes = node(0);
    options.nodes->listening = [&](std::uint16_t p) { port.put(p); };
    executor exe{net.main, options};
    for (std::uint64_t s = 0; s < steps; ++s) {
      here.push_back(exe.run(exe.own_share(net.batch(s, 7))).losses[0]);
      there.push_back(losses.get<double>());
    }
  }
  CHECK(exit_code(child) == 0);
  executor together{net.main, options_for(net, strategy)};
  for (std::uint64_t s = 0; s < steps; ++s) {
    const auto expected = together.run(net.batch(s, 7)).losses;
    CHECK(here[s] == expected[0]);
    CHECK(there[s] == expected[1]);
  }
}

void dying_peer_ends_run(bool in_system_of_application) {
  const auto net = make_mlp();
  pipe_pair port;
  const auto child = in_child([&] {
    auto options = options_for(net, graph::merge_strategy::all_reduce);
    options.nodes = node(1);
    options.nodes->port = port.get<std::uint16_t>();
    executor exe{net.main, options};
    exe.run(exe.own_share(net.batch(0, 4)));
    port.get<char>(); // waits until the first step has ended there too
    ::raise(SIGKILL);
  });
  caf::actor_system_config config;
  config.load<caf::io::middleman>();
  std::unique_ptr<caf::actor_system> system;
  auto options = options_for(net, graph::merge_strategy::all_reduce);
  if (in_system_of_application)
    options.system = (system = make_plain_system(config, 4)).get();
  options.nodes = node(0);
  options.nodes->listening = [&](std::uint16_t p) { port.put(p); };
  executor exe{net.main, options};
  exe.run(exe.own_share(net.batch(0, 4)));
  port.put('k');
  const auto e = caught([&] {
    for (;;)
      exe.run(exe.own_share(net.batch(1, 4)));
  });
  CHECK(e.code() == errc::peer_failure);
  CHECK(exit_code(child) == -1);
}

constexpr std::chrono::seconds patience{60};

caf::error down_reason(caf::scoped_actor& self) {
  caf::error reason;
  self->receive([&](const caf::down_msg& m) { reason = m.reason; },
                caf::after(patience) >> [] {});
  return reason;
}

/// Acts as an application that reaches a handle of another process by its port:
/// asks, monitors and terminates it. True if the handle answers like any CAF
/// actor.
bool talks_to_handle(std::uint16_t port, const std::string& name) {
  caf::actor_system_config config;
  config.load<caf::io::middleman>();
  caf::actor_system system{config};
  const auto handle = system.middleman().remote_actor("127.0.0.1", port);
  if (!handle)
    return false;
  caf::scoped_actor self{system};
  bool answered = false;
  self->request(*handle, patience, actors::describe_atom_v)
    .receive(
      [&](const std::string& line) {
        answered = line == name + ", step 0: is done";
      },
      [](const caf::error&) {});
  bool refused = false;
  self->request(*handle, patience, 42)
    .receive([](const std::string&) {},
             [&](const caf::error& e) {
               refused = e == caf::sec::unexpected_message;
             });
  self->monitor(*handle);
  self->send_exit(*handle, caf::exit_reason::kill);
  return answered && refused && down_reason(self) == caf::exit_reason::kill;
}

} // namespace

TEST_CASE("a graph split over two processes gives the same losses") {
  split_run_agrees(make_mlp(), graph::merge_strategy::all_reduce);
  split_run_agrees(make_lenet(), graph::merge_strategy::all_reduce);
  split_run_agrees(make_lenet(), graph::merge_strategy::reduce);
  split_run_agrees(make_word2vec(), graph::merge_strategy::all_reduce);
}

TEST_CASE("a process that dies ends the run of the other with an error") {
  dying_peer_ends_run(false);
}

TEST_CASE("a dying process also ends a run without Troupe's scheduler policy") {
  for (int round = 0; round < 5; ++round)
    dying_peer_ends_run(true);
}

TEST_CASE("an error in one process ends the step in both") {
  const auto net = make_mlp();
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[3] = 99; // on device 1
  pipe_pair port;
  const auto child = in_child([&] {
    auto options = options_for(net, graph::merge_strategy::all_reduce);
    options.nodes = node(1);
    options.nodes->port = port.get<std::uint16_t>();
    executor exe{net.main, options};
    if (caught([&] { exe.run(exe.own_share(bad)); }).code()
        != errc::out_of_range)
      ::_exit(2);
    exe.run(exe.own_share(net.batch(1, 4)));
  });
  auto options = options_for(net, graph::merge_strategy::all_reduce);
  options.nodes = node(0);
  options.nodes->listening = [&](std::uint16_t p) { port.put(p); };
  executor exe{net.main, options};
  const auto e = caught([&] { exe.run(exe.own_share(bad)); });
  CHECK(e.code() == errc::out_of_range);
  CHECK(says(e, "99"));
  exe.run(exe.own_share(net.batch(1, 4)));
  CHECK(exit_code(child) == 0);
}

TEST_CASE("both processes report an error if their strategies differ") {
  const auto net = make_mlp();
  pipe_pair port;
  const auto child = in_child([&] {
    auto options = options_for(net, graph::merge_strategy::reduce);
    options.nodes = node(1);
    options.nodes->port = port.get<std::uint16_t>();
    const auto e = caught([&] { executor exe(net.main, options); });
    ::_exit(says(e, "strategy: all_reduce in process 0, reduce in process 1")
              ? 0
              : 1);
  });
  auto options = options_for(net, graph::merge_strategy::all_reduce);
  options.nodes = node(0);
  options.nodes->listening = [&](std::uint16_t p) { port.put(p); };
  const auto e = caught([&] { executor exe(net.main, options); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "strategy: all_reduce in process 0, reduce in process 1"));
  CHECK(exit_code(child) == 0);
}

TEST_CASE("a published handle answers another process and exits on request") {
  const auto net = make_mlp();
  pipe_pair port;
  const auto options = options_for(net, graph::merge_strategy::all_reduce);
  const auto child = in_child([&] {
    const auto published = port.get<std::uint16_t>();
    ::_exit(talks_to_handle(published, "mul#0@cpu:0") ? 0 : 1);
  });
  caf::actor_system_config config;
  config.load<caf::io::middleman>();
  const auto owned = make_actor_system(config, 2);
  auto& system = *owned;
  auto here = options;
  here.system = &system;
  executor exe{net.main, here};
  exe.run(exe.own_share(net.batch(0, 4)));
  REQUIRE(graph::handle_name(exe.graph(), 0) == "mul#0@cpu:0");
  caf::scoped_actor self{system};
  const auto handle = handle_address(exe, 0);
  self->monitor(handle);
  const auto published = system.middleman().publish(handle, 0, "127.0.0.1");
  REQUIRE(published);
  port.put(*published);
  CHECK(exit_code(child) == 0);
  CHECK(down_reason(self) == caf::exit_reason::kill);
  CHECK(caught([&] { exe.run(exe.own_share(net.batch(1, 4))); }).code()
        == errc::peer_failure);
}

TEST_CASE("addresses other than loopback are refused") {
  const auto net = make_mlp();
  auto options = options_for(net, graph::merge_strategy::all_reduce);
  options.nodes = node(0);
  options.nodes->host = "192.0.2.1";
  const auto e = caught([&] { executor exe(net.main, options); });
  CHECK(e.code() == errc::invalid_argument);
}

TEST_CASE("invalid process numbers are refused") {
  const auto net = make_mlp();
  for (std::size_t made_up :
       {std::size_t{2}, std::size_t{1} << 40, ~std::size_t{0}}) {
    auto options = options_for(net, graph::merge_strategy::all_reduce);
    options.nodes = node(0);
    options.nodes->process_of_device = {0, made_up};
    auto e = caught([&] { executor exe(net.main, options); });
    CHECK(e.code() == errc::invalid_argument);
    options.nodes = node(made_up);
    e = caught([&] { executor exe(net.main, options); });
    CHECK(e.code() == errc::invalid_argument);
  }
}

} // TEST_SUITE("actors.two_processes")
