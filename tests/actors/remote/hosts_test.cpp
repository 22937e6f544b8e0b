// SPDX-License-Identifier: Apache-2.0

// Runs whose processes are on several hosts: TLS with certificates between
// them, sums over Gloo. The hosts are addresses of a network of the test's own.

#include <troupe/actors/executor.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/net/socket_address.hpp>
#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <actors/remote/job_files.hpp>
#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/files.hpp>
#include <support/own_network.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;
using namespace std::chrono_literals;

TEST_SUITE("actors.remote.hosts") {

namespace {

constexpr std::uint16_t port = 4711; // in a network of its own

bool can_have_hosts() {
  if (!own_network::is_possible() || !comm::gloo_support().is_built) {
    skip_case("needs Gloo, and the right to make a network of its own");
    return false;
  }
  return true;
}

void put_on_network(node_options& node, const job_files& files) {
  node.host = own_network::address_of(1);
  node.port = port;
  node.network = host_network{files.path(), true};
}

/// Twenty steps with batches of several sizes. Returns the bits of all losses
/// and of the parameters at the end.
std::string train(const small_net& net, std::size_t processes,
                  merge_strategy strategy, node_options node,
                  const std::vector<graph::handle_place>& places = {}) {
  constexpr std::array<std::int64_t, 4> sizes{10, 1, 3, 7};
  auto options = options_over(processes, strategy);
  options.parameters = net.parameters();
  options.seed = 5;
  options.places = places;
  if (node.processes() > 1)
    options.nodes = std::move(node);
  else // processes share no parameters either
    options.lowering.share_parameters = options.lowering.gather_products =
      false;
  executor exe{net.main, options};
  std::string text;
  for (std::size_t s = 0; s < 20; ++s)
    text +=
      std::to_string(exe.run(exe.own_share(net.batch(s, sizes[s % 4]))).loss)
      + " ";
  exe.synchronize_parameters();
  for (auto v : values_of(exe.parameters()))
    text += std::to_string(v) + " ";
  return text;
}

/// Four processes on two hosts: this one, and the threads that it starts, are
/// on a host with another name.
void move_to_host(node_options& node, const job_files& files) {
  const auto name = "host-" + std::to_string(node.process / 2);
  REQUIRE(::unshare(CLONE_NEWUTS) == 0);
  REQUIRE(::sethostname(name.data(), name.size()) == 0);
  put_on_network(node, files);
}

/// True if the texts have numbers that differ by rounding at most.
bool are_close(const std::string& text, const std::string& like) {
  std::istringstream all{text}, expected{like};
  for (double a, b; expected >> b;)
    if (!(all >> a) || a != doctest::Approx(b).epsilon(1e-3))
      return false;
  std::string rest;
  return !(all >> rest);
}

/// The ends of the connections of this thread's network, in hexadecimal.
std::set<std::string> addresses_in_use() {
  std::ifstream in{"/proc/thread-self/net/tcp"};
  std::set<std::string> all;
  std::string line;
  std::getline(in, line); // the heading
  while (std::getline(in, line)) {
    std::istringstream words{line};
    std::string number, local, remote;
    words >> number >> local >> remote;
    for (const auto& end : {local, remote})
      all.insert(end.substr(0, end.find(':')));
  }
  all.erase("00000000"); // the other end of who listens
  return all;
}

/// Bytes that the network of this thread has carried within this machine.
std::uint64_t bytes_of_network() {
  std::ifstream in{"/proc/thread-self/net/dev"};
  for (std::string line; std::getline(in, line);)
    if (const auto colon = line.find(':');
        colon != std::string::npos && contains(line.substr(0, colon), "lo"))
      return std::stoull(line.substr(colon + 1));
  return 0;
}

std::vector<std::string> last_words(process_group& run, std::size_t processes) {
  std::vector<std::string> words;
  for (std::size_t p = 0; p < processes; ++p)
    words.push_back(run.wait(p).last_word);
  return words;
}

/// Trains in several processes, whose options `change` changes. Checks that
/// each has the bits of one process with as many devices.
template <class Change>
void check_bits(const small_net& net, std::size_t processes, Change change) {
  CAPTURE(net.name);
  constexpr auto strategy = merge_strategy::all_reduce;
  const auto expected = train(net, processes, strategy, {});
  process_group run{processes, [&](node_options node) {
                      change(node);
                      return train(net, processes, strategy, std::move(node));
                    }};
  for (auto& word : last_words(run, processes))
    CHECK(word == expected);
}

} // namespace

TEST_CASE("four hosts get the bits of one process with four devices") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(4);
  for (auto& net : {make_mlp(), make_dropout_net(), make_word2vec()})
    check_bits(net, 4, [&](node_options& n) { put_on_network(n, files); });
}

TEST_CASE("control and values travel by the interfaces that are named") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(2);
  process_group run{2, [&](node_options n) {
                      put_on_network(n, files);
                      n.network->interface = n.process == 0 ? "lo:1" : "lo:3";
                      const auto net = make_wide_mlp();
                      auto options =
                        options_over(2, merge_strategy::all_reduce);
                      options.parameters = net.parameters();
                      options.nodes = std::move(n);
                      executor exe{net.main, options};
                      exe.run(exe.own_share(net.batch(0, 6)));
                      std::string text;
                      for (auto& address : addresses_in_use())
                        text += address + " ";
                      // Nobody leaves before all have looked.
                      exe.run(exe.own_share(net.batch(1, 6)));
                      return text;
                    }};
  // 10.77.0.1 and 10.77.0.3, as the system writes them.
  for (auto& word : last_words(run, 2))
    CHECK(word == "01004D0A 03004D0A ");
}

TEST_CASE("two hosts of two processes add the values of each host first") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(4);
  const auto net = make_wide_mlp(); // has values that are not in letters
  const auto in_one_process = train(net, 4, merge_strategy::all_reduce, {});
  process_group run{4, [&](node_options node) {
                      move_to_host(node, files);
                      return train(net, 4, merge_strategy::all_reduce,
                                   std::move(node));
                    }};
  const auto words = last_words(run, 4);
  for (auto& word : words)
    CHECK(word == words[0]);
  CHECK(words[0] != in_one_process); // rounded differently
  CHECK(are_close(words[0], in_one_process));
}

TEST_CASE("deterministic runs on two hosts have the bits of one process") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(4);
  check_bits(make_wide_mlp(), 4, [&](node_options& n) {
    move_to_host(n, files);
    n.deterministic = true;
  });
}

TEST_CASE("placed handles of two hosts have the bits of one process") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(4);
  const auto net = make_wide_mlp();
  constexpr auto strategy = merge_strategy::all_reduce;
  const auto expected = train(net, 4, strategy, {});
  process_group run{4, [&](node_options node) {
                      move_to_host(node, files);
                      node.deterministic = true;
                      // Within a host, and from one to the other.
                      return train(net, 4, strategy, std::move(node),
                                   {{"*_grad#*@cpu:0", 1, "a"},
                                    {"*_grad#*@cpu:1", 2, "b"},
                                    {"*#*3@cpu:3", 2, "c"},
                                    {"*#*@cpu:2", 0, "d"}});
                    }};
  for (auto& word : last_words(run, 4))
    CHECK(word == expected);
}

TEST_CASE("values between processes of a host do not use its network") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(2);
  const auto net = make_wide_mlp();
  for (const bool deterministic : {false, true}) {
    CAPTURE(deterministic);
    const auto before = bytes_of_network();
    process_group run{2, [&](node_options node) {
                        put_on_network(node, files);
                        node.deterministic = deterministic;
                        return train(net, 2, merge_strategy::none,
                                     std::move(node), {{"*#*", 0, "all"}});
                      }};
    const auto words = last_words(run, 2);
    CHECK(!contains(words[0], "error"));
    // Twenty steps, in each of which more than 100 kB go one way.
    const auto carried = bytes_of_network() - before;
    CHECK(carried > 0);
    CHECK(carried < 1'000'000);
  }
}

TEST_CASE("hosts of several processes share rows, and state with reduce") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(4);
  for (const auto strategy :
       {merge_strategy::all_reduce, merge_strategy::reduce})
    for (auto& net : {make_word2vec(), make_dropout_net()}) {
      CAPTURE(net.name);
      const auto in_one_process = train(net, 4, strategy, {});
      process_group run{4, [&](node_options node) {
                          move_to_host(node, files);
                          return train(net, 4, strategy, std::move(node));
                        }};
      CHECK(are_close(last_words(run, 4)[0], in_one_process));
    }
}

TEST_CASE("with reduce, the first host gets the state of all on request") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(3);
  const auto net = make_mlp();
  const auto expected = train(net, 3, merge_strategy::reduce, {});
  process_group run{3, [&](node_options node) {
                      put_on_network(node, files);
                      return train(net, 3, merge_strategy::reduce,
                                   std::move(node));
                    }};
  CHECK(last_words(run, 3)[0] == expected);
}

TEST_CASE("Gloo can serve the processes of one host, too") {
  if (!comm::gloo_support().is_built)
    return skip_case("needs Gloo");
  check_bits(make_mlp(), 2,
             [](node_options& n) { n.engine = group_engine::gloo; });
}

TEST_CASE("processes with different engines are told so") {
  const auto net = make_mlp();
  process_group run{2, [&](node_options node) {
                      if (node.process == 1)
                        node.engine = group_engine::gloo;
                      return train(net, 2, merge_strategy::all_reduce,
                                   std::move(node));
                    }};
  for (auto& word : last_words(run, 2))
    CHECK(contains(word, "engine: shm in process 0, gloo in process 1"));
}

TEST_CASE("a host that is killed or stopped ends the run, and is named") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(3);
  const auto net = make_mlp();
  for (const int signal : {SIGKILL, SIGSTOP})
    for (const std::size_t victim : {0, 2}) {
      CAPTURE(signal);
      CAPTURE(victim);
      std::array<int, 2> begun{};
      REQUIRE(::pipe(begun.data()) == 0);
      process_group run{3, [&](node_options node) {
                          put_on_network(node, files);
                          node.silence_limit_ms = 1000;
                          return train_on(
                            net, options_over(3, merge_strategy::all_reduce),
                            std::move(node), begun[1]);
                        }};
      wait_for_bytes(begun[0], 3);
      run.kill(victim, signal);
      for (std::size_t p = 0; p < 3; ++p) {
        if (p == victim)
          continue;
        const auto end = run.wait(p);
        CHECK(end.in_time);
        CHECK(end.exited);
        CAPTURE(end.last_word);
        CHECK(contains(end.last_word,
                       "process " + std::to_string(victim) + " is lost"));
      }
      ::close(begun[0]);
      ::close(begun[1]);
    }
}

TEST_CASE("any process of two hosts that is killed or stopped is named") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(4);
  const auto net = make_wide_mlp();
  for (const int signal : {SIGKILL, SIGSTOP})
    for (const std::size_t victim : {0, 1, 2, 3}) {
      CAPTURE(signal);
      CAPTURE(victim);
      std::array<int, 2> begun{};
      REQUIRE(::pipe(begun.data()) == 0);
      process_group run{
        4, [&](node_options node) {
          move_to_host(node, files);
          node.silence_limit_ms = 1000;
          auto options = options_over(4, merge_strategy::all_reduce);
          // The processes of a host wait for each other's
          // values, too.
          options.places = {{"*_grad#*@cpu:0", 1, "a"},
                            {"*_grad#*@cpu:3", 2, "b"}};
          return train_on(net, options, std::move(node), begun[1]);
        }};
      wait_for_bytes(begun[0], 4);
      run.kill(victim, signal);
      for (std::size_t p = 0; p < 4; ++p) {
        if (p == victim)
          continue;
        const auto end = run.wait(p);
        CHECK(end.in_time);
        CHECK(end.exited);
        CAPTURE(end.last_word);
        CHECK(contains(end.last_word,
                       "process " + std::to_string(victim) + " is lost"));
      }
      ::close(begun[0]);
      ::close(begun[1]);
    }
}

TEST_CASE("a host with credentials of another job is refused, and told why") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(2), of_another(2);
  const auto net = make_mlp();
  process_group run{
    2, [&](node_options node) {
      put_on_network(node, node.process == 0 ? files : of_another);
      node.timeout_ms = 1000;
      return train(net, 2, merge_strategy::all_reduce, std::move(node));
    }};
  const auto words = last_words(run, 2);
  CAPTURE(words[0]);
  CAPTURE(words[1]);
  CHECK(contains(words[0],
                 "these have not joined: process 1; a connection from "
                 "10.77.0.1 was refused: "));
  CHECK(contains(words[1], "certificate"));
  CHECK(contains(words[1], "another job"));
}

TEST_CASE("a host whose certificate is of another process is refused") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(3);
  const auto net = make_mlp();
  process_group run{3, [&](node_options node) {
                      const auto process = node.process;
                      put_on_network(node, files);
                      // Process 1 waits until process 0 ends.
                      node.timeout_ms = process == 1 ? 60'000 : 1000;
                      if (process == 2) // rank 2 has got the file of rank 1
                        node.network->credentials += "/rank-1.credentials";
                      return train(net, 3, merge_strategy::all_reduce,
                                   std::move(node));
                    }};
  const auto words = last_words(run, 3);
  CAPTURE(words[0]);
  CHECK(contains(words[0], "these have not joined: process 2"));
  CAPTURE(words[2]);
  CHECK(contains(words[2], "process 1"));
}

TEST_CASE("strangers who connect change nothing") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(2);
  std::vector<descriptor> strangers;
  check_bits(make_mlp(), 2, [&](node_options& node) {
    put_on_network(node, files);
    if (node.process == 1) // it connects when process 0 already listens
      for (int i = 0; i < 20; ++i) {
        strangers.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
        const auto at = find_host(node.host, port).front();
        (void)::connect(strangers.back().get(), at.get(), at.size);
        const std::string text =
          i % 2 ? "GET / HTTP/1.1\r\n\r\n" : std::string(100'000, '\xff');
        (void)::send(strangers.back().get(), text.data(), text.size(),
                     MSG_NOSIGNAL | MSG_DONTWAIT);
      }
  });
}

TEST_CASE("a process that starts before the first one waits for it") {
  if (!can_have_hosts())
    return;
  const own_network network;
  const job_files files(2);
  check_bits(make_mlp(), 2, [&](node_options& node) {
    if (node.process == 0) {
      node.listening(port);
      node.listening = {};
      std::this_thread::sleep_for(100ms);
    }
    put_on_network(node, files);
  });
}

TEST_CASE("a run on several hosts asks for what it needs") {
  const auto net = make_mlp();
  const auto message_of = [&](const auto& change) {
    auto options = options_over(2, merge_strategy::all_reduce);
    options.parameters = net.parameters();
    auto& node = options.nodes.emplace();
    node.process_of_device = {0, 1};
    node.host = "192.0.2.1";
    node.port = port;
    node.network = host_network{"/nowhere/credentials", true};
    node.timeout_ms = 100;
    change(node);
    return caught([&] { executor exe(net.main, options); }).message();
  };
  CHECK(contains(message_of([](node_options&) {}), "/nowhere/credentials"));
  CHECK(contains(message_of([](node_options& n) { n.port = 0; }),
                 "needs the port of process 0"));
  CHECK(
    contains(message_of([](node_options& n) { n.network->is_trusted = false; }),
             "--data-network trusted"));
  CHECK(contains(
    message_of([](node_options& n) { n.engine = group_engine::shared_memory; }),
    "no memory in common"));
  CHECK(contains(message_of([](node_options& n) { n.network.reset(); }),
                 "over loopback only"));
  const job_files files(2);
  CHECK(contains(message_of([&](node_options& n) {
                   n.network->credentials = files.path();
                   n.host = "localhost";
                 }),
                 "which other hosts cannot reach"));
}

} // TEST_SUITE("actors.remote.hosts")
