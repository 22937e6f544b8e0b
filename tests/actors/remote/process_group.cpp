// SPDX-License-Identifier: Apache-2.0
#include <actors/remote/process_group.hpp>

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <thread>
#include <utility>

namespace troupe::test {

namespace {

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  return ends;
}

/// Reads until the other end closes or the time is up.
std::string read_all(int fd, std::chrono::steady_clock::time_point until) {
  std::string text;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
    pollfd one{fd, POLLIN, 0};
    if (left.count() <= 0
        || ::poll(&one, 1, static_cast<int>(left.count())) < 1)
      return text;
    char some[512];
    const auto n = ::read(fd, some, sizeof some);
    if (n <= 0)
      return text;
    text.append(some, static_cast<std::size_t>(n));
  }
}

} // namespace

process_group::process_group(std::size_t processes, const body& act) {
  const auto port = make_pipe();
  children_.push_back(start(0, processes, 0, port[1], act));
  ::close(port[1]);
  std::uint16_t number = 0;
  const auto got = ::read(port[0], &number, sizeof number);
  ::close(port[0]);
  if (got != sizeof number)
    return; // the last word of process 0 says why
  for (std::size_t p = 1; p < processes; ++p)
    children_.push_back(start(p, processes, number, -1, act));
}

process_group::~process_group() {
  for (std::size_t p = 0; p < children_.size(); ++p) {
    kill(p);
    wait(p);
  }
}

process_group::child process_group::start(std::size_t process,
                                          std::size_t processes,
                                          std::uint16_t port, int tell_port,
                                          const body& act) {
  const auto words = make_pipe();
  child made{::fork(), words[0]};
  if (made.id != 0) {
    ::close(words[1]);
    return made;
  }
  node_options node;
  for (std::size_t d = 0; d < processes; ++d)
    node.process_of_device.push_back(d);
  node.process = process;
  node.port = port;
  node.listening = [tell_port](std::uint16_t number) {
    (void)!::write(tell_port, &number, sizeof number);
    ::close(tell_port);
  };
  std::string word;
  try {
    word = act(node);
  } catch (const std::exception& e) {
    word = e.what();
  }
  (void)!::write(words[1], word.data(), word.size());
  ::_exit(0);
}

void process_group::kill(std::size_t process, int signal) {
  if (process < children_.size() && children_[process].id > 0)
    ::kill(children_[process].id, signal);
}

process_group::end process_group::wait(std::size_t process,
                                       std::chrono::seconds patience) {
  end result;
  if (process >= children_.size() || children_[process].id <= 0)
    return result;
  auto& c = children_[process];
  const auto until = std::chrono::steady_clock::now() + patience;
  result.last_word = read_all(c.words, until);
  int status = 0;
  auto ended = ::waitpid(c.id, &status, WNOHANG);
  while (ended == 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    ended = ::waitpid(c.id, &status, WNOHANG);
  }
  result.in_time = ended == c.id;
  if (!result.in_time) {
    ::kill(c.id, SIGKILL);
    ::waitpid(c.id, &status, 0);
  }
  result.exited =
    result.in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  ::close(c.words);
  c.id = -1;
  return result;
}

std::string train_on(const small_net& net, executor_options options,
                     node_options node, int begun) {
  options.parameters = net.parameters();
  options.nodes = std::move(node);
  executor exe{net.main, options};
  exe.run(exe.own_share(net.batch(0, 7)));
  (void)!::write(begun, "b", 1);
  for (;;)
    exe.run(exe.own_share(net.batch(0, 7)));
}

void wait_for_bytes(int from, int count) {
  for (int i = 0; i < count; ++i) {
    pollfd one{from, POLLIN, 0};
    char byte = 0;
    REQUIRE(::poll(&one, 1, 30000) == 1);
    REQUIRE(::read(from, &byte, 1) == 1);
  }
}

std::string bits_of(std::span<const double> numbers) {
  std::string text;
  for (const auto n : numbers) {
    std::array<char, 40> hex{};
    std::snprintf(hex.data(), hex.size(), "%a ", n);
    text += hex.data();
  }
  return text;
}

executor_options options_over(std::size_t processes,
                              graph::merge_strategy strategy) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(processes));
  o.threads = 1;
  o.strategy = strategy;
  return o;
}

} // namespace troupe::test
