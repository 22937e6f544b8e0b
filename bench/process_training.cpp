// SPDX-License-Identifier: Apache-2.0
#include "process_training.hpp"

#include <troupe/base/cores.hpp>
#include <troupe/base/error.hpp>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>

namespace troupe::bench {

namespace {

void put(int to, std::uint64_t number) {
  if (::write(to, &number, sizeof number) != sizeof number)
    throw error(errc::peer_failure, "a process is gone");
}

/// 0 if the other end is closed.
std::uint64_t get(int from) {
  std::uint64_t number = 0;
  return ::read(from, &number, sizeof number) == sizeof number ? number : 0;
}

} // namespace

process_training::process_training(const graph::model& net,
                                   const training_options& options,
                                   std::size_t processes, std::int64_t batch)
  : net_(net), options_(options), processes_(processes), batch_(batch),
    memory_(make_host_memory_source()) {
  options_.threads = 1;
  for (std::size_t p = 1; p < processes; ++p) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0)
      throw error(errc::io_failure, "no pipe");
    const auto id = ::fork();
    if (id == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[1]);
      serve(p, ends[0]);
    }
    ::close(ends[0]);
    children_.push_back({id, ends[1]});
  }
}

process_training::~process_training() {
  for (auto& c : children_)
    ::close(c.commands);
  own_.reset();
  for (auto& c : children_)
    ::waitpid(c.id, nullptr, 0);
}

std::unique_ptr<training> process_training::make(std::size_t process,
                                                 std::uint16_t port) {
  auto options = options_;
  auto& nodes = options.nodes.emplace();
  nodes.process = process;
  nodes.port = port;
  const auto devices = parse_devices(options.devices).size();
  for (std::size_t d = 0; d < devices; ++d)
    nodes.process_of_device.push_back(d * processes_ / devices);
  nodes.listening = [this](std::uint16_t at) {
    for (auto& c : children_)
      put(c.commands, at);
  };
  batches_ = random_batches(net_, batch_, 4, memory_);
  return std::make_unique<training>(net_, options);
}

void process_training::serve(std::size_t process, int commands) {
  const stay_on_core here{process};
  try {
    own_ = make(process, static_cast<std::uint16_t>(get(commands)));
    while (const auto steps = get(commands))
      own_->run(batches_, steps);
    own_.reset();
    ::_exit(0);
  } catch (const error& e) {
    std::fprintf(stderr, "process %zu: %s\n", process, e.what());
    ::_exit(1);
  }
}

void process_training::connect() {
  const stay_on_core here{0};
  own_ = make(0, 0);
}

double process_training::run(std::size_t steps) {
  const stay_on_core here{0};
  for (auto& c : children_)
    put(c.commands, steps);
  return own_->run(batches_, steps);
}

} // namespace troupe::bench
