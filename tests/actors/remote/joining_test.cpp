// SPDX-License-Identifier: Apache-2.0

// Which processes may join a run over several processes, and what other
// programs can do to the run.

#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/handles.hpp>
#include <troupe/actors/messages.hpp>

#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/files.hpp>

#include <arpa/inet.h>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.joining") {

namespace {

/// What differs in process 1.
struct difference {
  std::function<void(executor_options&, small_net&)> make;
  std::string named; ///< part of the error in both processes
};

void set_learning_rate(executor_options& o, float value) {
  for (auto& name : o.parameters->names())
    if (name.find("learning_rate") != name.npos)
      o.parameters->var(name).as_tensor().values<float>()[0] = value;
}

std::vector<difference> differences() {
  return {
    {[](auto& o, auto&) { o.steps_in_flight = 3; },
     "steps_in_flight: 2 in process 0, 3 in process 1"},
    {[](auto& o, auto&) { o.seed = 7; },
     "seed: 0 in process 0, 7 in process 1"},
    {[](auto& o, auto&) { o.nodes->deterministic = true; },
     "deterministic: false in process 0, true in process 1"},
    {[](auto& o, auto&) { o.strategy = graph::merge_strategy::reduce; },
     "strategy: all_reduce in process 0, reduce in process 1"},
    {[](auto& o, auto&) { o.scale = graph::gradient_scale::one; },
     "scale: coeff in process 0, one in process 1"},
    {[](auto& o, auto& net) { o.fetches = {net.loss}; }, "fetches: "},
    {[](auto& o, auto&) {
       o.nodes->process_of_device = {1, 1};
     },
     "process_of_device: 0, 1 in process 0, 1, 1 in process 1"},
    {[](auto& o, auto&) {
       o.devices = parse_devices("cpu:3");
       o.nodes->process_of_device = {0, 1, 2};
     },
     "number of processes: 2 in process 0, 3 in process 1"},
    {[](auto& o, auto& net) { // before what follows from it
       o.nodes->agreed = {{"precision", "bf16"}};
       o.fetches = {net.loss};
     },
     "in process 0, precision in process 1"},
    {[](auto& o, auto&) { o.hooks.dry_run = true; }, "dry_run"},
    {[](auto& o, auto&) { o.lowering.fuse_all_reduce_bytes = 0; },
     "fuse_all_reduce_bytes"},
    {[](auto&, auto& net) {
       net.main.main().ops.back().attributes.set("coefficient", 0.25f);
     },
     "coefficient=0.25"},
    {[](auto&, auto& net) {
       net.main.main().vars.begin()->second.is_parameter ^= true;
     },
     "of the program"},
    {[](auto& o, auto& net) { o.parameters = net.parameters(2); },
     "the value of "},
    {[](auto& o, auto&) { set_learning_rate(o, 0.125f); },
     "0.125 in process 1"},
  };
}

// -- strangers ----------------------------------------------------------------

int connect_to(std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto socket = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0)
    return socket;
  ::close(socket);
  return -1;
}

/// Sends a header of CAF's protocol that announces 2^32 - 1 bytes. The
/// connection stays open.
void announce_much(std::uint16_t port) {
  std::array<unsigned char, 32> header{1}; // the handshake of a client
  std::fill_n(header.begin() + 4, 4, 0xff);
  (void)!::send(connect_to(port), header.data(), header.size(), MSG_NOSIGNAL);
}

std::string losses_of(executor& exe, const small_net& net, std::uint64_t first,
                      std::uint64_t last) {
  std::string text;
  for (auto s = first; s < last; ++s)
    text +=
      std::to_string(exe.run(exe.own_share(net.batch(s, 7))).losses[0]) + " ";
  return text;
}

/// The losses of steps `first` to `last` of a run in one process.
std::string undisturbed(const small_net& net, std::uint64_t first,
                        std::uint64_t last) {
  auto options = options_over(2, graph::merge_strategy::all_reduce);
  options.parameters = net.parameters();
  executor exe{net.main, options};
  losses_of(exe, net, 0, first);
  return losses_of(exe, net, first, last);
}

// -- made-up messages ---------------------------------------------------------

constexpr std::chrono::seconds patience{60};

struct pipe_pair {
  std::array<int, 2> ends{};
  pipe_pair() { REQUIRE(::pipe(ends.data()) == 0); }
  ~pipe_pair() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  template <class T>
  void put(T value) const {
    (void)!::write(ends[1], &value, sizeof value);
  }
  template <class T>
  T get() const {
    T value{};
    pollfd one{ends[0], POLLIN, 0};
    if (::poll(&one, 1, 30000) == 1)
      (void)!::read(ends[0], &value, sizeof value);
    return value;
  }
};

/// Sends exit messages and forged readiness messages to the handle on `port`.
/// True if the handle still answers.
bool meddles(std::uint16_t port) {
  caf::actor_system_config config;
  config.load<caf::io::middleman>();
  caf::actor_system system{config};
  const auto handle = system.middleman().remote_actor("127.0.0.1", port);
  if (!handle)
    return false;
  caf::scoped_actor self{system};
  for (std::uint32_t edge = 0; edge < 1000; ++edge)
    for (std::uint64_t step : {0, 1, 2, 1000000}) {
      const auto ready = caf::make_message(actors::ready_atom_v, edge, step);
      self->send(*handle, ready);
      caf::anon_send(*handle, ready);
    }
  self->send_exit(*handle, caf::exit_reason::kill);
  caf::anon_send_exit(*handle, caf::exit_reason::kill);
  bool answered = false;
  self->request(*handle, patience, actors::describe_atom_v)
    .receive([&](const std::string&) { answered = true; },
             [](const caf::error&) {});
  return answered;
}

handle_id first_of(const graph::ssa_graph& g, graph::op_kind kind) {
  return std::ranges::find(g.ops, kind, &graph::op_handle::kind)->id;
}

/// Process 0: runs steps in its own actor system and publishes an op's handle
/// on a port.
std::string publish_and_run(const small_net& net, executor_options options,
                            graph::op_kind kind, const pipe_pair& ports,
                            const pipe_pair& go) {
  caf::actor_system_config config;
  config.load<caf::io::middleman>();
  const auto owned = make_actor_system(config, 2);
  auto& system = *owned;
  options.system = &system;
  executor exe{net.main, options};
  auto losses = losses_of(exe, net, 0, 1);
  const auto published = system.middleman().publish(
    handle_address(exe, first_of(exe.graph(), kind)), 0, "127.0.0.1");
  ports.put(published ? *published : std::uint16_t{0});
  go.get<char>();
  return losses + losses_of(exe, net, 1, 4);
}

} // namespace

TEST_CASE("processes with different settings fail and name the difference") {
  for (auto& d : differences()) {
    CAPTURE(d.named);
    process_group run{2, [&](node_options node) {
                        auto net = make_mlp();
                        auto options =
                          options_over(2, graph::merge_strategy::all_reduce);
                        options.parameters = net.parameters();
                        options.nodes = node;
                        if (node.process == 1)
                          d.make(options, net);
                        executor exe{net.main, options};
                        exe.run(exe.own_share(net.batch(0, 7)));
                        return std::string{"no error"};
                      }};
    for (std::size_t p = 0; p < 2; ++p) {
      const auto end = run.wait(p);
      CAPTURE(p);
      INFO("last word: ", end.last_word);
      CHECK(end.in_time);
      CHECK(end.last_word.find(d.named) != std::string::npos);
    }
  }
}

TEST_CASE("a process beyond the number of processes ends the run") {
  process_group run{2, [&](node_options node) {
                      auto net = make_mlp();
                      auto options =
                        options_over(2, graph::merge_strategy::all_reduce);
                      options.parameters = net.parameters();
                      if (node.process == 1) {
                        options.devices = parse_devices("cpu:3");
                        node.process_of_device = {0, 1, 2};
                        node.process = 2;
                      }
                      options.nodes = std::move(node);
                      executor exe{net.main, options};
                      return std::string{"no error"};
                    }};
  for (std::size_t p = 0; p < 2; ++p) {
    const auto end = run.wait(p);
    INFO("last word: ", end.last_word);
    CHECK(contains(end.last_word,
                   "process 2 has come, but process 0 expects 2 processes"));
  }
}

TEST_CASE("of two processes with the same number, the second is refused") {
  const pipe_pair refused; // has a byte once that has happened
  process_group run{3, [&](node_options node) {
                      node.process = std::min<std::size_t>(node.process, 1);
                      node.check = [&] {
                        pollfd looked{refused.ends[0], POLLIN, 0};
                        if (::poll(&looked, 1, 0) > 0)
                          throw error(errc::cancelled, "the test is over");
                      };
                      try {
                        const auto net = make_mlp();
                        auto options =
                          options_over(3, graph::merge_strategy::all_reduce);
                        options.parameters = net.parameters();
                        options.nodes = std::move(node);
                        executor exe{net.main, options};
                        return std::string{"no error"};
                      } catch (const error& e) {
                        refused.put(char{});
                        return std::string{e.message()};
                      }
                    }};
  std::array<std::string, 3> words;
  for (std::size_t p = 0; p < 3; ++p)
    words[p] = run.wait(p).last_word;
  CHECK(contains(words[0], "the test is over"));
  CHECK(std::ranges::count_if(
          words,
          [](const std::string& word) {
            return contains(word, "process 1 is there already: two have this "
                                  "number");
          })
        == 1);
}

TEST_CASE("settings that concern one process only may differ") {
  process_group run{2, [&](node_options node) {
                      const auto net = make_mlp();
                      auto options =
                        options_over(2, graph::merge_strategy::all_reduce);
                      options.parameters = net.parameters();
                      options.nodes = node;
                      options.threads = node.process == 0 ? 1 : 2;
                      options.hooks.check_nan = node.process == 0;
                      if (node.process == 0)
                        options.hooks.form = edge_form::mixed;
                      executor exe{net.main, options};
                      exe.run(exe.own_share(net.batch(0, 7)));
                      return std::string{"done"};
                    }};
  for (std::size_t p = 0; p < 2; ++p)
    CHECK(run.wait(p).last_word == "done");
}

TEST_CASE("a second run begins with the parameters of the first") {
  for (auto strategy :
       {graph::merge_strategy::all_reduce, graph::merge_strategy::reduce}) {
    CAPTURE(to_string(strategy));
    const auto net = make_lenet();
    pipe_pair ports;
    process_group run{2, [&](node_options node) {
                        auto options = options_over(2, strategy);
                        options.parameters = net.parameters();
                        options.nodes = node;
                        {
                          executor exe{net.main, options};
                          exe.run(exe.own_share(net.batch(0, 7)));
                          exe.synchronize_parameters();
                        }
                        options.nodes->port =
                          node.process == 0 ? 0 : ports.get<std::uint16_t>();
                        options.nodes->listening = [&](std::uint16_t p) {
                          ports.put(p);
                        };
                        executor exe{net.main, options};
                        return losses_of(exe, net, 1, 2);
                      }};
    CHECK(run.wait(0).last_word == undisturbed(net, 1, 2));
    CHECK(run.wait(1).in_time);
  }
}

TEST_CASE("unknown connections neither stop a run nor use up its memory") {
  const auto net = make_mlp();
  process_group run{
    2, [&](node_options node) {
      std::uint16_t port = 0;
      node.listening = [&, tell = node.listening](std::uint16_t p) {
        port = p;
        for (int i = 0; i < 5; ++i)
          connect_to(p); // sends nothing
        announce_much(p);
        tell(p);
      };
      auto options = options_over(2, graph::merge_strategy::all_reduce);
      options.parameters = net.parameters();
      options.nodes = node;
      executor exe{net.main, options};
      const auto losses = losses_of(exe, net, 0, 2);
      if (node.process == 0)
        announce_much(port); // the gate is closed
      const auto more = losses_of(exe, net, 2, 4);
      rusage used{};
      ::getrusage(RUSAGE_SELF, &used);
      if (used.ru_maxrss > 2 * 1024 * 1024)
        return "it took " + std::to_string(used.ru_maxrss) + " KiB";
      return losses + more;
    }};
  const auto end = run.wait(0);
  CHECK(end.in_time);
  CHECK(end.last_word == undisturbed(net, 0, 4));
  CHECK(run.wait(1).in_time);
}

TEST_CASE("messages from outside the run have no effect") {
  const auto net = make_mlp();
  // An op with senders in this process only, and one with senders in both.
  for (auto kind : {graph::op_kind::computation, graph::op_kind::all_reduce}) {
    pipe_pair ports, go;
    process_group run{2, [&](node_options node) {
                        auto here =
                          options_over(2, graph::merge_strategy::all_reduce);
                        here.parameters = net.parameters();
                        here.hooks.form = edge_form::message;
                        here.nodes = node;
                        if (node.process == 0)
                          return publish_and_run(net, here, kind, ports, go);
                        executor exe{net.main, here};
                        return losses_of(exe, net, 0, 4);
                      }};
    CHECK(meddles(ports.get<std::uint16_t>()));
    go.put('g');
    const auto end = run.wait(0);
    CAPTURE(to_string(kind));
    CHECK(end.in_time);
    CHECK(end.last_word == undisturbed(net, 0, 4));
  }
}

TEST_CASE("joining a silent listener fails after the timeout") {
  const auto listening = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  REQUIRE(::bind(listening, reinterpret_cast<sockaddr*>(&at), size) == 0);
  REQUIRE(::listen(listening, 8) == 0);
  REQUIRE(::getsockname(listening, reinterpret_cast<sockaddr*>(&at), &size)
          == 0);
  const auto net = make_mlp();
  auto options = options_over(2, graph::merge_strategy::all_reduce);
  options.parameters = net.parameters();
  options.nodes = node_options{};
  options.nodes->process_of_device = {0, 1};
  options.nodes->process = 1;
  options.nodes->port = ntohs(at.sin_port);
  options.nodes->timeout_ms = 200;
  const auto begun = std::chrono::steady_clock::now();
  const auto e = caught([&] { executor exe(net.main, options); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, std::to_string(options.nodes->port)));
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds{15});
  ::close(listening);
}

} // TEST_SUITE("actors.joining")
