// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace troupe::test {

/// The processes of one run, as children of the test. Each runs a function of
/// the test and leaves a text. None outlives the group.
class process_group {
public:
  /// Runs in process number `node.process`. The text that it returns, or that
  /// of the error that it throws, is the process's last word.
  using body = std::function<std::string(node_options node)>;

  /// Starts process 0, and the others once it listens. Process p has device p.
  process_group(std::size_t processes, const body& act);
  ~process_group();
  process_group(const process_group&) = delete;
  process_group& operator=(const process_group&) = delete;

  void kill(std::size_t process, int signal = 9);

  struct end {
    bool in_time = false;
    bool exited = false; ///< by itself and with status 0
    std::string last_word;
  };
  /// Waits for a process to end. If it takes longer than `patience`, it is
  /// killed, and `in_time` is false.
  end wait(std::size_t process,
           std::chrono::seconds patience = std::chrono::seconds{30});

private:
  struct child {
    pid_t id = -1;
    int words = -1; // pipe from which its last word is read
  };
  child start(std::size_t process, std::size_t processes, std::uint16_t port,
              int tell_port, const body& act);

  std::vector<child> children_;
};

/// Options of a run on as many CPU devices as there are processes.
executor_options options_over(std::size_t processes,
                              graph::merge_strategy strategy);

/// Trains until an error ends it. Writes a byte to `begun` after the first
/// step.
std::string train_on(const small_net& net, executor_options options,
                     node_options node, int begun = -1);
/// Waits for so many bytes, half a minute for each.
void wait_for_bytes(int from, int count);
/// Numbers as text that has all their bits.
std::string bits_of(std::span<const double> numbers);

} // namespace troupe::test
