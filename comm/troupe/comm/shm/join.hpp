// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/shm/process_memory.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::comm {

/// How the processes of a host find each other.
struct shm_group_options {
  /// Path of a Unix socket. Process 0 makes it, so nothing may be there yet. It
  /// belongs into a folder that only its owner can enter. It is removed as soon
  /// as all processes have joined.
  std::string path;
  std::size_t process = 0;   ///< number of this process, less than `processes`
  std::size_t processes = 1; ///< number of all
  /// The numbers of this process's ranks, in increasing order. Those of all
  /// processes together are 0 to size - 1. Empty: the process's own number.
  std::vector<std::size_t> ranks = {};
  /// How long to wait for the other processes.
  std::chrono::milliseconds timeout{30'000};
  /// Called now and then while waiting, if set. What it throws ends the wait.
  std::function<void()> check = {};
};

/// Joins a group whose ranks are in several processes of a host, and waits for
/// the others. Result i is the end of this process's i-th rank.
///
/// Values are merged in memory that all processes map (see
/// `communicator::memory`), in rank order as by `make_local_group`, and with
/// the same results. Does not notice that a process is gone: whoever does calls
/// `leave` on all ends.
///
/// @param own memory of this process
///
/// Only processes of the same user are let in. Throws error(invalid_argument)
/// for options that make no sense, or that differ between the processes;
/// error(io_failure) if the socket cannot be made; error(peer_failure) if
/// processes are missing after the timeout; error(out_of_memory).
std::vector<std::unique_ptr<communicator>>
join_shm_group(const shm_group_options& options,
               std::shared_ptr<process_memory> own);
/// The same with memory of the group's own.
std::vector<std::unique_ptr<communicator>>
join_shm_group(const shm_group_options& options);

} // namespace troupe::comm
